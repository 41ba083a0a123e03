"""Checkpoints that do not fit the call, and what a crash while planning leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.contract import difference, expected, reported, write_log

from nearcast.engine import Engine
from nearcast.engine.feed.ledger import Ledger
from nearcast.engine.feed.source import Feed
from nearcast.engine.feed.tailer import Tailer
from nearcast.engine.options.settings import Settings, check_bound
from nearcast.engine.run import _run_name
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.testing.logs import random_log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log.jsonl", random_log(3, Space.GEOGRAPHIC, 60))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"shards": 3}, "shards was 2, now 3"),
        ({"space": "planar"}, "space was 'geographic', now 'planar'"),
        ({"strategies": {"knn": "random"}}, "strategies was"),
    ],
)
def test_a_checkpoint_of_other_settings(
    other: dict[str, object], said: str, tmp_path: Path, log: Path
) -> None:
    check_bound(Settings(), tmp_path / "checkpoint")
    with pytest.raises(NearcastError, match=said) as raised:
        Engine(**other).replay([log], tmp_path / "out", checkpoint=tmp_path / "checkpoint")  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)


def test_a_live_checkpoint_is_not_replayed(tmp_path: Path, log: Path) -> None:
    check_bound(Settings(order="arrival"), tmp_path / "checkpoint")
    with pytest.raises(NearcastError, match="order was 'arrival', now 'time'"):
        Engine().replay([log], tmp_path / "out", checkpoint=tmp_path / "checkpoint")


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "\x00\x00"])
def test_settings_that_are_none(text: str, tmp_path: Path, log: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "settings.json").write_text(text)
    with pytest.raises(NearcastError, match="not a nearcast checkpoint"):
        Engine().replay([log], tmp_path / "out", checkpoint=tmp_path / "checkpoint")


def test_a_folder_that_is_no_checkpoint(tmp_path: Path, log: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(NearcastError, match="not empty, and not a nearcast checkpoint"):
        Engine().replay([log], tmp_path / "out", checkpoint=tmp_path / "photos")


def test_what_a_crash_in_the_first_moment_leaves(tmp_path: Path) -> None:
    """A half-written settings file is no obstacle; a run without a name gets one."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / ".settings.json.123.tmp").write_text("{")
    check_bound(Settings(), folder)
    (folder / "run").touch()
    name = _run_name(folder)
    assert len(name) == 32
    assert _run_name(folder) == name


def test_a_log_that_changed(tmp_path: Path, log: Path, spark: SparkSession) -> None:
    engine = Engine(arena=str(tmp_path / "arena"), spark=spark)
    engine.plan([log], tmp_path / "checkpoint")
    with log.open("a") as file:
        file.write("{}\n")
    with pytest.raises(NearcastError, match="put new events into a new file") as raised:
        engine.replay([log], tmp_path / "out", checkpoint=tmp_path / "checkpoint")
    assert str(log) in str(raised.value)


def test_a_crash_while_planning(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan that never counted leaves nothing behind in the next one, nor do added logs."""
    events = random_log(4, Space.GEOGRAPHIC, 90)
    first = write_log(tmp_path / "1.jsonl", events[:50])
    second = write_log(tmp_path / "2.jsonl", events[50:])
    checkpoint = tmp_path / "checkpoint"
    engine = Engine(shards=2, arena=str(tmp_path / "arena"), spark=spark)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "add", _crash)
        with pytest.raises(RuntimeError, match="crash"):
            engine.plan([first], checkpoint, batch_events=5)
    assert len(Feed(checkpoint)) == 10
    engine.replay([first], tmp_path / "out", checkpoint=checkpoint, batch_events=25)
    assert len(Feed(checkpoint)) == 2
    summary = engine.replay(
        [first, second], tmp_path / "out", checkpoint=checkpoint, batch_events=25
    )
    assert summary["batches"] == 4
    assert difference(reported(tmp_path / "out"), expected(events, "geographic")) == ""


def _crash(*_: object) -> None:
    raise RuntimeError("crash")


def test_a_crash_while_a_packed_file_is_planned(tmp_path: Path) -> None:
    """All of its batches count, or none: the tail reads such files whole."""
    import gzip

    events = random_log(5, Space.GEOGRAPHIC, 30)
    (tmp_path / "in").mkdir()
    with gzip.open(tmp_path / "in" / "a.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(e) + "\n" for e in events))

    def tailer() -> Tailer:
        return Tailer([tmp_path / "in"], tmp_path / "checkpoint", 10, 1)

    whole = tailer()
    whole.poll()
    whole.poll()
    feed = Feed(tmp_path / "checkpoint")
    assert len(feed) == 3
    (feed.folder / f"{0:012d}.json").unlink()  # as if it had been killed before the last of them
    again = tailer()
    assert len(feed) == 0
    again.poll()
    again.poll()
    assert len(feed) == 3
    assert sum(split.length for n in range(3) for split in feed.read(n)) == sum(
        len(json.dumps(e)) + 1 for e in events
    )


def test_a_packed_file_that_is_still_empty(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").touch()
    tail = Tailer([tmp_path], tmp_path / "checkpoint", 10, 1)
    tail.poll()
    tail.poll()
    import gzip

    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.write('{"op":"unsubscribe","id":"x","time":1}\n')
    tail.poll()
    tail.poll()
    assert len(Feed(tmp_path / "checkpoint")) == 1
