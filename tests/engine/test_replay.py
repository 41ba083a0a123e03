"""Whole logs through Spark: any strategy, shards, batches and formats, one notification log."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.contract import difference, expected, reported, write_log

from nearcast.engine import Engine
from nearcast.engine.spark.session import shard_keys
from nearcast.model.space import Space
from nearcast.testing.logs import random_log

pytestmark = pytest.mark.spark

# Every value of every column at least once; more combinations are tried without a JVM.
CASES = [
    pytest.param("geographic", 1, {}, 1000, "jsonl", id="one-shard"),
    pytest.param("planar", 5, {"range": "random", "knn": "random"}, 25, "parquet", id="moves"),
    pytest.param("planar", 3, {"range": "broadcast", "knn": "hash"}, 45, "jsonl", id="broadcast"),
    pytest.param(
        "geographic", 2, {"range": "random+pyramid", "knn": "hash"}, 60, "parquet", id="mixed"
    ),
]


@pytest.mark.parametrize(("space", "shards", "strategies", "batch_events", "format_"), CASES)
def test_replay_equals_the_oracle(
    space: str,
    shards: int,
    strategies: dict[str, str],
    batch_events: int,
    format_: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    events = random_log(100 + shards, Space(space), 120, late=0.2, late_controls=True)
    log = write_log(tmp_path / "log.jsonl", events)
    engine = Engine(
        space=space,
        shards=shards,
        strategies=strategies,
        format=format_,
        arena=str(tmp_path / "arena"),
        spark=spark,
    )
    summary = engine.replay([log], tmp_path / "out", batch_events=batch_events)
    wanted = expected(events, space)
    assert difference(reported(tmp_path / "out"), wanted) == ""
    assert summary["notifications"]["total"] == wanted.total()
    ops = Counter(event["op"] for event in events)
    assert summary["events"] == {**ops, "rejected": 0, "total": 120}
    assert summary["batches"] == -(-120 // batch_events)
    assert len(summary["shards"]) == shards
    assert not list((tmp_path / "arena").glob("*"))  # nothing is left of a run that is over
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "notifications",
        "rejected",
        "summary.json",
        "visible",
    ]


def test_each_shard_has_a_partition_of_its_own(tmp_path: Path, spark: SparkSession) -> None:
    """Else two shards would share a task, and their state a store."""
    events = random_log(9, Space.GEOGRAPHIC, 20)
    log = write_log(tmp_path / "log.jsonl", events)
    engine = Engine(shards=5, arena=str(tmp_path / "arena"), spark=spark, manifests="spark")
    engine.replay([log], tmp_path / "out", checkpoint=tmp_path / "checkpoint")
    reader = spark.read.format("statestore").option("stateVarName", "manifest")
    rows: list[Any] = reader.load(str(tmp_path / "checkpoint" / "spark")).collect()
    places = {row.key.shard: row.partition_id for row in rows}
    assert places == {key: n for n, key in enumerate(shard_keys(5))}
    for shards in (1, 2, 7, 16):
        assert len(set(shard_keys(shards))) == shards


def test_net_changes_are_the_difference_of_a_batch(tmp_path: Path, spark: SparkSession) -> None:
    """Times are even and windows odd, so no moment falls on the end of a batch."""
    events: list[dict[str, Any]] = []
    for n, k in enumerate((1, 2, 3)):
        knn = {"kind": "knn", "at": [n, 0], "k": k, **({"window": 45} if n else {})}
        events.append({"op": "subscribe", "id": f"k{n}", "time": 0, "query": knn})
    region = {"bbox": [-180, -90, 180, 90]}
    query = {"kind": "range", "region": region, "where": "a"}
    events.append({"op": "subscribe", "id": "r", "time": 0, "query": query})
    for n in range(80):
        at, words = [(n * 37 % 21) - 10, n * 11 % 7], ["a"] if n % 5 == 0 else []
        events.append({"op": "publish", "id": f"o{n}", "time": 10 * n, "at": at, "keywords": words})
    log = write_log(tmp_path / "log.jsonl", events)
    engine = Engine(changes="net", shards=2, arena=str(tmp_path / "arena"), spark=spark)
    engine.replay([log], tmp_path / "out", batch_events=21)
    wanted: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for end in range(21, len(events) + 21, 21):
        after = expected(events[:end], "geographic")
        wanted += _net(after - before)
        before = after
    assert 0 < wanted.total() < before.total()
    assert difference(reported(tmp_path / "out"), wanted) == ""


def _net(batch: Counter[str]) -> Counter[str]:
    """What entered and left again, or the other way round, is not reported; the last change is."""
    import json

    rows = [json.loads(text) for text in batch]
    last: dict[tuple[str, str], list[dict[str, Any]]] = {}
    # An object changes at most once at a time, so its changes are in the order of their times.
    for row in sorted(rows, key=lambda r: r["time"]):
        last.setdefault((row["id"], row["object"]), []).append(row)
    kept = [changes[-1] for changes in last.values() if len(changes) % 2]
    return Counter(json.dumps(row, sort_keys=True) for row in kept)
