"""Runs that crash on their way, at chosen points of chosen batches, without a JVM."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.engine.contract import Miniature
from tests.recovery.story import script

from nearcast.engine.feed.source import Feed
from nearcast.engine.moves.balancer import HOLDS_AFTER
from nearcast.engine.shard.state import Manifest

Crash = tuple[str, int]  # point, batch


def batches_of(decided: int) -> range:
    """The batches that take part in a change of the routing that was decided after a batch: the one
    that leads to it, that one, the one that exports, the one that takes in."""
    return range(decided - 1, decided + HOLDS_AFTER + 1)


@dataclass(frozen=True, slots=True)
class Moment:
    """A run as it was before a batch, to be gone back to as often as need be."""

    run: Miniature
    batch: int
    states: list[Manifest]
    copy: Path

    @staticmethod
    def of(run: Miniature, copy: Path) -> Moment:
        """As it is now."""
        shutil.copytree(run.folder, copy)
        return Moment(run, run.next, run.states[run.next], copy)

    def back(self) -> Miniature:
        """The run as it was; in its old place, since its files know where they are."""
        shutil.rmtree(self.run.folder)
        shutil.copytree(self.copy, self.run.folder)
        self.run.next, self.run.states = self.batch, {self.batch: self.states}
        return self.run


def run_through(run: Miniature, faults: Path, crashes: Iterable[Crash], rng: Random) -> None:
    """All batches, each as often as it takes; now and then a crash takes the arenas with it."""
    waiting = set(crashes)
    script(faults, [(point, batch, "raise") for point, batch in waiting])
    while run.next < len(Feed(run.checkpoint)):
        try:
            run.batch(run.next)
        except RuntimeError as error:
            waiting -= {c for c in waiting if f"at {c[0]} of batch {c[1]}" in str(error)}
            if rng.random() < 0.3:
                shutil.rmtree(run.arenas, ignore_errors=True)
    assert not waiting
