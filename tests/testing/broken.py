"""Indexes that are wrong on purpose, each in one way: what the checks are checked with.

All are the scan with one method spoiled, so that what differs is what is wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.scan import Scan, Sub
from nearcast.kernels.slots import REPLACED, REPORTS, SUBSCRIBE
from nearcast.kinds.knn.definition import Entry, Nearest
from nearcast.model.space import distance
from nearcast.model.standing import FOREVER, Change, Seen
from nearcast.wire.changes import Changes, Texts, Work
from nearcast.wire.tables import ObjectColumns, empty


def where_caused(changes: Changes, objects: ObjectColumns) -> NDArray[np.float64]:
    """x of the object that each change goes with; 0 behind the last object of a batch."""
    return np.append(objects.x[objects.order], 0.0)[changes.order]


class LosesBorders(Scan):
    """Takes a cell to end before its border: what lies on a multiple of 4 is lost."""

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        changes = super().match(objects, clock, now, net)
        x = where_caused(changes, objects)
        return changes.take(np.flatnonzero((x == 0) | (x % 4 != 0)))


class FlatWorld(Scan):
    """Knows one side of the antimeridian only."""

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        changes = super().match(objects, clock, now, net)
        return changes.take(np.flatnonzero(where_caused(changes, objects) > -179))


class Duplicates(Scan):
    """Finds everything in two lists."""

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        changes = super().match(objects, clock, now, net)
        return changes.take(np.repeat(np.arange(len(changes)), 2))


class Backwards(Scan):
    """Reports the changes of a batch in the wrong order."""

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        changes = super().match(objects, clock, now, net)
        return changes.take(np.arange(len(changes))[::-1])


class ForgetsDeletes(Scan):
    """Does nothing on an unsubscribe."""

    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        kept = np.flatnonzero(controls["op"].to_numpy() == SUBSCRIBE)
        super().apply(controls.take(pa.array(kept)), at[kept])


class IgnoresReplacement(Scan):
    """Keeps what was there under a subscribed id."""

    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        for n in range(controls.num_rows):
            row = controls.slice(n, 1)
            if row["op"][0].as_py() == SUBSCRIBE:
                self._latest.pop(row["id"][0].as_py(), None)
            super().apply(row, at[n : n + 1])


class IgnoresOtherKinds(Scan):
    """Does not notice that another kind took an id over."""

    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        kept = np.flatnonzero(controls["op"].to_numpy() != REPLACED)
        super().apply(controls.take(pa.array(kept)), at[kept])


class KeepsOldResult(Scan):
    """A replaced subscription starts with the result, and the end, of the one before it."""

    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        before = dict(self._latest)
        super().apply(controls, at)
        for id_, old in before.items():
            new = self._latest.get(id_, old)
            if new is not old:
                if isinstance(new.standing, Nearest) and isinstance(old.standing, Nearest):
                    new.standing.entries = list(old.standing.entries)
                new.start = old.start


class ExpiresLate(Scan):
    """Sees what comes at the very end, too."""

    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        first = len(self._subs)
        super().apply(controls, at)
        for sub in self._subs[first:]:
            sub.end += 1


class EndsAtOnce(Scan):
    """Forgets a subscription when its unsubscribe arrives, so that late objects find nobody."""

    def close(self) -> None:
        for sub in self._subs:
            if sub.ends:
                sub.live = False
        super().close()


class LeaksBetweenBatches(Scan):
    """Does not forget the order within a batch when that is over."""

    def close(self) -> None:
        kept = [(sub, sub.born, list(sub.ends)) for sub in self._subs]
        super().close()
        for sub, born, ends in kept:
            sub.born, sub.ends = born, ends


class RemembersTheLastBatch(Scan):
    """Reports again what it reported last when there is nothing to report."""

    last: Changes | None = None

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        changes = super().match(objects, clock, now, net)
        if len(objects.order) == 0 and self.last is not None:
            return self.last
        self.last = changes
        return changes


class OneShot(Scan):
    """A subscription is used up by the first batch that reports of it."""

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        changes = super().match(objects, clock, now, net)
        for slot in changes.slot.tolist():
            self._subs[slot].end = self._subs[slot].start
        return changes


class WritesToItsInput(Scan):
    """Uses the clock it was given as scratch."""

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        changes = super().match(objects, clock, now, net)
        clock[:] = now + 1
        return changes


class ForgetsEchoes(Scan):
    """Keeps the id, and not what stands behind it."""

    def texts(self, slots: NDArray[np.int64]) -> Texts:
        texts = super().texts(slots)
        texts.tail_lengths = np.zeros_like(texts.tail_lengths)
        return texts


class AlwaysReports(Scan):
    """Takes every copy for the subscription itself."""

    def reports(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.ones(len(slots), bool)


class ExportsWithoutFlags(Scan):
    """Everything that was exported reports afterwards."""

    def rows(self, slots: NDArray[np.int64]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        controls, results = super().rows(slots)
        place = controls.schema.get_field_index("flags")
        flags = pa.array(controls["flags"].to_numpy() | REPORTS)
        return controls.set_column(place, controls.schema.field(place), flags), results


class ForgetsResultsOnExport(Scan):
    """Exports subscriptions as if they had just come."""

    def rows(self, slots: NDArray[np.int64]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        return super().rows(slots)[0], empty(self.results)


class ForgetsEndsOnExport(Scan):
    """Exports the interval that was ordered at first."""

    def rows(self, slots: NDArray[np.int64]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        controls, results = super().rows(slots)
        ends = [self._subs[slot].row["end"] for slot in slots.tolist()]
        place = controls.schema.get_field_index("end")
        ended = pa.array(ends, pa.int64())
        return controls.set_column(place, controls.schema.field(place), ended), results


class CompactsTooMuch(Scan):
    """Forgets the last of the living as well."""

    def compact(self, now: int) -> None:
        super().compact(now)
        if self._subs:
            self._subs[-1].live = False


class NeverForgets(Scan):
    """Keeps the dead when it is compacted."""

    def compact(self, now: int) -> None:
        pass


class KeepsNoFiles(Scan):
    """Has its state in memory only, whatever the storage."""

    def load(self) -> None:
        super().load()
        self._subs, self._latest = [], {}


class ChangesInSecret(Scan):
    """Says that nothing changed."""

    def changed(self) -> pa.RecordBatch:
        return empty(self.results)


class NeverClean(Scan):
    """Goes on to say of a batch that is over what changed in it."""

    def changed(self) -> pa.RecordBatch:
        return self._results(list(range(len(self._subs))))


class DropsNothing(Scan):
    """Lets what moved away see on."""

    def drop(self, ids: pa.Array) -> None:
        pass


class ExportsTheDropped(Scan):
    """Sees nothing with what moved away, until it is compacted."""

    def living(self, now: int) -> NDArray[np.int64]:
        return np.flatnonzero(np.array([s.end > now > s.start for s in self._subs], bool))

    def rows(self, slots: NDArray[np.int64]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        for slot in slots.tolist():
            self._subs[slot].live = True
        return super().rows(slots)


class CountsNothing(Scan):
    """Does its work and does not say how much."""

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        changes = super().match(objects, clock, now, net)
        changes.work = Work()
        return changes


class CountsForEver(Scan):
    """Counts the work of all batches so far."""

    total = 0

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        changes = super().match(objects, clock, now, net)
        self.total = (self.total + changes.work.scanned) * 100
        changes.work = Work(changes.work.examined, 0, self.total)
        return changes


class Misunderstands(Scan):
    """Works by another definition of the nearest objects than the kind's own."""

    nearest: ClassVar[type[Nearest]] = Nearest

    def _sub(self, row: dict[str, Any], before: int) -> Sub:
        sub = super()._sub(row, before)
        right = sub.standing
        if isinstance(right, Nearest):
            own = (right.x, right.y, right.k, right.where, right.window)
            sub.standing = self.nearest(right.space, *own)
        return sub


