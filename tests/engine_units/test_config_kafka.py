"""Sources and sinks of type kafka in the TOML file; no broker is needed to read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast.engine.feed.topics import TopicsOf
from nearcast.engine.options.config import load_config
from nearcast.engine.output.sinks import ConsoleOf, FilesOf, KafkaOf
from nearcast.model.errors import NearcastError
from nearcast.wire.kafka import client_settings

STATE = '[state]\ncheckpoint = "state"\n'
SOURCE = '[[source]]\ntype = "kafka"\nbootstrap = "a:1,b:2"\n'
SINK = '[[sink]]\ntype = "kafka"\nbootstrap = "a:1"\ntopic = "out"\n'
WHOLE = STATE + SOURCE + 'topics = ["in"]\n'


def write(folder: Path, text: str) -> str:
    path = folder / "run.toml"
    path.write_text(text)
    return str(path)


def test_everything(tmp_path: Path) -> None:
    text = (
        STATE
        + SOURCE
        + 'topics = ["x"]\nsubscriptions = ["s"]\nobjects = ["o", "p"]\n'
        + 'start = "2026-01-01T00:00:00Z"\n'
        + 'options = { "security.protocol" = "SASL_SSL", "fetch.min.bytes" = 5 }\n'
        + '[[source]]\ntype = "folder"\npath = "in"\n'
        + SINK
        + 'rejects = "bad"\ntransactions = false\n[sink.options]\n"enable.ssl.x" = true\n'
        + '[[sink]]\ntype = "console"\n[[sink]]\ntype = "files"\npath = "f"\nformat = "parquet"\n'
    )
    config = load_config(write(tmp_path, text))
    topics = TopicsOf(
        "a:1,b:2", ("x",), ("s",), ("o", "p"), "2026-01-01T00:00:00Z",
        {"security.protocol": "SASL_SSL", "fetch.min.bytes": 5},
    )  # fmt: skip
    assert config.sources == [topics, str(tmp_path / "in")]
    assert topics.topics == ("s", "x", "o", "p")
    assert topics.settings["security.protocol"] == "SASL_SSL"
    assert config.out is None  # a topic takes lines, and the files are rows
    assert config.options.format == "jsonl"
    assert config.sinks == [
        FilesOf(str(tmp_path / "f"), "parquet"),
        KafkaOf("a:1", "out", "bad", False, {"enable.ssl.x": True}),
        ConsoleOf(),
    ]
    assert client_settings("a:1", {"enable.ssl.x": True})["enable.ssl.x"] == "true"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (STATE + SOURCE + SINK, "name topics, subscriptions or objects: there is nothing to read"),
        (STATE + SOURCE + "topics = ['a', 'a']\n" + SINK, "topic a is named twice"),
        (STATE + SOURCE + "topics = ['a']\nstart = 'now'\n" + SINK, "start: 'now' is not an RFC"),
        (WHOLE + "topic = 'a'\n" + SINK, "[[source]] topic: there is no such key; did you mean "),
        (WHOLE + "[source.options]\n'group.id' = 'x'\n" + SINK,
         "options group.id has no effect: the run itself remembers what it has read; leave it out"),
        (WHOLE + SINK + "rejects = 'out'\n", "rejects: out is the topic of notifications; use "),
        (WHOLE + SINK * 2, "[[sink]] topic: out: two sinks of type kafka need two topics"),
        (WHOLE + SINK + "[sink.options]\n'transactional.id' = 'x'\n",
         "options transactional.id has no effect: the name of the run is used; leave it out"),
        (WHOLE + SINK + "format = 'jsonl'\n", "[[sink]] format: it belongs to [[sink]] format, of"),
        (WHOLE + '[[source]]\ntype = "spark"\nformat = "rate"\n' + SINK,
         "give sources of type folder and kafka, or one of type spark"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(NearcastError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}: {reason}")
