"""Finding the subscriptions that objects match in GI² (`index.gi2.lists`), and lazy deletion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.deciding import LOOKUPS, NEXT, SCANNED
from nearcast.index.gi2.lists import SIDE, WIDE, cell_of
from nearcast.index.posting import UNIVERSAL, Index
from nearcast.index.regions.lazy_deletion import (
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
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import ROOT, cell_hash, key_in
from nearcast.kernels.prefetch import prefetch
from nearcast.kernels.squares import column_of
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

_LOOKUPS = 2048  # per round


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


@njit(lean=True)
def _gather(grid: NDArray[np.int64], o: ObjectColumns, first: int, st: Lookups) -> tuple[int, int]:
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
    """Keep the look-ups that may meet a list; each step prefetches what the next one reads."""
    p = ix.lists
    some = 0
    for j in range(n):
        pl.fetch_mark(p, st.key[j])
    for j in range(n):
        number, key = st.number[j], st.key[j]
        st.number[some] = number
        st.key[some] = key
        some += pl.marked(p, key)
    for j in range(some):
        pl.fetch_row(p.table, st.key[j])
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
    reported twice.
    """
    box = np.empty(4, np.float32)
    while counts[NEXT] < len(o.order):
        following, n = _gather(grid, o, counts[NEXT], st)
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