class NewestFirst(Nearest):
    """At equal distance the newer object takes the place."""

    def offer(self, o: Seen) -> Iterable[Change]:
        if self.window is not None:
            return super().offer(o)
        away = float(distance(self.space.code, self.x, self.y, o.x, o.y))
        rank = bisect_left(self.entries, away, key=lambda e: e.distance)
        self.entries.insert(rank, Entry(away, o.time, o.name))
        changes = []
        if rank < self.k:
            changes.append(Change("enter", o.name, o.time, away))
            if len(self.entries) > self.k:
                changes.append(Change("leave", self.entries[self.k].object, o.time))
        del self.entries[self.k :]
        return changes


class NewcomersWin(Misunderstands):
    """At equal distance the newer object takes the place."""

    nearest = NewestFirst


class LaterByOne(Nearest):
    """An object leaves one millisecond after it should."""

    def next_moment(self) -> int:
        return min(super().next_moment() + 1, FOREVER)


class LetsGoLate(Misunderstands):
    """An object leaves one millisecond after it should."""

    nearest = LaterByOne


class LetsGoWithObjectsOnly(Scan):
    """Time stands still while nothing is published."""

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        del now  # as if time ended with the last object
        return super().match(objects, clock, int(clock.max(initial=-(2**62))), net)


class NobodyInLine(Nearest):
    """When an object of a window leaves, its place stays empty."""

    def pass_moment(self, moment: int) -> Iterable[Change]:
        del self.entries[self.k :]
        return super().pass_moment(moment)


class NothingMovesUp(Misunderstands):
    """When an object of a window leaves, its place stays empty."""

    nearest = NobodyInLine


BROKEN: list[type[Scan]] = [
    c
    for c in globals().values()
    if isinstance(c, type) and issubclass(c, Scan) and c not in (Scan, Misunderstands)
]
