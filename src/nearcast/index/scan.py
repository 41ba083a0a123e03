"""`scan`: every object against every subscription, in plain Python. The oracle and the baseline.

It works by the kind's own definition (`model.standing`); it is slow on purpose. Words are hashes
here as everywhere behind the wire.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.index.base import LocalIndex
from nearcast.kernels.slots import FORMER, REPORTS, SUBSCRIBE, UNSUBSCRIBE
from nearcast.model.frame import Window
from nearcast.model.space import Space
from nearcast.model.standing import Change, Seen, Standing
from nearcast.wire.carried import Carried
from nearcast.wire.changes import Changes, Texts, Work
from nearcast.wire.kind import Event
from nearcast.wire.tables import ObjectColumns, empty


class Defined(Protocol):
    """As much of a kind as the scan must know."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of its subscriptions."""

    @property
    def results_schema(self) -> pa.Schema:
        """The columns of its results."""

    @property
    def events(self) -> tuple[Event, ...]:
        """What it reports."""

    @property
    def window(self) -> Window | None:
        """The window of the run, if all of its objects count."""

    @property
    def after_objects(self) -> bool:
        """Whether its moments come after the objects of their time."""

    def standing(self, row: dict[str, Any], space: Space) -> Standing:
        """A subscription of a row of `schema`."""


_NOT_SEALED = -1  # `objects.base.NOT_SEALED`, which is a layer above


class Name(bytes):
    """The id of one object. Two objects of one id are two names: `net` must not confuse them."""


@dataclass(slots=True)
class Sub:
    """A subscription, its row of the kind's table, and what it holds."""

    row: dict[str, Any]
    standing: Standing
    start: int
    end: int
    born: int = 0
    # (objects before it, how far time had come, end until then) of each end in this batch
    ends: list[tuple[int, int, int]] = field(default_factory=list)
    live: bool = True
    changed: bool = False
    begun: bool = False  # of a kind with a window of the run: it has its first result

    def sees(self, i: int, time: int, until: int, whole: bool = False) -> bool:
        """SPEC section 4, for object number `i` of the batch; `whole`: of the run's window."""
        end = next((old for at, _, old in self.ends if i < at), self.end)
        begun = self.start < end if whole else self.start <= time
        return self.live and i >= self.born and begun and until < end

    def lives_at(self, moment: int, passed: int) -> bool:
        """Whether it reports what happens at a moment that has passed; see `Scan._pass_time`."""
        end = next((old for _, clock, old in self.ends if passed <= clock), self.end)
        return self.live and moment < end


Row = tuple[int, int, Change]  # number of the object, slot, what changed


