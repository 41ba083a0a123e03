"""GI²: a grid of cells of one size, each an inverted file (PS2Stream section IV.D)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.deciding import LOOKUPS, NEXT, SCANNED
from nearcast.index.lazy import (
    DONE,
    HITS,
    NOTED,
    Lazy,
    collect,
    collect_late,
    may_leave,
    settle,
    work_so_far,
)
from nearcast.index.posting import (
    POSTED,
    UNIVERSAL,
    Index,
    boxes_of,
    fits,
    hooks,
    outward,
    use_words,
)
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import ROOT, cell_hash, key_in
from nearcast.kernels.prefetch import prefetch
from nearcast.kernels.squares import LARGEST, SMALLEST, column_of, exponent_of
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

# places in `meta` of a grid
CHOSEN = 0  # subscriptions there were when the side of cells was chosen; 0: not chosen yet
SIDE = 1  # cells are 2^this long
WIDE = 2  # regions hung once for all cells
PARTLY = 3  # 1 + the slot that hangs in some of its cells, as an array was too short for all
META = 4

MOST = 256  # cells: what overlaps more hangs once, in a list for all cells
_LEVEL = 200  # of a grid's cells, in hashes: none of the pyramid's
_LOOKUPS = 2048  # a round


class Lookups(NamedTuple):
    """Scratch: the look-ups of some objects."""

    number: NDArray[np.int32]  # of the object
    key: NDArray[np.uint64]
    row: NDArray[np.int64]  # of the list found
    hits: NDArray[np.int64]  # slots that one object may match


def make_lookups(longest: int) -> Lookups:
    """Scratch for objects of up to `longest` words."""
    n = _LOOKUPS + 2 * (longest + 1)
    return Lookups(
        np.empty(n, np.int32),
        np.empty(n, np.uint64),
        np.empty(n, np.int64),
        np.empty(HITS, np.int64),
    )


@njit
def middle_side(ix: Index) -> int:
    """The exponent of cells that hold half of the boxes of all regions."""
    tally = np.zeros(LARGEST - SMALLEST + 1, np.int64)
    r = ix.slots.reals
    total = 0
    for slot in range(ix.slots.meta[sl.COUNT]):
        first, boxes = boxes_of(ix, slot)
        for b in range(first, first + 4 * boxes, 4):
            tally[exponent_of(r[b + 2] - r[b], r[b + 3] - r[b + 1]) - SMALLEST] += 1
            total += 1
    n = 0
    below = tally[0]
    while 2 * below < total:
        n += 1
        below += tally[n]
    return SMALLEST + n


@njit(lean=True)
def cell_of(side: int, column: int, row: int) -> np.uint64:
    """Hash of a cell of the grid."""
    return cell_hash(_LEVEL + side, column, row)


@njit(lean=True)
def cells_in(side: int, a: float, b: float, c: float, d: float) -> int:
    """How many cells (a, b, c, d) overlaps; at most MOST + 1."""
    wide = np.float64(column_of(side, c)) - np.float64(column_of(side, a)) + 1.0
    high = np.float64(column_of(side, d)) - np.float64(column_of(side, b)) + 1.0
    return np.int64(min(wide * high, MOST + 1.0))


@njit(lean=True)
def _keys_of(ix: Index, slot: int, side: int) -> int:
    """Keys that `slot` may need under one word."""
    first, boxes = boxes_of(ix, slot)
    r = ix.slots.reals
    n = 0
    for b in range(first, first + 4 * boxes, 4):
        n += cells_in(side, r[b], r[b + 1], r[b + 2], r[b + 3])
    return n


@njit(lean=True)
def _stands(p: pl.Postings, key: np.uint64, slot: int, box: NDArray[np.float32]) -> bool:
    """Whether the list of `key` ends with this entry, or with others of `slot` after it."""
    row = pl.find(p.table, key)
    if row < 0:
        return False
    first, length = pl.entries(p, row)
    for e in range(first + length - 1, first - 1, -1):
        if p.pool[e, 0] != slot:
            return False
        same = True
        for c in range(4):
            same &= p.boxes[e, 1 + c] == box[c]
        if same:
            return True
    return False


@njit(lean=True)
def _add(
    ix: Index, grid: NDArray[np.int64], key: np.uint64, slot: int, box: NDArray[np.float32]
) -> bool:
    """Append an entry, unless it stands there since the array was too short for all."""
    if grid[PARTLY] == slot + 1 and _stands(ix.lists, key, slot, box):
        return True
    return pl.add(ix.lists, key, slot, box) >= 0


@njit(lean=True)
def _hang(
    ix: Index,
    grid: NDArray[np.int64],
    word: np.uint64,
    slot: int,
    b: int,
    box: NDArray[np.float32],
) -> bool:
    """Hang `slot` under `word` in every cell that its box at `b` overlaps."""
    side = grid[SIDE]
    r = ix.slots.reals
    outward(box, r[b], r[b + 1], r[b + 2], r[b + 3])
    if cells_in(side, r[b], r[b + 1], r[b + 2], r[b + 3]) > MOST:
        grid[WIDE] += 1
        return _add(ix, grid, key_in(cell_hash(ROOT, 0, 0), word), slot, box)
    for column in range(column_of(side, r[b]), column_of(side, r[b + 2]) + 1):
        for row in range(column_of(side, r[b + 1]), column_of(side, r[b + 3]) + 1):
            if not _add(ix, grid, key_in(cell_of(side, column, row), word), slot, box):
                return False
    return True


@njit
def post_grid(ix: Index, grid: NDArray[np.int64]) -> bool:
    """Post every subscription not posted yet; False if an array must grow first."""
    box = np.empty(4, np.float32)
    while ix.meta[POSTED] < ix.slots.meta[sl.COUNT]:
        slot = ix.meta[POSTED]
        if not fits(ix, slot, _keys_of(ix, slot, grid[SIDE])):
            return False
        first_box, boxes = boxes_of(ix, slot)
        first, words = hooks(ix, slot)
        for i in range(first, first + words):
            word = ix.slots.heap[i] if i >= 0 else UNIVERSAL
            for b in range(first_box, first_box + 4 * boxes, 4):
                if not _hang(ix, grid, word, slot, b, box):
                    grid[PARTLY] = slot + 1
                    return False
        use_words(ix, slot)
        ix.meta[POSTED] = slot + 1
    return True


# -- matching ----------------------------------------------------------------------------------


@njit(lean=True)
def _gather(
    ix: Index, grid: NDArray[np.int64], o: ObjectColumns, first: int, st: Lookups
) -> tuple[int, int]:
    """Look-ups of the objects from number `first` on; (next object, look-ups)."""
    n = 0
    i = first
    everywhere = cell_hash(ROOT, 0, 0)
    while i < len(o.order) and n < _LOOKUPS:
        row = o.order[i]
        side = grid[SIDE]
        cell = cell_of(side, column_of(side, o.x[row]), column_of(side, o.y[row]))
        start = o.word_offsets[row]
        for w in range(start - 1, o.word_offsets[row + 1]):
            word = o.words[w] if w >= start else UNIVERSAL
            st.number[n] = i
            st.key[n] = key_in(cell, word)
            n += 1
            if grid[WIDE] > 0:
                st.number[n] = i
                st.key[n] = key_in(everywhere, word)
                n += 1
        i += 1
    return i, n


@njit(lean=True)
def _find(ix: Index, st: Lookups, n: int) -> int:
    """Keep the look-ups that may meet a list; each step asks for what the next one reads."""
    p = ix.lists
    some = 0
    for j in range(n):
        pl.ask_mark(p, st.key[j])
    for j in range(n):
        number, key = st.number[j], st.key[j]
        st.number[some] = number
        st.key[some] = key
        some += pl.marked(p, key)
    for j in range(some):
        pl.ask_row(p.table, st.key[j])
    for j in range(some):
        st.row[j] = pl.find(p.table, st.key[j])
        if st.row[j] >= 0:
            prefetch(p.pool, pl.entries(p, st.row[j])[0])
    return some


@njit(lean=True)
def _purge(ix: Index, lazy: Lazy, row: int, until: int, box: NDArray[np.float32]) -> None:
    """Take what has ended off the list of `row` of the table."""
    p = ix.lists
    first, length = pl.entries(p, row)
    gone = 0
    for e in range(first, first + length):
        if may_leave(ix, lazy, np.int64(p.pool[e, 0]), until, box):
            pl.bury(p, e)
            gone += 1
    if gone > 0:
        pl.sweep(p, row)


@njit(lean=True)
def _collect(
    ix: Index,
    lazy: Lazy,
    o: ObjectColumns,
    i: int,
    st: Lookups,
    first: int,
    stop: int,
    box: NDArray[np.float32],
    counts: NDArray[np.int64],
) -> int:
    """Hits of object number `i`, whose look-ups are [first, stop); -1 if there are too many."""
    p = ix.lists
    row = o.order[i]
    n = 0
    for j in range(first, stop):
        counts[LOOKUPS] += 1
        if st.row[j] < 0:
            continue
        start, length = pl.entries(p, st.row[j])
        counts[SCANNED] += length
        n = collect(p.pool, p.boxes, start, length, o.x[row], o.y[row], st.hits, n)
        if n < 0:
            return -1
        if lazy.meta[NOTED] > 0:
            _purge(ix, lazy, st.row[j], o.until[row], box)
    return collect_late(ix, lazy, o, i, st.hits, n, counts)


@njit
def match_grid(
    ix: Index,
    grid: NDArray[np.int64],
    lazy: Lazy,
    space: int,
    o: ObjectColumns,
    st: Lookups,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Matches of the objects from number `counts[NEXT]` on: `out` (object numbers, slots).

    DONE, or FULL or SHORT: call again with a new `out`, or with longer hits. The object that was
    being decided is then decided again: its work counts once, and stamps keep a match from being
    told twice.
    """
    box = np.empty(4, np.float32)
    while counts[NEXT] < len(o.order):
        following, n = _gather(ix, grid, o, counts[NEXT], st)
        n = _find(ix, st, n)
        first = 0
        while counts[NEXT] < following:
            i = counts[NEXT]
            stop = first
            while stop < n and st.number[stop] == i:
                stop += 1
            before = work_so_far(counts)
            hits = _collect(ix, lazy, o, i, st, first, stop, box, counts)
            if hits != 0:
                end = settle(ix, lazy, space, o, i, st.hits, hits, out, counts, before)
                if end != DONE:
                    return end
            counts[NEXT] = i + 1
            first = stop
    ix.slots.meta[sl.CLOCK] += len(o.order)
    return DONE
