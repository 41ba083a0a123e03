"""Asks through Spark: the answers of the oracle, whatever the format of the log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.contract import difference, expected, refused, reported, write_log
from tests.engine.test_asks import WORLD, ask, busy

from nearcast import Engine
from nearcast.model.space import Space
from nearcast.testing.cases import publish

pytestmark = pytest.mark.spark


def test_a_replay_retains_what_its_asks_need(
    spark: SparkSession, tmp_path: Path, memory: Path
) -> None:
    log = busy(11, Space.PLANAR, 200)
    path = write_log(tmp_path / "log.jsonl", log)
    engine = Engine(space="planar", shards=3, spark=spark, arena=str(memory))
    summary = engine.replay([path], tmp_path / "out", batch_events=40)
    assert not difference(reported(tmp_path / "out"), expected(log, "planar"))
    assert summary["events"]["ask"] == sum(e["op"] == "ask" for e in log)
    assert summary["settings"]["retain_ms"] == 10**6


def test_a_checkpoint_goes_on(spark: SparkSession, tmp_path: Path, memory: Path) -> None:
    """A later log asks about posts of an earlier one; without its posts it says so."""
    first = write_log(tmp_path / "1.jsonl", [publish(f"o{n}", n, n, 0, "a") for n in range(50)])
    query = {"kind": "range", "region": WORLD, "limit": 3}
    second = write_log(tmp_path / "2.jsonl", [ask("q", 60, 100, query)])
    for retain, answered in (("all", True), ("auto", False)):
        engine = Engine(space="planar", retain=retain, spark=spark, arena=str(memory))
        for n, path in enumerate((first, second)):
            out = tmp_path / retain / str(n)
            engine.replay([path], out, checkpoint=tmp_path / retain / "state")
        if answered:
            (answer,) = map(json.loads, reported(out))
            assert [o["id"] for o in answer["objects"]] == ["o47", "o48", "o49"]
        else:
            assert "here to 49" in refused(out)[0]["reason"]