class Scan(LocalIndex):
    """All subscriptions in a list."""

    name = "scan"
    paper = "baseline"
    about = "every object against every subscription, in plain Python: the oracle"

    def __init__(self, kind: Defined, space: Space, storage: Storage) -> None:
        self.kind = kind
        self.controls, self.results = kind.schema, kind.results_schema
        self._fields = any(event.field for event in kind.events)
        self._codes = {event.name: code for code, event in enumerate(kind.events)}
        self._carried = Carried()
        self._whole = kind.window is not None
        super().__init__(space, storage)
        self.load()

    def reach(self) -> int:
        return self.kind.window.span_ms if self.kind.window is not None else 0

    def first_rank(self, ranked: int) -> int:
        window = self.kind.window
        return window.first_rank(ranked) if window is not None and window.count else ranked

    def load(self) -> None:
        size = int(self.storage.array("scan.size", np.int64, 1, 1)[0])
        data = self.storage.array("scan", np.uint8, 1, 1)
        self._subs: list[Sub] = pickle.loads(data[:size].tobytes()) if size else []
        self._latest: dict[bytes, Sub] = {
            s.row["id"]: s for s in self._subs if not s.row["flags"] & FORMER
        }

    def close(self) -> None:
        self._carried = Carried()
        for sub in self._subs:
            sub.born, sub.changed = 0, False
            sub.ends.clear()
            sub.row["flags"] = self._flags(sub)
        data = np.frombuffer(pickle.dumps(self._subs), np.uint8)
        self.storage.array("scan", np.uint8, 1, len(data))[: len(data)] = data
        self.storage.array("scan.size", np.int64, 1, 1)[0] = len(data)

    def __len__(self) -> int:
        return len(self._subs)

    # -- subscriptions -----------------------------------------------------------------------

    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        for row, before in zip(controls.to_pylist(), at.tolist(), strict=True):
            if row["flags"] & FORMER:  # moved or restored: all that could end it has done so
                self._subs.append(self._sub(row, before))
                continue
            old = self._latest.get(row["id"])
            if old is not None and row["time"] < old.end:
                old.ends.append((before, row["clock"], old.end))
                old.end = row["time"]
            if row["op"] == SUBSCRIBE:
                self._subs.append(self._sub(row, before))
                self._latest[row["id"]] = self._subs[-1]
            elif row["op"] != UNSUBSCRIBE:  # the id means a subscription of another index now
                self._latest.pop(row["id"], None)

    def _sub(self, row: dict[str, Any], before: int) -> Sub:
        standing = self.kind.standing(row, self.space)
        standing.starts(row["time"])
        return Sub(row, standing, row["time"], row["end"], before)

    def drop(self, slots: NDArray[np.int64]) -> None:
        for slot in slots.tolist():
            sub = self._subs[slot]
            sub.live, sub.end = False, sub.start  # the end is what a snapshot keeps of it

    # -- objects -----------------------------------------------------------------------------

    def carry(self, carried: Carried) -> None:
        self._carried = carried

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        del net  # every change is reported
        found: list[Row] = []
        past = self._past() if self._whole else []
        for i, row in enumerate(objects.order.tolist()):
            o, until = _seen(objects, self._carried, row, int(clock[i])), int(objects.until[row])
            self._begin(i, past, clock, o.rank, found)
            for slot, sub in enumerate(self._subs):
                if i >= sub.born or not self.kind.after_objects:
                    self._pass_time(slot, sub, o.now - self.kind.after_objects, clock, found)
                if self._whole and i >= sub.born:
                    self._push(slot, sub, i, o, until, found)
                if sub.sees(i, o.time, until, self._whole) and sub.standing.matches(o):
                    found += [(i, slot, change) for change in sub.standing.offer(o)]
                    sub.changed = True
        self._begin(len(objects.order), past, clock, past[-1].rank + 1 if past else 0, found)
        for slot, sub in enumerate(self._subs):
            self._pass_time(slot, sub, now, clock, found)
        pairs = len(objects.order) * len(self._subs)
        return self._changes(found, Work(pairs, 0, pairs))

    def _pass_time(
        self, slot: int, sub: Sub, now: int, clock: NDArray[np.int64], found: list[Row]
    ) -> None:
        """Moments up to `now` at which time alone changes the result.

        One that comes after the objects of its time has passed when the clock shows more.
        """
        after = self.kind.after_objects
        last = max([sub.end, *(end for _, _, end in sub.ends)])
        while (moment := sub.standing.next_moment()) <= now:
            if after and moment >= last:
                return  # nothing of it matters any more
            changes = list(sub.standing.pass_moment(moment))
            sub.changed = True
            if sub.lives_at(moment, moment + after):
                i = max(bisect_left(clock.tolist(), moment + after), sub.born)
                found += [(i, slot, change) for change in changes]

    # -- windows of the run ------------------------------------------------------------------

    def _past(self) -> list[Seen]:
        """All objects that are kept, those of this batch included, in object order."""
        if self.past is None or all(sub.begun for sub in self._subs):
            return []
        numbers = [s.number for s in self.past.slices() if s.sealed]
        tables = [self.past.snapshot(number) for number in (*numbers, _NOT_SEALED)]
        rows = [row for table in tables for row in table.to_pylist()]
        return [_stored(row) for row in sorted(rows, key=lambda row: row["rank"])]

    def _begin(
        self, i: int, past: list[Seen], clock: NDArray[np.int64], published: int, found: list[Row]
    ) -> None:
        """First results of what was subscribed before object `i`, out of the window as it was.

        Before that, time passes for all up to the moment of the subscription, which comes after it.
        """
        window = self.kind.window
        if window is None:
            return
        before = int(clock[i - 1]) if i else self.now
        for slot, sub in enumerate(self._subs):
            if sub.begun or sub.born != i:
                continue
            sub.begun = sub.changed = True
            if sub.row["end"] <= sub.start or not sub.live:
                continue
            now = max(sub.start, sub.row["clock"], before)
            for other, held in enumerate(self._subs):
                self._pass_time(other, held, now - 1, clock, found)
            seen = [
                o
                for o in past
                if o.rank < published and window.holds(o.time, o.rank, now, published)
                if o.time < sub.row["end"] and sub.standing.matches(o)
            ]
            found += [(i, slot, change) for change in sub.standing.begin(seen, sub.start)]

    def _push(self, slot: int, sub: Sub, i: int, o: Seen, until: int, found: list[Row]) -> None:
        """What an object pushes out of the window."""
        changes = list(sub.standing.push(o))
        sub.changed |= bool(changes)
        if sub.sees(i, o.time, until, whole=True):
            found += [(i, slot, change) for change in changes]

    def _changes(self, found: list[Row], work: Work) -> Changes:
        """Columns; what time did comes before the first object that is not earlier."""
        names = {id(c.object): c.object for _, _, c in found}
        if self._fields:
            names = {key: msgspec.json.encode(o) for key, o in names.items()}
        ends = np.cumsum([len(name) for name in names.values()], dtype=np.int64)
        place = {
            key: int(end) - len(name) for (key, name), end in zip(names.items(), ends, strict=True)
        }
        return Changes(
            np.array([i for i, _, _ in found], np.int64),
            np.array([slot for _, slot, _ in found], np.int64),
            np.array([self._codes[c.event] for _, _, c in found], np.uint8),
            np.array([c.time for _, _, c in found], np.int64),
            np.array([c.value or 0.0 for _, _, c in found], np.float64),
            np.array([place[id(c.object)] for _, _, c in found], np.int64),
            np.array([len(names[id(c.object)]) for _, _, c in found], np.int64),
            np.frombuffer(b"".join(names.values()), np.uint8),
            work,
        )

    # -- results and export ------------------------------------------------------------------

    def _results(self, slots: list[int], first: int | None = None) -> pa.RecordBatch:
        rows = []
        for n, slot in enumerate(slots):
            held = self._subs[slot].standing.held()
            if held is not None:
                rows.append({"slot": slot if first is None else first + n, **held})
        if not rows:
            return empty(self.results)
        return pa.RecordBatch.from_pylist(rows, schema=self.results)

    def changed(self) -> pa.RecordBatch:
        return self._results([n for n, s in enumerate(self._subs) if s.changed])

    def restore(self, results: pa.RecordBatch) -> None:
        for row in results.to_pylist():
            sub = self._subs[row["slot"]]
            sub.standing.hold(_named(row))
            sub.changed = sub.begun = True

    def rows(self, slots: NDArray[np.int64]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        subs = [self._subs[slot] for slot in slots.tolist()]
        rows = [{**s.row, "time": s.start, "end": s.end, "flags": self._flags(s)} for s in subs]
        controls = pa.RecordBatch.from_pylist(rows, schema=self.controls)
        return controls, self._results(slots.tolist(), 0)

    def _flags(self, sub: Sub) -> int:
        known = self._latest.get(sub.row["id"]) is sub
        flags: int = sub.row["flags"]
        return flags & ~FORMER if known else flags | FORMER

    def ended(self) -> NDArray[np.int64]:
        return np.array([n for n, s in enumerate(self._subs) if s.ends], np.int64)

    def living(self, now: int) -> NDArray[np.int64]:
        alive = [s.live and s.end > now and s.end > s.start for s in self._subs]
        return np.flatnonzero(np.array(alive, bool))

    def texts(self, slots: NDArray[np.int64]) -> Texts:
        ids = [self._subs[slot].row["id"] for slot in slots.tolist()]
        tails = [self._subs[slot].row["tail"] for slot in slots.tolist()]
        lengths = np.array([len(i) for i in ids], np.int64)
        tail_lengths = np.array([len(t) for t in tails], np.int64)
        whole = b"".join(i + t for i, t in zip(ids, tails, strict=True))
        ends = np.cumsum(lengths + tail_lengths)
        starts = ends - lengths - tail_lengths
        return Texts(np.frombuffer(whole, np.uint8), starts, lengths, tail_lengths)

    def reports(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        flags = [self._subs[slot].row["flags"] for slot in slots.tolist()]
        return np.array([f & REPORTS != 0 for f in flags], bool)


def _seen(o: ObjectColumns, carried: Carried, row: int, now: int) -> Seen:
    """An object as subscriptions see it."""
    words = carried.words(row, o.word_offsets, o.words)
    rank = -1 if carried.ranks is None else int(carried.ranks[row])
    name = Name(o.id_bytes[o.id_offsets[row] : o.id_offsets[row + 1]].tobytes())
    x, y = float(o.x[row]), float(o.y[row])
    return Seen(name, int(o.time[row]), x, y, words, now, rank, carried.texts)


def _stored(row: dict[str, Any]) -> Seen:
    """An object of the past."""
    words = sorted(zip(row["firsts"], row["words"], row["counts"], strict=True))
    held = {word: count for _, word, count in words}
    time = row["time"]
    return Seen(Name(row["id"]), time, row["x"], row["y"], held, time, row["rank"])


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """A row of results whose ids of objects are names."""
    return {
        key: [Name(v) if isinstance(v, bytes) else v for v in value]
        if isinstance(value, list)
        else value
        for key, value in row.items()
    }
