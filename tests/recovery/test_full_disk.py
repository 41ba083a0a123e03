"""A full disk where notifications go: one clear line, and with room the same call goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.recovery.disk import Disk
from tests.recovery.story import BATCH_EVENTS, BATCHES, STILL, Story

from nearcast.engine import Engine
from nearcast.model.errors import NearcastError

pytestmark = pytest.mark.spark


def test_room_is_made(tmp_path: Path, disk: Disk, story: Story, spark: SparkSession) -> None:
    engine = Engine(shards=2, strategies=STILL, arena=str(tmp_path / "arena"), spark=spark)
    checkpoint = tmp_path / "checkpoint"

    def replay() -> int:
        summary = engine.replay(
            [story.log], disk.folder, checkpoint=checkpoint, batch_events=BATCH_EVENTS
        )
        return int(summary["batches"])

    with pytest.raises(NearcastError) as raised:
        replay()
    assert "\n" not in str(raised.value)
    assert str(disk.folder) in str(raised.value)
    if disk.mounted:
        assert "No space left on device; make room and run the same command" in str(raised.value)
    disk.make_room()
    assert replay() == BATCHES
    story.check(disk.folder)
