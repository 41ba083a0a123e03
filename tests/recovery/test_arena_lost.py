"""Arenas are a cache: whatever happens to them between two batches, results stay the same."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.recovery.story import BATCH_EVENTS, MOVING, Story, script

from nearcast.engine import Engine
from nearcast.engine.output.reports import BatchRecord, Reports
from nearcast.model.errors import NearcastError

pytestmark = pytest.mark.spark

DELETED, CUT, SCRIBBLED, FROM_ANOTHER, OUTDATED, UNTOUCHED = range(6)


def test_damaged_arenas_are_built_anew(
    tmp_path: Path, story: Story, spark: SparkSession, worker_faults: Path
) -> None:
    checkpoint, out, arenas = tmp_path / "checkpoint", tmp_path / "out", tmp_path / "arena"
    engine = Engine(shards=6, strategies=MOVING, arena=str(arenas), spark=spark)

    def keep(record: BatchRecord) -> None:
        if record.batch == 2:
            shutil.copytree(arena(OUTDATED), tmp_path / "outdated")

    def arena(shard: int) -> Path:
        return next(arenas.iterdir()) / f"{shard:04d}"

    # Fails before any shard is touched, so the arenas stay as batch 5 left them.
    script(worker_faults, [("route-read", 6, "raise")])
    with pytest.raises(NearcastError, match="scripted"):
        engine.replay(
            [story.log], out, checkpoint=checkpoint, batch_events=BATCH_EVENTS, on_batch=keep
        )
    shutil.rmtree(arena(DELETED))
    largest = max(arena(CUT).glob("*.bin"), key=lambda p: p.stat().st_size)
    os.truncate(largest, largest.stat().st_size - 4096)
    (arena(SCRIBBLED) / "token").write_bytes(os.urandom(40))
    for shard, source in ((FROM_ANOTHER, arena(UNTOUCHED)), (OUTDATED, tmp_path / "outdated")):
        shutil.rmtree(arena(shard))
        shutil.copytree(source, arena(shard))
    engine.replay([story.log], out, checkpoint=checkpoint, batch_events=BATCH_EVENTS)
    records = {record.batch: record for record in Reports(checkpoint).all()}
    rebuilt = [report.rebuilt for report in records[6].reports]
    assert rebuilt == [True, True, True, True, True, False]
    assert not any(report.rebuilt for report in records[7].reports)
    story.check(out)
