"""Finding candidates document at a time: the lists of a message's words are merged by subscription.

A message is in one cell per level. In each the lists of its words are read together: the textual
similarity of a subscription is whole when the next one comes, and is compared with its MinT.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.ciq.cover import DEPTH, cell_number, finest
from nearcast.index.tops.ciq.lists import (
    MIN_T,
    SLOT,
    STALE,
    WEIGHT,
    Lists,
    count_of,
    first_of,
    key_of,
)
from nearcast.index.tops.igpt.bounds import kscore_star, lemma_1
from nearcast.index.tops.state import ALPHA, CELLS, FLOOR, LOOKUPS, SCANNED, Tops, Weighed
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.prefetch import prefetch
from nearcast.model.jit import njit

_DONE = 2**31 - 1  # behind all slots
_AHEAD = 8

Floats = NDArray[np.float64]
Halves = NDArray[np.int32]
Longs = NDArray[np.int64]


@njit(lean=True)
def _open(
    li: Lists, w: Weighed, row: int, cell: int, at: Longs, end: Longs, wt: Floats, counts: Longs
) -> int:
    """The lists of a cell for the words of a message: where they begin and end; how many."""
    start, stop = w.o.word_offsets[row], w.o.word_offsets[row + 1]
    n = 0
    for j in range(start, stop):
        prefetch(li.table, pl.home(len(li.table), key_of(cell, w.o.words[j])))
    for j in range(start, stop):
        found = pl.find(li.table, key_of(cell, w.o.words[j]))
        if found >= 0 and count_of(li, found) > 0:
            at[n] = first_of(li, found)
            end[n] = at[n] + count_of(li, found)
            wt[n] = w.weights[j]
            n += 1
    counts[LOOKUPS] += stop - start
    for j in range(n):
        counts[SCANNED] += end[j] - at[j]
    return n


@njit(lean=True)
def _merge(
    li: Lists, at: Longs, end: Longs, wt: Floats, n: int, i: int, objects: Halves, slots: Halves,
    found: int,
) -> int:  # fmt: skip
    """Candidates of one cell, whose lists begin at `at`; how many there are then."""
    while True:
        slot = np.int32(_DONE)
        for j in range(n):
            if at[j] < end[j]:
                slot = min(slot, li.entries[at[j], SLOT])
        if slot == _DONE:
            return found
        tsim, least = 0.0, np.float32(0.0)
        for j in range(n):
            while at[j] < end[j] and li.entries[at[j], SLOT] == slot:
                tsim += wt[j] * np.float64(li.bounds[at[j], WEIGHT])
                least = li.bounds[at[j], MIN_T]
                at[j] += 1
        if not lemma_1(tsim, np.float64(least)):
            objects[found], slots[found] = i, slot
            found += 1


@njit(lean=True)
def _note(
    t: Tops, s: sl.Slots, li: Lists, slots: Halves, first: int, found: int, stale: Longs
) -> None:
    """Note candidates whose threshold rose since MinT was written, or that ended."""
    for c in range(first, found):
        if c + _AHEAD < found:
            prefetch(t.rows, slots[c + _AHEAD])
            prefetch(s.rows, slots[c + _AHEAD])
        slot = slots[c]
        risen = kscore_star(t.rows[slot, FLOOR], t.rows[slot, ALPHA]) > li.scores[slot]
        if (risen or not s.half[slot, sl.FLAGS] & sl.LIVE) and not li.states[slot] & STALE:
            li.states[slot] |= STALE
            stale[0] += 1
            stale[stale[0]] = slot


@njit
def search(
    t: Tops, s: sl.Slots, li: Lists, w: Weighed, space: int, first: int, stop: int,
    objects: Halves, slots: Halves, stale: Longs, counts: Longs,
) -> tuple[int, int]:  # fmt: skip
    """(objects that are through, candidates) of objects first <= i < stop.

    It ends early where all subscriptions could not be written any more. `stale` gets slots whose
    MinT is to be written anew; in front their number.
    """
    longest = 0
    for i in range(first, stop):
        row = w.o.order[i]
        longest = max(longest, w.o.word_offsets[row + 1] - w.o.word_offsets[row])
    at, end, wt = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest)
    found = 0
    for i in range(first, stop):
        if found + len(li.states) > len(slots):
            return i, found
        row = w.o.order[i]
        column, line = finest(space, w.o.x[row], w.o.y[row], li.root)
        before = found
        for level in range(1, DEPTH + 1):
            cell = cell_number(level, column >> (DEPTH - level), line >> (DEPTH - level))
            counts[CELLS] += 1
            n = _open(li, w, row, cell, at, end, wt, counts)
            found = _merge(li, at, end, wt, n, i, objects, slots, found)
        _note(t, s, li, slots, before, found, stale)
    return stop, found
