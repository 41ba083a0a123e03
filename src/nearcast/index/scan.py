"""`scan`: every object against every subscription, in plain Python. The oracle and the baseline.

It reads like SPEC section 4 and calls `model.predicate.matches`, the one definition; it is slow on
purpose. Words are hashes here as everywhere behind the wire.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.index.base import ENTER, LEAVE, MATCH, Changes, LocalIndex, Texts, Work
from nearcast.kernels.program import TAG_AND, TAG_NOT, TAG_OR
from nearcast.kernels.slots import FORMER, REGION_CODE, REPORTS, SUBSCRIBE, UNSUBSCRIBE
from nearcast.model.expression import And, Expression, Word, from_postfix
from nearcast.model.predicate import matches
from nearcast.model.query import KnnQuery, RangeQuery
from nearcast.model.region import decode
from nearcast.model.space import Space, distance
from nearcast.wire.tables import CONTROLS, KIND_CODES, RESULTS, ObjectColumns, table_of

_OPERATORS = {int(TAG_AND): "and", int(TAG_OR): "or", int(TAG_NOT): "not"}


def expression_of(program: list[int]) -> Expression:
    """The expression over word hashes that a program stands for."""
    if all(token & 3 == 0 for token in program):
        return And(tuple(Word(token) for token in program))
    return from_postfix(
        [(_OPERATORS[token & 3], token >> 2) if token & 3 else ("word", token) for token in program]
    )


class Name(bytes):
    """The id of one object. Two objects of one id are two names: `net` must tell them apart."""


@dataclass(slots=True)
class Entry:
    """An object in a knn result."""

    distance: float
    time: int
    object: bytes


@dataclass(slots=True)
class Sub:
    """A subscription, its row of CONTROLS, and what it holds."""

    row: dict[str, Any]  # of CONTROLS
    query: RangeQuery | KnnQuery
    start: int
    end: int
    born: int = 0
    # (objects before it, how far time had come, end until then) of each end in this batch
    ends: list[tuple[int, int, int]] = field(default_factory=list)
    live: bool = True
    entries: list[Entry] = field(default_factory=list)  # knn: all it saw, nearest first
    changed: bool = False

    def sees(self, i: int, time: int, until: int) -> bool:
        """SPEC section 4, for object number `i` of the batch."""
        end = next((old for at, _, old in self.ends if i < at), self.end)
        return self.live and i >= self.born and self.start <= time and until < end

    def lives_at(self, moment: int) -> bool:
        """Whether it tells what happens at a moment that has passed."""
        end = next((old for _, clock, old in self.ends if moment <= clock), self.end)
        return self.live and moment < end


class Scan(LocalIndex):
    """All subscriptions in a list."""

    name = "scan"
    kinds = ("range", "knn")
    paper = "baseline"
    about = "every object against every subscription, in plain Python: the oracle"

    def __init__(self, kind: str, space: Space, storage: Storage) -> None:
        super().__init__(kind, space, storage)
        self.load()

    def load(self) -> None:
        size = int(self.storage.array("scan.size", np.int64, 1, 1)[0])
        data = self.storage.array("scan", np.uint8, 1, 1)
        self._subs: list[Sub] = pickle.loads(data[:size].tobytes()) if size else []
        self._latest: dict[bytes, Sub] = {
            s.row["id"]: s for s in self._subs if not s.row["flags"] & FORMER
        }

    def close(self) -> None:
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
            begins = row["op"] == SUBSCRIBE and row["kind"] == KIND_CODES[self.kind]
            if row["flags"] & FORMER:  # moved or restored: all that could end it has done so
                self._subs.append(Sub(row, self._query(row), row["time"], row["end"], before))
                continue
            old = self._latest.get(row["id"])
            if old is not None and row["time"] < old.end:
                old.ends.append((before, row["clock"], old.end))
                old.end = row["time"]
            if begins:
                sub = Sub(row, self._query(row), row["time"], row["end"], before)
                self._subs.append(sub)
                self._latest[row["id"]] = sub
            elif row["op"] != UNSUBSCRIBE:  # the id means a subscription of another index now
                self._latest.pop(row["id"], None)

    def _query(self, row: dict[str, Any]) -> RangeQuery | KnnQuery:
        where = expression_of(row["program"])
        numbers: list[float] = row["region"]
        if self.kind == "knn":
            return KnnQuery(numbers[0], numbers[1], row["k"], where, row["window"] or None)
        return RangeQuery(decode(row["flags"] & REGION_CODE, numbers), where)

    def drop(self, slots: NDArray[np.int64]) -> None:
        for slot in slots.tolist():
            sub = self._subs[slot]
            sub.live, sub.end = False, sub.start  # the end is what a snapshot keeps of it

    # -- objects -----------------------------------------------------------------------------

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        o = objects
        told: list[tuple[int, int, int, int, float, bytes]] = []
        for i, row in enumerate(o.order.tolist()):
            words = set(o.words[o.word_offsets[row] : o.word_offsets[row + 1]].tolist())
            name = Name(o.id_bytes[o.id_offsets[row] : o.id_offsets[row + 1]].tobytes())
            x, y, time = float(o.x[row]), float(o.y[row]), int(o.time[row])
            until = int(o.until[row])
            for slot, sub in enumerate(self._subs):
                self._let_go(slot, sub, int(clock[i]), clock, told)
                if sub.sees(i, time, until) and matches(self.space, sub.query, x, y, words):
                    self._take(i, slot, sub, x, y, time, int(clock[i]), name, told)
        for slot, sub in enumerate(self._subs):
            self._let_go(slot, sub, now, clock, told)
        work = Work(len(o.order) * len(self._subs), 0, len(o.order) * len(self._subs))
        return _changes(told, work)

    def _take(
        self,
        i: int,
        slot: int,
        sub: Sub,
        x: float,
        y: float,
        time: int,
        now: int,
        name: bytes,
        told: list[tuple[int, int, int, int, float, bytes]],
    ) -> None:
        """An object that `sub` sees and that matches."""
        q = sub.query
        if isinstance(q, RangeQuery):
            told.append((i, slot, MATCH, time, 0.0, name))
            return
        if q.window and time + q.window <= now:
            return
        d = float(distance(self.space.code, q.x, q.y, x, y))
        rank = bisect_right(sub.entries, d, key=lambda e: e.distance)
        sub.entries.insert(rank, Entry(d, time, name))
        sub.changed = True
        if rank < q.k:
            told.append((i, slot, ENTER, time, d, name))
            if len(sub.entries) > q.k:
                told.append((i, slot, LEAVE, time, 0.0, sub.entries[q.k].object))
        if not q.window:
            del sub.entries[q.k :]  # nothing ever leaves but for something nearer

    def _let_go(
        self,
        slot: int,
        sub: Sub,
        now: int,
        clock: NDArray[np.int64],
        told: list[tuple[int, int, int, int, float, bytes]],
    ) -> None:
        """Moments up to `now` at which objects of a windowed result become too old."""
        q = sub.query
        if not isinstance(q, KnnQuery) or not q.window:
            return
        while sub.entries and (moment := min(e.time for e in sub.entries) + q.window) <= now:
            before = sub.entries[: q.k]
            sub.entries = [e for e in sub.entries if e.time + q.window > moment]
            sub.changed = True
            i = bisect_left(clock.tolist(), moment)
            if sub.lives_at(moment):
                after = sub.entries[: q.k]
                for e in before:
                    if not any(e is a for a in after):
                        told.append((i, slot, LEAVE, moment, 0.0, e.object))
                for e in after:
                    if not any(e is b for b in before):
                        told.append((i, slot, ENTER, moment, e.distance, e.object))

    # -- results and export ------------------------------------------------------------------

    def _results(self, slots: list[int], first: int | None = None) -> pa.RecordBatch:
        rows = []
        for n, slot in enumerate(slots):
            entries = self._subs[slot].entries
            rows.append(
                (
                    slot if first is None else first + n,
                    [e.distance for e in entries],
                    [e.time for e in entries],
                    [0] * len(entries),
                    [e.object for e in entries],
                )
            )
        return table_of(rows, RESULTS)

    def changed(self) -> pa.RecordBatch:
        return self._results([n for n, s in enumerate(self._subs) if s.changed])

    def restore(self, results: pa.RecordBatch) -> None:
        for row in results.to_pylist():
            sub = self._subs[row["slot"]]
            columns = (row["distance"], row["time"], row["object"])
            sub.entries = [Entry(d, t, Name(o)) for d, t, o in zip(*columns, strict=True)]
            sub.changed = True

    def rows(self, slots: NDArray[np.int64]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        subs = [self._subs[slot] for slot in slots.tolist()]
        rows = [{**s.row, "time": s.start, "end": s.end, "flags": self._flags(s)} for s in subs]
        controls = pa.RecordBatch.from_pylist(rows, schema=CONTROLS)
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


def _changes(told: list[tuple[int, int, int, int, float, bytes]], work: Work) -> Changes:
    """Columns from rows; what time did comes before the first object that is not earlier."""
    columns = list(zip(*told, strict=True)) or [()] * 6
    order = np.array(columns[0], np.int64)
    names = {id(name): name for name in columns[5]}
    ends = np.cumsum([len(name) for name in names.values()], dtype=np.int64)
    place = {
        key: int(end) - len(name) for (key, name), end in zip(names.items(), ends, strict=True)
    }
    return Changes(
        order,
        np.array(columns[1], np.int64),
        np.array(columns[2], np.uint8),
        np.array(columns[3], np.int64),
        np.array(columns[4], np.float64),
        np.array([place[id(name)] for name in columns[5]], np.int64),
        np.array([len(name) for name in columns[5]], np.int64),
        np.frombuffer(b"".join(names.values()), np.uint8),
        work,
    )
