"""Executors that die in the middle of a stream, on a real cluster."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.recovery.cluster import Cluster
from tests.recovery.process import PATIENCE_SECONDS, Replay
from tests.recovery.story import BATCH_EVENTS, Story, script

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


def test_the_stream_goes_on(tmp_path: Path, story: Story) -> None:
    """One dies while a batch runs (a task of it has just failed), one between batches."""
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
        script(replay.faults, [("shard-begin", 3, "raise")])
        session = replay.start()
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while list(replay.faults.iterdir()):
                assert session.process.poll() is None, "\n".join(session.said()[-40:])
                assert time.monotonic() < deadline
                time.sleep(0.005)
            cluster.kill_executor()
            try:
                session.wait_for("batch 6")
                while not cluster.executors():
                    time.sleep(0.05)
                cluster.kill_executor()
            except AssertionError:
                assert session.process.poll() is not None, "it hangs"
            if session.wait() != 0:
                # Spark gives a job up that loses executors at a bad moment; the same call goes on.
                session = replay.start()
                assert session.wait() == 0, "\n".join(session.said()[-40:])
        finally:
            session.kill()
    story.check(replay.out)
