"""Subscriptions that look back, through Spark: nothing waits for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.contract import difference, expected, reported, write_log
from tests.engine.test_lasts import NEAREST, looking_back

from nearcast import Engine
from nearcast.model.space import Space
from nearcast.testing.cases import publish
from nearcast.testing.logs import random_log

pytestmark = pytest.mark.spark


def test_a_replay_retains_what_they_need(spark: SparkSession, tmp_path: Path, memory: Path) -> None:
    """Also where the last event of the log looks back; a later log goes on from there."""
    log = random_log(11, Space.PLANAR, 120, lasts=0.8)
    last = max(e["time"] for e in log if isinstance(e["time"], int))
    log.append(looking_back("end", last, 100, NEAREST))
    later = [publish("later", last + 1, 0, 0), looking_back("again", last + 2, 100, NEAREST)]
    paths = [write_log(tmp_path / f"{n}.jsonl", e) for n, e in enumerate((log, later))]
    engine = Engine(space="planar", shards=3, spark=spark, arena=str(memory), retain="all")
    out, state = tmp_path / "out", tmp_path / "state"
    engine.replay(paths[:1], out, checkpoint=state, batch_events=40)
    assert not difference(reported(out), expected(log, "planar"))
    engine.replay(paths, out, checkpoint=state)
    assert not difference(reported(out), expected(log + later, "planar"))
    engine.replay(paths, out, checkpoint=state)
    assert not difference(reported(out), expected(log + later, "planar"))


def test_columns(spark: SparkSession, tmp_path: Path, memory: Path) -> None:
    log = [publish(f"o{n}", n, n, 0, "a") for n in range(20)]
    log += [looking_back("s", 20, 10, NEAREST | {"where": "a"})]
    rows = [e | {"query": json.dumps(e["query"])} if "query" in e else e for e in log]
    pq.write_table(pa.Table.from_pylist([dict.fromkeys(rows[-1] | rows[0]) | r for r in rows]),
                   tmp_path / "log.parquet")  # fmt: skip
    engine = Engine(space="planar", shards=2, spark=spark, arena=str(memory))
    summary = engine.replay([tmp_path / "log.parquet"], tmp_path / "out")
    assert summary["settings"]["retain_ms"] == 10
    assert summary["notifications"]["total"] == 2
    assert not difference(reported(tmp_path / "out"), expected(log, "planar"))


def test_a_silent_stream(spark: SparkSession, tmp_path: Path, memory: Path) -> None:
    """The first result is reported though no event follows."""
    (tmp_path / "in").mkdir()
    log = [publish(f"o{n}", n, n, 0, "a") for n in range(20)]
    log += [looking_back("s", 20, 10, NEAREST)]
    engine = Engine(space="planar", shards=2, spark=spark, arena=str(memory), retain="all")
    run = engine.tail(tmp_path / "in", tmp_path / "out", tmp_path / "state")
    try:
        write_log(tmp_path / "in" / "log.jsonl", log)
        run.drain()
    finally:
        run.stop()
    assert not difference(reported(tmp_path / "out"), expected(log, "planar", "arrival"))
