"""What a `knn` subscription means, in plain Python."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearcast.model.expression import Expression, evaluate
from nearcast.model.space import Space, distance
from nearcast.model.standing import FOREVER, Change, Seen, Standing

__all__ = ["Entry", "Nearest"]


@dataclass(slots=True)
class Entry:
    """An object in a result, or next in line for one."""

    distance: float
    time: int
    object: Any


@dataclass(slots=True)
class Nearest(Standing):
    """The k objects nearest to x, y that make `where` true; with `window`, only those younger."""

    space: Space
    x: float
    y: float
    k: int
    where: Expression
    window: int | None = None
    """Milliseconds."""
    entries: list[Entry] = field(default_factory=list)
    """By (distance, order of arrival), so that the first k are the result. With a window, all that
    are young enough; without, the first k only, because nothing behind them can move up."""

    def matches(self, o: Seen) -> bool:
        """Any distance will do; the nearest k are kept."""
        return evaluate(self.where, o.words)

    def offer(self, o: Seen) -> Iterable[Change]:
        """It enters if it is among the k nearest; what is no longer among them leaves."""
        if self.window is not None and o.now - o.time >= self.window:
            return
        away = float(distance(self.space.code, self.x, self.y, o.x, o.y))
        rank = bisect_right(self.entries, away, key=lambda e: e.distance)
        self.entries.insert(rank, Entry(away, o.time, o.name))
        if rank < self.k:
            yield Change("enter", o.name, o.time, away)
            if len(self.entries) > self.k:
                yield Change("leave", self.entries[self.k].object, o.time)
        if self.window is None:
            del self.entries[self.k :]

    def begin(self, past: Sequence[Seen], time: int) -> Iterable[Change]:
        """The k nearest enter, nearest first; with a window, of those that are young at `time`."""
        for o in past:
            if self.window is None or time - o.time < self.window:
                away = float(distance(self.space.code, self.x, self.y, o.x, o.y))
                self.entries.append(Entry(away, o.time, o.name))
        self.entries.sort(key=lambda e: e.distance)
        if self.window is None:
            del self.entries[self.k :]
        for e in self.entries[: self.k]:
            yield Change("enter", e.object, time, e.distance)

    def answer(self, seen: Sequence[Seen], limit: int | None) -> list[tuple[Seen, float | None]]:
        """The k nearest, nearest first; of equally near ones the earlier object."""
        away = [float(distance(self.space.code, self.x, self.y, o.x, o.y)) for o in seen]
        ordered = sorted(zip(seen, away, strict=True), key=lambda pair: pair[1])
        return list(ordered[: min(self.k, limit or self.k)])

    def next_moment(self) -> int:
        """When the oldest object is no longer younger than the window."""
        if self.window is None or not self.entries:
            return FOREVER
        return min(e.time for e in self.entries) + self.window

    def pass_moment(self, moment: int) -> Iterable[Change]:
        """What is too old leaves, then what moves up enters."""
        assert self.window is not None
        before = self.entries[: self.k]
        self.entries = [e for e in self.entries if moment - e.time < self.window]
        after = self.entries[: self.k]
        for e in before:
            if not any(e is other for other in after):
                yield Change("leave", e.object, moment)
        for e in after:
            if not any(e is other for other in before):
                yield Change("enter", e.object, moment, e.distance)

    def held(self) -> dict[str, Any]:
        """A row of NEAREST."""
        return {
            "distance": [e.distance for e in self.entries],
            "time": [e.time for e in self.entries],
            "outlived": [0] * len(self.entries),
            "object": [e.object for e in self.entries],
        }

    def hold(self, row: dict[str, Any]) -> None:
        """From a row of NEAREST."""
        columns = (row["distance"], row["time"], row["object"])
        self.entries = [Entry(*entry) for entry in zip(*columns, strict=True)]
