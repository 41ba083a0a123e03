"""The TOML file of `nearcast run`: what it may say, and one clear line for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast.engine.config import FilesSink, FolderSource, SparkSource, load_config
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
    [source], [sink] = config.source, config.sink
    assert isinstance(source, FolderSource)
    assert isinstance(sink, FilesSink)
    assert config.state.checkpoint == str(tmp_path / "state")
    assert (source.path, sink.path) == (str(tmp_path / "in"), str(tmp_path / "out"))
    absolute = load_config(write(tmp_path, GOOD.replace('"in"', '"/data"')))
    assert [s.path for s in absolute.source] == ["/data"]


def test_defaults(tmp_path: Path) -> None:
    run = load_config(write(tmp_path, GOOD)).run
    assert (run.space, run.shards, run.changes, run.bounds) == ("geographic", 2, "every", None)


def test_everything(tmp_path: Path) -> None:
    text = """
[run]
space = "planar"
bounds = [0, 0, 10.5, 10]
shards = 3
trigger = "200 milliseconds"
[strategies]
range = "hash+pyramid"
[plan]
delta = 0.4
theta = 64
[spark]
"spark.sql.shuffle.partitions" = 4
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
format = "parquet"
[[sink]]
type = "console"
"""
    config = load_config(write(tmp_path, text))
    assert config.run.bounds == (0.0, 0.0, 10.5, 10.0)
    assert config.strategies == {"range": "hash+pyramid"}
    assert config.plan == {"delta": 0.4, "theta": 64}
    assert config.spark == {"spark.sql.shuffle.partitions": 4}
    [source] = config.source
    assert isinstance(source, SparkSource)
    assert source.options == {"subscribe": "events"}
    assert len(config.sink) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[run", "not valid TOML: "),
        ("", "Object missing required field `state`"),
        (GOOD + "[run]\nshard = 2\n", "Object contains unknown field `shard` - at `$.run`"),
        (GOOD + '[run]\nshards = "2"\n', "Expected `int`, got `str` - at `$.run.shards`"),
        (GOOD + "[run]\nbounds = [1, 2]\n", "Expected `array` of length 4"),
        (GOOD + "[other]\n", "Object contains unknown field `other`"),
        (GOOD.replace('"folder"', '"ftp"'), "Invalid value 'ftp' - at `$.source[0].type`"),
        (GOOD.replace("path = \"in\"", ""), "Object missing required field `path`"),
        (GOOD.replace('type = "files"', 'type = "console"').replace('path = "out"', ""),
         "give exactly one [[sink]] of type files"),
        (GOOD + '[[sink]]\ntype = "files"\npath = "b"\n', "give exactly one [[sink]] of type"),
        (GOOD + STREAM, "give one or more folder sources, or one spark source"),
        (GOOD.replace('[[source]]\ntype = "folder"\npath = "in"\n', STREAM * 2),
         "give one or more folder sources, or one spark source"),
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
