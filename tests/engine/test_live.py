"""Live streams: folders that are tailed, and streaming DataFrames."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engine.contract import difference, expected, refused, reported
from tests.engine.test_inputs import SCHEMA, columns

from nearcast.engine import Engine
from nearcast.engine.run import Run
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.testing.logs import random_log

pytestmark = pytest.mark.spark

MOVING = {"range": "random", "knn": "random"}


def lines(events: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(e)}\n" for e in events)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def settle(run: Run) -> None:
    """Two looks, because packed files must not have grown between them."""
    assert run.tailer
    run.tailer.poll()
    run.drain()


def test_a_folder_is_tailed(tmp_path: Path, spark: SparkSession) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    events = random_log(31, Space.GEOGRAPHIC, 160, late=0.2)
    engine = Engine(shards=2, strategies=MOVING, arena=str(tmp_path / "arena"), spark=spark)

    def tail() -> Run:
        out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
        return engine.tail(folder, out, checkpoint, trigger="0 seconds", batch_events=30)

    run = tail()
    first = lines(events[:40])
    append(folder / "a.jsonl", first[:-25])  # the last line is not whole yet
    settle(run)
    assert difference(reported(run.out), expected(events[:39], "geographic", "arrival")) == ""
    append(folder / "a.jsonl", first[-25:])
    settle(run)
    (folder / "b.jsonl").mkdir()  # cannot be read
    append(folder / "c.jsonl", lines(events[40:60]) + "broken\n")
    append(folder / "notes.txt", "no log")
    settle(run)
    with gzip.open(folder / "d.jsonl.gz", "wt") as file:
        file.write(lines(events[60:80]))
    settle(run)
    table = pa.Table.from_pylist([columns(e) for e in events[80:100]], SCHEMA)
    pq.write_table(table, folder / "e.parquet")
    settle(run)
    assert difference(reported(run.out), expected(events[:100], "geographic", "arrival")) == ""
    append(folder / "a.jsonl", lines(events[100:130]))  # much of it is left for the next start
    assert run.tailer
    run.tailer.poll()
    run.stop()

    run = tail()
    append(folder / "a.jsonl", "broken too\n" + lines(events[130:]))
    settle(run)
    summary = run.stop()
    wanted = expected(events, "geographic", "arrival")
    assert difference(reported(run.out), wanted) == ""
    found = [(Path(r["file"]).name, r["line"]) for r in refused(run.out)]
    assert found == [("a.jsonl", 71), ("b.jsonl", 0), ("c.jsonl", 21)]
    assert summary["events"]["total"] == len(events) + 3
    assert summary["notifications"]["total"] == wanted.total()


def test_a_tailer_that_breaks_ends_the_run(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    engine = Engine(arena=str(tmp_path / "arena"), spark=spark)
    run = engine.tail(tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint")
    append(tmp_path / "in" / "a.jsonl", lines(random_log(33, Space.GEOGRAPHIC, 5)))
    run.drain()
    assert run.tailer
    monkeypatch.setattr(run.tailer, "poll", lambda *_: int("x"))
    for call in (run.wait, run.drain, run.stop):
        with pytest.raises(NearcastError, match=r"cannot be followed any more \(ValueError"):
            call()
    assert not run.query.isActive


@pytest.mark.parametrize("form", ["value", "columns"])
def test_a_streaming_data_frame(form: str, tmp_path: Path, spark: SparkSession) -> None:
    """With a restart, and a batch without a row between the two halves of a move."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    events = random_log(32, Space.GEOGRAPHIC, 100, late=0.2)
    engine = Engine(shards=3, strategies=MOVING, arena=str(tmp_path / "arena"), spark=spark)

    def start() -> Run:
        stream = _stream(spark, folder, form)
        return engine.run(stream, out, tmp_path / "checkpoint", trigger="0 seconds")

    def drop(n: int, part: list[dict[str, Any]]) -> None:
        rows = part if form == "value" else [columns(e) for e in part]
        (folder / f".{n}").write_text(lines(rows))
        (folder / f".{n}").rename(folder / f"{n}.json")
        run.drain()

    run = start()
    watch = run.notifications.writeStream.format("memory").queryName(f"told_{form}").start()
    for n in range(2):
        drop(n, events[20 * n : 20 * n + 20])
    drop(2, [])
    drop(3, events[40:60])
    run.stop()
    run = start()
    for n in (4, 5):
        drop(n, events[20 * (n - 1) : 20 * n])
    summary = run.stop()
    watch.processAllAvailable()
    watch.stop()
    wanted = expected(events, "geographic", "arrival")
    assert difference(reported(out), wanted) == ""
    assert summary["notifications"]["total"] == wanted.total()
    rows = spark.table(f"told_{form}").collect()
    assert len(rows) == wanted.total()
    assert {(r.id, r.event, r.object, r.time) for r in rows} == {
        (n["id"], n["event"], n.get("object"), n["time"]) for n in map(json.loads, wanted)
    }


def _stream(spark: SparkSession, folder: Path, form: str) -> DataFrame:
    if form == "value":
        return spark.readStream.text(str(folder))
    schema = (
        "op string, id string, time long, at array<double>, text string, "
        "keywords array<string>, expires long, query string, owner string, meta string"
    )
    return spark.readStream.schema(schema).json(str(folder))


def test_a_data_frame_that_is_no_stream(tmp_path: Path, spark: SparkSession) -> None:
    frame = spark.range(3)
    with pytest.raises(NearcastError, match=r"stream; use spark\.readStream, or replay"):
        Engine(spark=spark).run(frame, tmp_path / "out", tmp_path / "checkpoint")
