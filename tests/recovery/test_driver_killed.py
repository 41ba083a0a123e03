"""kill -9 of the driver, at scripted points and from outside: the same command goes on."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from tests.recovery.process import PATIENCE_SECONDS, Replay
from tests.recovery.story import BATCH_EVENTS, BATCHES, STILL, Story, script

pytestmark = pytest.mark.spark


def test_killed_at_every_point_of_the_sink(tmp_path: Path, story: Story) -> None:
    """One run, a start more than there are points; with shards that are balanced and move.

    Statistics are ordered after batch 3, the balance is decided after 4, exported after 5, taken in
    before 6; kNN subscriptions move with batches 1, 3, 5, ... (every kind of move, at every point:
    see test_balance_steps).
    """
    eager = {"threshold": 1.0, "least": 0, "wait": 0, "beta": 0.0}
    balance = {"mode": "auto", "rectangles": 1, **eager}
    strategies = {"range": "tornado", "knn": "random"}
    options = {"shards": 3, "strategies": strategies, "warmup": 5, "balance": balance}
    replay = Replay(tmp_path / "run", story.log, BATCH_EVENTS, options)
    points = ("sink-begin", 1), ("sink-renamed", 3), ("sink-decided", 4), ("sink-controlled", 5)
    for point, batch in points:
        script(replay.faults, [(point, batch, "kill")])
        session = replay.start()
        try:
            assert session.wait() == -signal.SIGKILL, "\n".join(session.said()[-40:])
        finally:
            session.kill()
        assert f"batch {batch}" not in session.said()
    summary = replay.finish()
    assert summary["batches"] == BATCHES
    assert summary["resumed_after_batches"] == 5
    adjustments = summary["balance"]["adjustments"]
    assert adjustments[0]["batch"] == 4
    assert all(d["reason"] for a in adjustments for d in a["decisions"])
    assert sum(a["moved"] for a in adjustments) > 0
    assert (replay.out / "balance.svg").exists()
    story.check(replay.out)


def test_killed_from_outside_at_any_time(tmp_path: Path, story: Story) -> None:
    """While it starts or plans, and while a batch runs."""
    replay = Replay(tmp_path / "run", story.log, BATCH_EVENTS, {"shards": 2, "strategies": STILL})
    session = replay.start()
    settings = tmp_path / "run" / "checkpoint" / "settings.json"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not settings.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    session.kill()
    session = replay.start()
    try:
        session.wait_for("batch 4")
        time.sleep(0.15)  # into the next batch
    finally:
        session.kill()
    summary = replay.finish()
    assert summary["batches"] == BATCHES
    story.check(replay.out)
