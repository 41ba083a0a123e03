"""Sums over all batches of a checkpoint, so that the records of old ones need not be kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from nearcast.engine.formats import FORMAT

if TYPE_CHECKING:
    from nearcast.engine.output.reports import BatchRecord

__all__ = ["LOADS", "Totals"]

LOADS = ("objects", "controls", "examined", "lookups", "scanned", "seconds", "match_seconds")


class Totals(msgspec.Struct):
    """What batches did in all, up to one of them."""

    checkpoint_format: int = FORMAT
    batches: int = 0  # how many, which is the number of the first that is not in them
    seconds: float = 0.0  # that they took
    events: dict[str, int] = {}  # by op
    notifications: dict[str, int] = {}  # "range.match": n
    rejects: int = 0
    reject_kinds: dict[str, int] = {}
    moved: int = 0  # copies of subscriptions that changed shards
    loads: dict[int, dict[str, float]] = {}  # by shard

    def add(self, records: Iterable[BatchRecord]) -> Totals:
        """Add later batches; itself."""
        for record in records:
            self.batches = record.batch + 1
            self.seconds += record.seconds
            for r in record.reports:
                _sum(self.events, r.events)
                _sum(self.notifications, r.notifications)
                _sum(self.reject_kinds, r.reject_kinds)
                self.rejects += r.rejects
                self.moved += r.moved
                load = self.loads.setdefault(r.shard, {})
                for name in LOADS:
                    load[name] = load.get(name, 0) + getattr(r, name)
                told = sum(r.notifications.values())
                load["notifications"] = load.get("notifications", 0) + told
                load["rebuilds"] = load.get("rebuilds", 0) + r.rebuilt
        return self

    @property
    def read(self) -> int:
        """Events, refused ones included."""
        return sum(self.events.values())


def _sum(into: dict[str, int], more: dict[str, int]) -> None:
    for name, n in more.items():
        into[name] = into.get(name, 0) + n
