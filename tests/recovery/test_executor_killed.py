"""Executors that die in the middle of a stream, on a real cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.recovery.cluster import Cluster
from tests.recovery.process import Replay
from tests.recovery.story import BATCH_EVENTS, Story, script

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

# Where an executor is when it is killed, one for each batch: in the route step, and in the shard
# step before, in and after its work. Two in batch 5, so that a repeated batch is hit again.
MOMENTS = (
    ("route-read", 1),
    ("shard-begin", 3),
    ("shard-matched", 5),
    ("shard-state-written", 5),
    ("shard-arena-committed", 7),
)


def test_the_stream_goes_on(tmp_path: Path, story: Story) -> None:
    """Whenever executors die, the same call goes on by itself, and the log is exact."""
    with Cluster(tmp_path) as cluster:
        replay = Replay(
            tmp_path / "run",
            story.log,
            BATCH_EVENTS,
            {"shards": 3, "strategies": {"range": "hash+pyramid", "knn": "random"}},
            master=cluster.url,
            spark={
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.executor.memory": "512m",
                "spark.executorEnv.NEARCAST_FAULTS": str(tmp_path / "run" / "faults"),
            },
        )
        script(replay.faults, [(*moment, "kill-executor") for moment in MOMENTS])
        session = replay.start()
        try:
            session.wait_for("batch 8")
            cluster.kill_executor()  # while the driver may be in the sink
            assert session.wait() == 0, "\n".join(session.said()[-40:])
        finally:
            session.kill()
        assert not list(replay.faults.iterdir()), "a moment that never came"
    story.check(replay.out)
