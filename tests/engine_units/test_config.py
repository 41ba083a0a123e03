"""The TOML file of `nearcast run`: what it may say, and one clear line for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast.engine.options.config import SparkSource, load_config
from nearcast.engine.options.run_options import RunOptions
from nearcast.engine.output.sinks import ConsoleOf, FilesOf
from nearcast.model.errors import NearcastError

GOOD = """
[state]
checkpoint = "state"
[[source]]
type = "folder"
path = "in"
[[sink]]
type = "files"
path = "out"
"""
STREAM = '[[source]]\ntype = "spark"\nformat = "rate"\n'


def write(folder: Path, text: str) -> str:
    path = folder / "run.toml"
    path.write_text(text)
    return str(path)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, GOOD))
    assert config.checkpoint == str(tmp_path / "state")
    assert (config.sources, config.out) == ([str(tmp_path / "in")], str(tmp_path / "out"))
    absolute = load_config(write(tmp_path, GOOD.replace('"in"', '"/data"')))
    assert absolute.sources == ["/data"]


def test_defaults(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, GOOD))
    assert config.options == RunOptions()
    assert config.sinks == []


def test_everything(tmp_path: Path) -> None:
    text = """
[run]
space = "planar"
bounds = [0, 0, 10.5, 10]
shards = 3
trigger = "200 milliseconds"
[strategies]
range = "ps2stream+gi2"
[plan]
delta = 0.4
theta = 64
[balance]
threshold = 1.5
[spark]
"spark.executor.cores" = 4
"spark.ui.enabled" = true
[state]
checkpoint = "state"
arena = "/tmp/arenas"
[[source]]
type = "spark"
format = "kafka"
options = { subscribe = "events" }
[[sink]]
type = "files"
path = "out"
format = "jsonl"
[[sink]]
type = "console"
"""
    config = load_config(write(tmp_path, text))
    assert config.options == RunOptions(
        space="planar",
        bounds=(0.0, 0.0, 10.5, 10.0),
        shards=3,
        trigger="200 milliseconds",
        strategies={"range": "ps2stream+gi2"},
        plan={"delta": 0.4, "theta": 64},
        balance={"mode": "auto", "threshold": 1.5},
        spark_conf={"spark.executor.cores": "4", "spark.ui.enabled": "true"},
        arena="/tmp/arenas",
    )
    source = config.sources
    assert isinstance(source, SparkSource)
    assert source.options == {"subscribe": "events"}
    assert config.sinks == [ConsoleOf()]


CONSOLE = "[[sink]]\ntype = 'console'\n"


@pytest.mark.parametrize(
    ("sinks", "out", "others"),
    [
        ([("a", "jsonl"), ("b", "parquet")], ("a", "jsonl"), [("b", "parquet")]),
        ([("a", "parquet"), ("b", "jsonl")], ("b", "jsonl"), [("a", "parquet")]),
        ([("a", "parquet")], ("a", "parquet"), []),
        ([("a", "parquet"), ("b", "parquet")], ("a", "parquet"), [("b", "parquet")]),
        ([("a", "parquet"), "console"], None, [("a", "parquet"), "console"]),
        (["console"], None, ["console"]),
    ],
)
def test_the_folder_of_the_run_and_other_sinks(
    tmp_path: Path,
    sinks: list[tuple[str, str] | str],
    out: tuple[str, str] | None,
    others: list[tuple[str, str] | str],
) -> None:
    """Lines can become rows, so the run itself writes lines wherever another sink needs them."""
    text = GOOD.split("[[sink]]")[0]
    for sink in sinks:
        if isinstance(sink, str):
            text += CONSOLE
        else:
            text += f'[[sink]]\ntype = "files"\npath = "{sink[0]}"\nformat = "{sink[1]}"\n'
            text += 'keep = "1 day"\n'
    config = load_config(write(tmp_path, text))
    assert config.out == (str(tmp_path / out[0]) if out else None)
    assert config.options.format == (out[1] if out else "jsonl")
    assert config.options.keep == ("1 day" if out else "")
    assert config.sinks == [
        ConsoleOf() if isinstance(o, str) else FilesOf(str(tmp_path / o[0]), o[1], "1 day")
        for o in others
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[run", "not valid TOML: "),
        ("", "Object missing required field `state`"),
        (GOOD + "[run]\nshard = 2\n", "[run] shard: there is no such key; did you mean shards?"),
        (GOOD + "[run]\nbatch-events = 2\n", "[run] batch-events: there is no such key; did you "
         "mean batch_events?"),
        (GOOD + "[run]\nzzz = 2\n", "[run] zzz: there is no such key; there are space, bounds, "),
        (GOOD + "[run]\narena = 'a'\n", "[run] arena: it belongs to [state] arena"),
        (GOOD + "[run]\nplan = 2\n", "[run] plan: it belongs to [plan]"),
        ("run = 2\n" + GOOD, "[run]: 2 is not a table"),
        ("plan = 2\n" + GOOD, "plan: 2: write NAME=NUMBER, such as side=128"),
        ("sink = 2\n" + GOOD.split("[[sink]]")[0], "Expected `array`, got `int` - at `$.sink`"),
        ("sink = [2]\n" + GOOD.split("[[sink]]")[0], "Expected `object`, got `int` - at `$.sink"),
        (GOOD.replace("checkpoint =", "checkpoints ="), "[state] checkpoints: there is no such "
         "key; did you mean checkpoint?"),
        (GOOD.replace('path = "in"', 'paths = "in"'), "[[source]] paths: there is no such key; "
         "did you mean path?"),
        (GOOD + "formats = 'parquet'\n", "[[sink]] formats: there is no such key; did you mean "
         "format?"),
        (GOOD + "[[sink]]\ntype = 'console'\nformat = 'parquet'\n", "[[sink]] format: it belongs "
         "to [[sink]] format, of type files"),
        (GOOD + '[run]\nshards = "2"\n', "shards: '2' is not a whole number"),
        (GOOD + "[run]\nbounds = [1, 2]\n", "bounds: write minx,miny,maxx,maxy"),
        (GOOD + "[other]\n", "[other]: there is no such table; there are run, strategies, "),
        (GOOD + "[balanced]\n", "[balanced]: there is no such table; did you mean balance?"),
        (GOOD + "[spark]\n'spark.master' = 'local'\n", "spark_conf spark.master has no effect: "
         "the master is an option of the run: use master; leave it out"),
        (GOOD.replace('[[source]]\ntype = "folder"\npath = "in"\n', STREAM)
         + "[run]\nbatch_events = 5\n", "batch_events has no effect: Spark decides what a batch"),
        (GOOD.replace('"folder"', '"ftp"'), "Invalid value 'ftp' - at `$.source[0].type`"),
        (GOOD.replace("path = \"in\"", ""), "Object missing required field `path`"),
        ("sink = []\n" + GOOD.split("[[sink]]")[0], "give at least one [[sink]]: nothing takes"),
        (GOOD + '[[sink]]\ntype = "files"\npath = "./out"\n', "[[sink]] path: "),
        (GOOD + "[[sink]]\ntype = 'console'\n" * 2, "[[sink]] of type console: one is enough"),
        (GOOD + "[[sink]]\ntype = 'files'\npath = 'b'\nformat = 'csv'\n", "format: 'csv'; use"),
        (GOOD + STREAM, "give sources of type folder and kafka, or one of type spark"),
        (GOOD.replace('[[source]]\ntype = "folder"\npath = "in"\n', STREAM * 2),
         "give sources of type folder and kafka, or one of type spark"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_with_the_file(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(NearcastError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}: {reason}")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NearcastError, match=r"gone\.toml: No such file or directory$"):
        load_config(str(tmp_path / "gone.toml"))
    with pytest.raises(NearcastError, match=r"Is a directory$"):
        load_config(str(tmp_path))
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(NearcastError, match="not valid TOML"):
        load_config(str(path))
