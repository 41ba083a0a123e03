"""A query that ended because executors died is started again, as long as batches get done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from nearcast.engine.spark.query import RunFailed
from nearcast.engine.spark.restarting import RESTARTS, RestartingQuery

LOST = "Job aborted: Task 0 failed 4 times (ExecutorLostFailure (executor 3 exited ...))"
UNREAD = (
    "Job aborted due to stage failure: A shuffle map stage with indeterminate output was failed "
    "and retried. However, Spark cannot rollback the ResultStage 15 to re-process the input data"
)


class Query:
    """As much of a Spark query as it takes: it fails with a text, or ends well without one."""

    def __init__(self, failure: str = "") -> None:
        self.failure = failure
        self.isActive = not failure

    def exception(self) -> None:
        return None

    def processAllAvailable(self) -> None:  # noqa: N802 -- Spark's name
        if self.failure:
            raise StreamingQueryException(self.failure)

    def awaitTermination(self, _: float | None = None) -> bool:  # noqa: N802 -- Spark's name
        self.processAllAvailable()
        return False

    def stop(self) -> None:
        self.isActive = False


class Starts:
    """Starts one query after the other; `gain` batches are done in each of them."""

    def __init__(self, failures: list[str], gain: int = 0) -> None:
        self.left = [*map(Query, failures), Query()]
        self.gain, self.done = gain, 0

    def __call__(self) -> Any:
        self.done += self.gain
        return self.left.pop(0)


def restarting(starts: Starts, restarts: int = RESTARTS) -> RestartingQuery:
    return RestartingQuery(starts, lambda: starts.done, restarts)


WAYS: list[Callable[[RestartingQuery], object]] = [
    RestartingQuery.finish,
    RestartingQuery.wait,
    lambda query: query.wait(1.0),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("failures", "gain"), [(RESTARTS, 0), (3 * RESTARTS, 1)])
def test_as_long_as_batches_get_done(
    way: Callable[[RestartingQuery], object], failures: int, gain: int
) -> None:
    starts = Starts([LOST] * failures, gain)
    query = restarting(starts)
    way(query)
    assert starts.left == []
    assert query.now.isActive
    query.stop()
    assert not query.now.isActive  # the new one, not the first


@pytest.mark.parametrize("way", WAYS)
def test_not_for_ever(way: Callable[[RestartingQuery], object]) -> None:
    with pytest.raises(RunFailed):
        way(restarting(Starts([LOST] * (RESTARTS + 1))))


@pytest.mark.parametrize(
    ("text", "restarts"),
    [
        ("ValueError: a bug", RESTARTS),
        (LOST, 0),  # a local master
        (f"{LOST} nearcast.model.errors.NearcastError: no space left", RESTARTS),
    ],
)
def test_not_for_other_reasons(text: str, restarts: int) -> None:
    starts = Starts([text], 1)
    with pytest.raises(RunFailed):
        restarting(starts, restarts).finish()
    assert len(starts.left) == 1


def test_output_that_was_lost_with_its_executor() -> None:
    starts = Starts([UNREAD, UNREAD])
    restarting(starts).finish()
    assert not starts.left


def test_it_goes_on_though_nobody_waits() -> None:
    starts = Starts([LOST] * 3, 1)
    query = restarting(starts)
    query.watch()
    for thread in threading.enumerate():
        if thread.name == "nearcast-restarts":
            thread.join(60)
    assert starts.left == []
    assert query.now.isActive


def test_a_thread_that_cannot_go_on_leaves_the_reason() -> None:
    query = restarting(Starts([LOST, "ValueError: a bug"], 1))
    query.watch()
    with pytest.raises(RunFailed, match="a bug"):
        query.finish()


def test_not_when_it_was_stopped() -> None:
    """A tailer that breaks stops it for good, even while its executors die."""
    starts = Starts([LOST])
    query = restarting(starts)
    query.stop()
    with pytest.raises(RunFailed):
        query.wait()
    assert len(starts.left) == 1
