"""Upkeep: what keeps a run from growing without end, a little after every so many batches.

Nothing that recovery may need is removed: Spark repeats the last batch, or the last few when the
machine lost power. Each step writes down first what stays known of the things that it removes, so
a crash between the two leaves files that the next upkeep removes.
"""

from __future__ import annotations

from pathlib import Path

from nearcast.engine import faults
from nearcast.engine.feed.source import Feed
from nearcast.engine.moves.balancer import forget_looks
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.batch_files import forget_temporary_before
from nearcast.engine.output.reports import Reports
from nearcast.engine.output.rolling import Roller
from nearcast.wire.consumed import say_consumed

__all__ = ["EVERY", "KEPT", "KEPT_OF_REPLAYS", "Upkeep"]

EVERY = 64
"""Batches from one upkeep to the next."""
KEPT = 128
"""Batches whose plans and reports a live run keeps, at least."""
KEPT_OF_REPLAYS = 10_000
"""The same of a replay, whose summary says more of single batches."""
_TRIED = 10  # batches after which what a failed attempt left is removed


class Upkeep:
    """What the sink does at the end of a batch besides."""

    def __init__(self, settings: Settings, checkpoint: Path, out: Path, run: str) -> None:
        self.checkpoint, self.out = checkpoint, out
        self.kept = KEPT if settings.order == "arrival" else KEPT_OF_REPLAYS
        self.reports, self.feed = Reports(checkpoint), Feed(checkpoint)
        self.live = settings.order == "arrival"
        self.roller = Roller(out, settings.format, settings.keep_ms, run) if settings.keep else None

    def after(self, batch: int) -> None:
        """Do what is due after a batch."""
        if (batch + 1) % EVERY:
            return
        faults.reach("upkeep-begin", batch)
        self.reports.fold(batch - self.kept)
        faults.reach("upkeep-folded", batch)
        self.feed.forget(batch - self.kept)
        if self.live:
            say_consumed(self.out, self.feed.consumed())
        faults.reach("upkeep-forgotten", batch)
        forget_looks(self.checkpoint)
        forget_temporary_before(self.out, batch - _TRIED)
        if self.roller is not None:
            self.roller.roll(batch)
        faults.reach("upkeep-done", batch)
