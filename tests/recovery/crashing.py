"""Runs that crash on their way, at chosen points of chosen batches, without a JVM."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.engine.contract import Miniature
from tests.recovery.story import script

from nearcast.engine.balance import HOLDS_AFTER
from nearcast.engine.source import Feed

Crash = tuple[str, int]  # point, batch


def at_every_step(decided: Sequence[int], points: Iterable[str]) -> Iterator[Crash]:
    """A crash at each point in every batch that takes part in a change of the routing: the one that
    leads to it, the one that it is decided after, the one that exports, the one that takes in.

    A run with several changes, decided after the batches `decided`, shares the points out among
    them. A batch may crash several times in a row, each time a step further on, over what the
    tries before it left behind.
    """
    for n, point in enumerate(points):
        first = decided[n % len(decided)]
        for batch in range(first - 1, first + HOLDS_AFTER + 1):
            yield point, batch


def run_through(run: Miniature, faults: Path, crashes: Iterable[Crash]) -> None:
    """All batches, each as often as it takes; now and then a crash takes the arenas with it."""
    waiting = set(crashes)
    script(faults, [(point, batch, "raise") for point, batch in waiting])
    while run.next < len(Feed(run.checkpoint)):
        try:
            run.batch(run.next)
        except RuntimeError as error:
            waiting -= {c for c in waiting if f"at {c[0]} of batch {c[1]}" in str(error)}
            if len(waiting) % 5 == 2:
                shutil.rmtree(run.arenas, ignore_errors=True)
    assert not waiting
