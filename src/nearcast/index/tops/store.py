"""Storage of subscriptions and their buffers: rows, growth, what changed, export."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.index.tops import state as st
from nearcast.index.tops.buffers import (
    class_of,
    give_back,
    make_room,
    ranks_at,
    scores_at,
    units_of,
)
from nearcast.index.tops.window import RANK, TIME, WindowLog
from nearcast.kernels.ragged import frozen, gather, places
from nearcast.model.frame import Idf
from nearcast.model.jit import njit
from nearcast.wire.changes import Changes, Work
from nearcast.wire.tables import (
    BEST,
    FOREVER,
    NEVER,
    WORDS,
    list_column,
    lists,
    numbers,
    string_column,
)

__all__ = ["TopStore"]

_CHUNK = 2**20  # changes
_WIDTH = 12  # float64 numbers of a unit of the pool

Longs = NDArray[np.int64]


class TopStore:
    """Rows, keywords and buffers of the slots of one index, and the log of the window."""

    def __init__(self, storage: Storage, idf: Idf) -> None:
        self.storage = storage
        self.idf = idf

    def load(self) -> None:
        """Attach what the storage holds."""
        self.meta = self.storage.array("tops.meta", np.int64, 1, st.META)
        if not self.meta[st.PASSED]:
            self.meta[st.PASSED] = NEVER
        self.log = WindowLog(self.storage, self.meta)
        self._marks = np.zeros(0, np.uint8)
        self._out = (np.empty((0, 5), np.int64), np.empty(0))
        self._chunks: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        self._begun = np.empty((0, 3), np.int64)
        self._oldest = FOREVER  # the rank of the first object of this batch
        self._passed = int(self.meta[st.PASSED])  # when the batch began
        self.attach()

    def attach(self) -> None:
        """Map every array at its present length."""
        get = self.storage.array
        rows = get("tops.rows", np.float64, 8, 64)
        heap = get("tops.heap", np.uint64, 1, 256)
        pool = get("tops.pool", np.float64, 1, 64 * _WIDTH)
        self.state = st.Tops(
            rows,
            rows.view(np.int32),
            heap,
            heap.view(np.float64),
            get("tops.due", np.int64, 1, 64),
            pool,
            pool.view(np.int32),
            pool.view(np.int64),
            self.log.rows,
            self.meta,
            self._marks,
            *self._out,
        )

    # -- subscriptions -----------------------------------------------------------------------

    def insert(self, first: int, controls: pa.RecordBatch, mine: Longs) -> None:
        """Rows of new slots from `first` on, made from the rows `mine` of TOPS."""
        n = len(mine)
        offsets, keywords = lists(controls["keywords"], np.uint64)
        lengths = np.diff(offsets)[mine]
        own, words = gather(keywords, offsets[:-1][mine], lengths)
        top = int(self.meta[st.HEAP_TOP])
        self.storage.array("tops.rows", np.float64, 8, first + n)
        self.storage.array("tops.due", np.int64, 1, first + n)
        self.storage.array("tops.heap", np.uint64, 1, top + 2 * len(words))
        self._mark(first + n)
        self.attach()
        rows, half = self.state.rows[first : first + n], self.state.half[first : first + n]
        columns = ((st.X, "x"), (st.Y, "y"), (st.ALPHA, "alpha"), (st.MAXDIST, "maxdist"))
        for column, name in columns:
            rows[:, column] = numbers(controls[name])[mine]
        rows[:, st.FLOOR] = -np.inf
        half[:, st.HEAP] = top + 2 * own[:-1]
        half[:, st.KEYWORDS] = lengths
        half[:, st.K] = np.minimum(numbers(controls["k"])[mine], 2**31 - 1)
        half[:, st.LIST] = half[:, st.LENGTH] = half[:, st.ROOM] = 0
        self.state.due[first : first + n] = st.NOT_BEGUN
        _put_keywords(self.state, first, own, frozen(words), frozen(self.idf.of_words(words)))
        self.meta[st.HEAP_TOP] = top + 2 * len(words)

    def settings(self, slots: Longs) -> list[pa.Array]:
        """The columns k, keywords, alpha and maxdist of slots."""
        rows, half = self.state.rows[slots], self.state.half[slots]
        words = list_column(*self.keywords(slots), WORDS)
        return [
            pa.array(half[:, st.K].astype(np.int64)),
            words,
            pa.array(rows[:, st.ALPHA].copy()),
            pa.array(rows[:, st.MAXDIST].copy()),
        ]

    def keywords(self, slots: Longs) -> tuple[Longs, NDArray[np.uint64]]:
        """(offsets, keywords as listed) of slots."""
        half = self.state.half[slots].astype(np.int64)
        return gather(self.state.heap, half[:, st.HEAP], half[:, st.KEYWORDS])

    # -- one batch ---------------------------------------------------------------------------

    def open(self, slots: int, oldest: int) -> None:
        """Make ready for the objects of a batch, the first of which has the rank `oldest`."""
        self._mark(slots)
        self._oldest = oldest
        self._begun = np.empty((0, 3), np.int64)
        self._passed = int(self.meta[st.PASSED])
        self._renew_out(4096)

    def _mark(self, slots: int) -> None:
        if len(self._marks) < slots:
            wider = np.zeros(slots + slots // 4, np.uint8)
            wider[: len(self._marks)] = self._marks
            self._marks = wider

    def _renew_out(self, rows: int) -> None:
        self._out = (np.empty((rows, 5), np.int64), np.empty(rows))
        self.meta[st.OUT_TOP] = 0
        self.attach()

    def grow(self, short: int) -> None:
        """More of what is short."""
        if short == st.NEED_POOL:
            units = len(self.state.pool) // _WIDTH
            longest = int(self.state.half[:, st.ROOM].max(initial=8)) // 4 + 1024
            size = units + max(units // 8, longest)
            self.storage.array("tops.pool", np.float64, 1, size * _WIDTH)
            self.attach()
            return
        full, stuck = len(self._out[0]), self.meta[st.OUT_TOP] == 0
        self._set_aside()
        self._renew_out(full * 2 if full < _CHUNK or stuck else full)

    def _set_aside(self) -> None:
        n = int(self.meta[st.OUT_TOP])
        self._chunks.append((self._out[0][:n], self._out[1][:n]))

    def reserve(self, slots: Longs, lengths: Longs) -> None:
        """Room in the buffers of slots, whose entries are forgotten."""
        units = _units(frozen(lengths)) + 1024
        need = (int(self.meta[st.POOL_TOP]) + units) * _WIDTH
        if need > len(self.state.pool):
            self.storage.array("tops.pool", np.float64, 1, need)
            self.attach()
        _reserve(self.state, slots, lengths)

    def begin(self, slots: Longs, born: Longs, times: Longs, passed: Longs) -> None:
        """Report the first results of slots: their visible entries, best first.

        `passed`: how far time had come.
        """
        self._begun = np.concatenate([self._begun, np.column_stack([born, slots, passed])])
        self._set_aside()
        self._renew_out(4096)
        k = np.minimum(self.state.half[slots, st.LENGTH], self.state.half[slots, st.K])
        offsets, entries = places(np.zeros(len(slots), np.int64), k.astype(np.int64))
        if len(entries) == 0:
            return
        scores, ranks = self._entries(slots, offsets, entries)
        owner = np.repeat(np.arange(len(slots)), k)
        event = np.full(len(owner), st.ENTER | st.BEGIN)
        columns = (born[owner], slots[owner], event, times[owner], self.log.places(ranks))
        self._chunks.append((np.column_stack(columns), scores))

    def _entries(
        self, slots: Longs, offsets: Longs, entries: Longs
    ) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """(scores, low bits of ranks) of entries: numbers within the buffers of slots."""
        half = self.state.half[slots].astype(np.int64)
        lengths = np.diff(offsets)
        first = np.repeat(half[:, st.LIST] * _WIDTH, lengths)
        ranks = np.repeat((half[:, st.LIST] * _WIDTH + half[:, st.ROOM]) * 2, lengths)
        return self.state.pool[first + entries], self.state.ranks[ranks + entries]

    def changes(self, work: Work) -> Changes:
        """All that was reported since `open`, in the order of the log."""
        self._set_aside()
        rows = np.concatenate([c[0] for c in self._chunks])
        scores = np.concatenate([c[1] for c in self._chunks])
        self._chunks = []
        self._renew_out(0)
        sort = self._order(rows)
        rows, scores = rows[sort], scores[sort]
        starts, lengths = self.log.names_of(rows[:, 4])
        return Changes(
            np.ascontiguousarray(rows[:, 0]),
            np.ascontiguousarray(rows[:, 1]),
            (rows[:, 2] & 1).astype(np.uint8),
            np.ascontiguousarray(rows[:, 3]),
            scores,
            starts,
            lengths,
            self.log.names,
            work,
        )

    def _order(self, rows: Longs) -> Longs:
        """The order of changes: by object, by slot, and in that as they came.

        But before a first result comes what time did up to then, of all slots: one may have had the
        same id before.
        """
        order, slot, event, moment = (rows[:, c] for c in range(4))
        if len(self._begun) == 0:
            return np.argsort(order << 32 | slot, kind="stable")
        first = np.ones(len(rows), np.int64)
        when = np.zeros(len(rows), np.int64)
        born, slots, passed = self._begun.T
        by_order = np.full(int(max(order.max(initial=0), born.max())) + 1, NEVER)
        np.maximum.at(by_order, born, passed)
        begun = np.zeros(int(slots.max()) + 1, np.int64)
        begun[slots] = passed
        begins = event & st.BEGIN != 0
        early = (event & st.MOMENT != 0) & (moment < by_order[order])
        first[begins | early] = 0
        when[early] = 2 * moment[early]
        when[begins] = 2 * begun[slot[begins]] - 1
        return np.lexsort((np.arange(len(rows)), slot, when, first, order))

    def close(self) -> None:
        """The batch is over: nothing is marked."""
        self._marks[:] = 0

    # -- export ------------------------------------------------------------------------------

    def changed(self, slots: int, by_time: bool) -> pa.RecordBatch:
        """BEST of the slots that changed in this batch; of most, only the entries that came."""
        marks = self._marks[:slots]
        found = np.flatnonzero(marks)
        if len(found) == 0 and by_time and slots and self.meta[st.PASSED] > self._passed:
            found = np.zeros(1, np.int64)  # what has left is known by how far time has come
        return self.table(found, found, self._oldest, marks[found] & st.WHOLE == 0)

    def table(
        self, slots: Longs, named: Longs, since: int = -1, more: NDArray[np.bool_] | None = None
    ) -> pa.RecordBatch:
        """BEST of slots, which are called `named`; where `more`, of entries from a rank on."""
        lengths = self.state.half[slots, st.LENGTH].astype(np.int64)
        offsets, entries = places(np.zeros(len(slots), np.int64), lengths)
        scores, low = self._entries(slots, offsets, entries)
        at = self.log.places(low)
        more = np.zeros(len(slots), bool) if more is None else more
        rows = self.log.rows[at]
        if more.any():
            kept = ~np.repeat(more, lengths) | (rows[:, RANK] >= since)
            offsets = np.append(0, np.cumsum(kept))[offsets]
            scores, at, rows = scores[kept], at[kept], rows[kept]
        starts, sizes = self.log.names_of(at)
        types = [f.type for f in BEST]
        objects = string_column(*gather(self.log.names, starts, sizes))
        return pa.RecordBatch.from_arrays(
            [
                pa.array(named),
                list_column(offsets, scores, types[1]),
                list_column(offsets, np.ascontiguousarray(rows[:, RANK]), types[2]),
                list_column(offsets, np.ascontiguousarray(rows[:, TIME]), types[3]),
                pa.LargeListArray.from_arrays(pa.array(offsets), objects, type=types[4]),
                pa.array(self.state.rows[slots, st.FLOOR].copy()),
                pa.array(more),
                pa.array(np.full(len(slots), self.meta[st.PASSED])),
            ],
            schema=BEST,
        )

    def restore(self, results: pa.RecordBatch) -> None:
        """Put BEST in place; what had left meanwhile goes before the next objects come."""
        slots = numbers(results["slot"])
        offsets, scores = lists(results["score"], np.float64)
        _, ranks = lists(results["rank"], np.int64)
        more = np.asarray(results["more"].to_numpy(zero_copy_only=False))
        floors = numbers(results["floor"])
        lengths = np.diff(offsets)
        held = np.where(more, self.state.half[slots, st.LENGTH], 0) + lengths
        units = int(np.sum(held)) // 4 + 2 * len(slots)
        need = (int(self.meta[st.POOL_TOP]) + units + int(held.max()) // 4 + 1024) * _WIDTH
        self.storage.array("tops.pool", np.float64, 1, need)
        self._mark(int(slots.max()) + 1)
        # What came with a move is in no file of this shard yet: the batch writes all of it.
        self._marks[slots] |= st.CHANGED | st.WHOLE
        self.attach()
        fresh = ~more
        _reserve(self.state, slots[fresh], lengths[fresh])
        _restore(self.state, frozen(slots), offsets, scores, ranks, floors)
        self.meta[st.STALE] = 1
        self.meta[st.PASSED] = max(int(self.meta[st.PASSED]), *numbers(results["passed"]).tolist())


@njit(lean=True)
def _put_keywords(
    t: st.Tops,
    first: int,
    offsets: NDArray[np.int64],
    words: NDArray[np.uint64],
    idf: NDArray[np.float64],
) -> None:
    """Keywords and their weights, idf over the norm, summed as listed (SPEC section 4)."""
    for n in range(len(offsets) - 1):
        slot = first + n
        start, length = offsets[n], offsets[n + 1] - offsets[n]
        squares = 0.0
        for j in range(start, start + length):
            squares += idf[j] * idf[j]
        norm = np.sqrt(squares)
        at = np.int64(t.half[slot, st.HEAP])
        for j in range(length):
            t.heap[at + j] = words[start + j]
            t.reals[at + length + j] = idf[start + j] / norm


@njit
def _units(lengths: NDArray[np.int64]) -> int:
    """Units of blocks for buffers of so many entries."""
    total = 0
    for n in range(len(lengths)):
        total += units_of(class_of(lengths[n]))
    return total


@njit(lean=True)
def _reserve(t: st.Tops, slots: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
    """Empty buffers with room for so many entries; the pool has room for all."""
    for n in range(len(slots)):
        slot = slots[n]
        t.half[slot, st.LENGTH] = 0
        if units_of(class_of(lengths[n])) * 8 != t.half[slot, st.ROOM]:
            give_back(t, slot)
            if lengths[n]:
                make_room(t, slot, lengths[n])


@njit(lean=True)
def _restore(
    t: st.Tops,
    slots: NDArray[np.int64],
    offsets: NDArray[np.int64],
    scores: NDArray[np.float64],
    ranks: NDArray[np.int64],
    floors: NDArray[np.float64],
) -> None:
    """Add entries to buffers; those of equal scores come with the newest first."""
    for n in range(len(slots)):
        slot = slots[n]
        t.rows[slot, st.FLOOR] = floors[n]
        t.due[slot] = st.FOREVER  # it has begun; `purge` says when the first leaves
        first, low = scores_at(t, slot), ranks_at(t, slot)
        kept = np.int64(t.half[slot, st.LENGTH])
        while kept > 0 and t.pool[first + kept - 1] < floors[n]:
            kept -= 1
        t.half[slot, st.LENGTH] = np.int32(kept)
        make_room(t, slot, kept + offsets[n + 1] - offsets[n])
        first, low = scores_at(t, slot), ranks_at(t, slot)
        for e in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            j = kept
            while j > 0 and t.pool[first + j - 1] <= scores[e]:
                t.pool[first + j] = t.pool[first + j - 1]
                t.ranks[low + j] = t.ranks[low + j - 1]
                j -= 1
            t.pool[first + j] = scores[e]
            t.ranks[low + j] = np.int32(np.uint32(ranks[e] & 0xFFFFFFFF))
            kept += 1
        t.half[slot, st.LENGTH] = np.int32(kept)
