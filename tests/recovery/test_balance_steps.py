"""Crashes at every step of every kind of adjustment: querying, deciding, exporting, taking in."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.engine.contract import Miniature, difference, expected, reported
from tests.engine.decisions import BATCH_EVENTS, WAYS, Way, decided_after, index_for, made
from tests.recovery.crashing import Moment, batches_of, run_through

from nearcast.engine import faults as points
from nearcast.testing.oracle import Order

pytestmark = pytest.mark.slow


def crash_at_each_point(way: Way, order: Order, memory: Path, faults: Path) -> None:
    """One crash in each batch of the decision, at one point after the other of the batch.

    The run starts each time as it was before the first of these batches, and goes on to its end.
    """
    undisturbed, seed = made(way, index_for(way, order), order, memory / "undisturbed")
    decided = decided_after(undisturbed, way.kind)[0]
    batches = batches_of(decided)
    assert batches[-1] < undisturbed.next  # the last of them is part of the log
    folder = memory / "run"
    run = Miniature(way.settings(index_for(way, order), order, folder), folder)
    log = way.log(seed, order)
    run.feed(log, BATCH_EVENTS)
    while run.next < batches[0]:
        run.batch(run.next)
    moment = Moment.of(run, memory / "copy")
    wanted = expected(log, run.settings.space, order)
    for point in points.POINTS:
        crashes = [(point, batch) for batch in batches]
        run_through(moment.back(), faults, crashes, Random(f"{way.kind} {point}"))
        # Later ones may differ: an index that was built anew does its work in other steps.
        assert decided in decided_after(run, way.kind), point
        assert difference(reported(run.out), wanted) == "", point


@pytest.mark.parametrize("name", WAYS)
def test_a_crash_at_every_point_of_each_kind(name: str, memory: Path, faults: Path) -> None:
    """Ways by turns in both orders, and so with the usual index and with that of the paper."""
    order: Order = "arrival" if list(WAYS).index(name) % 2 else "time"
    crash_at_each_point(WAYS[name], order, memory, faults)
