"""Tasks that fail half-way: Spark tries them again, or the same call goes on afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.recovery.process import Replay
from tests.recovery.story import BATCH_EVENTS, BATCHES, MOVING, STILL, Story, script

from nearcast.engine import Engine
from nearcast.engine.faults import POINTS
from nearcast.model.errors import NearcastError

pytestmark = pytest.mark.spark

# Of a move: batches 1, 3, 5 export and publish, batches 2, 4, 6 take in. Every point in every
# batch is tried in test_steps; here are those where Spark's part differs.
MOVES = [
    ("shard-exported", 1, "kill"),
    ("shard-begin", 2, "kill"),
    ("sink-renamed", 3, "raise"),
    ("sink-controlled", 5, "raise"),
    ("shard-begin", 6, "raise"),
]
OTHERS = [
    ("route-read", 1, "raise"),
    ("shard-arena-committed", 3, "kill"),
    ("sink-begin", 5, "raise"),
]


@pytest.mark.parametrize(
    ("strategies", "shards", "scripted"),
    [(MOVING, 3, MOVES), (STILL, 2, OTHERS)],
    ids=["moving", "still"],
)
def test_the_same_call_goes_on_after_any_failure(
    strategies: dict[str, str],
    shards: int,
    scripted: list[tuple[str, int, str]],
    tmp_path: Path,
    story: Story,
    spark: SparkSession,
    worker_faults: Path,
) -> None:
    """A local session tries a task once, so each failure ends the query with an error."""
    script(worker_faults, scripted)
    arena = str(tmp_path / "arena")
    engine = Engine(shards=shards, strategies=strategies, arena=arena, spark=spark)
    errors: list[NearcastError] = []
    while True:
        try:
            summary = engine.replay(
                [story.log],
                tmp_path / "out",
                checkpoint=tmp_path / "checkpoint",
                batch_events=BATCH_EVENTS,
            )
            break
        except NearcastError as error:
            errors.append(error)
            assert len(errors) <= len(scripted)
    assert list(worker_faults.iterdir()) == []
    assert len(errors) == len(scripted)
    assert all("\n" not in str(error) for error in errors)
    raised = [str(e) for e in errors if "scripted failure at " in str(e)]
    assert len(raised) == sum(action == "raise" for _, _, action in scripted)
    assert summary["batches"] == BATCHES
    story.check(tmp_path / "out")


def test_spark_tries_failed_tasks_again(tmp_path: Path, story: Story) -> None:
    """One undisturbed query, in which a worker fails or dies at every point there is in one."""
    replay = Replay(
        tmp_path / "run",
        story.log,
        BATCH_EVENTS,
        {"shards": 3, "strategies": {"range": "random+pyramid", "knn": "random"}},
        master="local[2,4]",
    )
    # One batch for each: the log has no more. `tests/engine/test_lasts.py` has the others.
    others = ("shard-begun", "shard-looked-back")
    in_workers = [p for p in POINTS if not p.startswith("sink-") and p not in others]
    faults = [(p, n + 1, "kill") for n, p in enumerate(in_workers)]
    faults += [(p, n + 3, "raise") for n, p in enumerate(in_workers)]
    script(replay.faults, faults)
    summary = replay.finish()
    assert list(replay.faults.iterdir()) == []
    assert summary["resumed_after_batches"] == 0
    assert sum(shard["rebuilds"] for shard in summary["shards"]) >= 4
    story.check(replay.out)
