"""Batches that Spark repeats, because it never heard that they were done."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.recovery.story import BATCH_EVENTS, BATCHES, MOVING, Story, script

from nearcast.engine import Engine
from nearcast.model.errors import NearcastError

pytestmark = pytest.mark.spark


def lose(checkpoint: Path, what: str, *batches: int) -> None:
    """Remove entries of Spark's log of offsets or commits."""
    for batch in batches:
        (checkpoint / "spark" / what / f"{batch}").unlink()
        (checkpoint / "spark" / what / f".{batch}.crc").unlink(missing_ok=True)


def test_lost_commits(
    tmp_path: Path, story: Story, spark: SparkSession, worker_faults: Path
) -> None:
    checkpoint, out, last = tmp_path / "checkpoint", tmp_path / "out", BATCHES - 1
    engine = Engine(shards=3, strategies=MOVING, arena=str(tmp_path / "arena"), spark=spark)

    def replay() -> list[int]:
        done: list[int] = []
        engine.replay(
            [story.log],
            out,
            checkpoint=checkpoint,
            batch_events=BATCH_EVENTS,
            on_batch=lambda record: done.append(record.batch),
        )
        return done

    # Interrupted before batch 6 touched anything: arenas and state are those of batch 5.
    script(worker_faults, [("route-read", 6, "raise")])
    with pytest.raises(NearcastError, match="scripted failure at route-read of batch 6"):
        replay()
    lose(checkpoint, "offsets", 6)
    lose(checkpoint, "commits", 5)
    assert replay() == list(range(5, BATCHES))
    story.check(out)
    # Finished, but Spark does not know it.
    lose(checkpoint, "commits", last)
    assert replay() == [last]
    story.check(out)
    # The last two batches, of which the first publishes a move and the second takes it in.
    lose(checkpoint, "offsets", last)
    lose(checkpoint, "commits", last, last - 1)
    assert replay() == [last - 1, last]
    story.check(out)
    # Nothing was lost: nothing is done.
    assert replay() == []
    story.check(out)
