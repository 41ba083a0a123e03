"""The demo as a whole, on Spark; and what it refuses before it starts any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nearcast.demo.run import run_demo
from nearcast.engine import Engine
from nearcast.model.errors import NearcastError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def lines(folder: Path) -> list[bytes]:
    files = sorted((folder / "notifications").glob("*.jsonl"))
    return sorted(line for path in files for line in path.read_bytes().splitlines())


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), 1e9])
def test_refuses_a_time_that_is_none(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(NearcastError, match="seconds"):
        run_demo(seconds, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_refuses_a_folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(NearcastError, match=r"mine\.txt"):
        run_demo(1.0, tmp_path)


def test_refuses_an_unknown_strategy_and_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(NearcastError, match="strategy"):
        run_demo(1.0, tmp_path / "out", strategies={"range": "nonsense"})
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_demo(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run_demo(8.0, out, quiet=True) == 0
    said = capsys.readouterr().out
    summary = json.loads((out / "summary.json").read_text())
    events = (out / "events" / "city.jsonl").read_bytes().splitlines()
    reported = lines(out)
    # The figures are those of the files.
    assert summary["events"]["total"] == len(events)
    assert summary["events"]["rejected"] == 0
    assert summary["notifications"]["total"] == len(reported) > 0
    assert f"{len(reported):,} notifications" in said
    answers = [line for line in reported if b'"event":"answer"' in line]
    assert len(answers) == 1
    assert b"arade" in answers[0].split(b"objects")[1]
    assert "nearest to Shibuya: “" in said
    assert summary["notifications"]["terms"]["terms"] >= 5
    assert str(out / "map.html") in said
    assert f"nearcast replay {out}/events" in said
    assert f'"notifications":{len(reported)},' in (out / "map.html").read_text(encoding="utf-8")
    assert not list(out.glob("_*"))
    # The log that stays reports the same when it is replayed, as the last lines promise.
    engine = Engine(shards=3, spark=spark)
    engine.replay([out / "events"], tmp_path / "again")
    assert lines(tmp_path / "again") == reported
