"""One list per cell and keyword, in the order of subscriptions, with weight and MinT."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.ciq.cover import COVER, cover, finest, min_t
from nearcast.index.tops.igpt.bounds import alpha_star, kscore_star
from nearcast.index.tops.igpt.state import down, up
from nearcast.index.tops.state import ALPHA, FLOOR, HEAP, KEYWORDS, MAXDIST, Tops, X, Y
from nearcast.kernels import blocks
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.hashing import mix64
from nearcast.model.jit import njit

# columns of the table of lists: PLACE has the first entry, and above it 1 + the block's size
KEY, PLACE, HELD = range(3)
LIST = 3
# columns of an entry; the second and third are float32
SLOT, WEIGHT, MIN_T = range(3)
ENTRY = 3
# what is known of a subscription
POSTED, STALE, DEAD = 1, 2, 4
# places in `meta`
LISTS, BUILT = range(2)
POOL = 2
META = POOL + blocks.META

_SIZE = np.uint64(48)
_PLACE = np.uint64((1 << 48) - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

Longs = NDArray[np.int64]


class Lists(NamedTuple):
    """All of it; the arrays may be memory-mapped."""

    table: NDArray[np.uint64]  # [*, LIST]
    entries: NDArray[np.int32]  # [*, ENTRY]
    bounds: NDArray[np.float32]  # the same memory
    states: NDArray[np.uint8]  # by slot
    scores: NDArray[np.float64]  # by slot: kScore* when MinT was written
    root: NDArray[np.float64]  # [4]
    boxes: NDArray[np.float64]  # [cells, 6]
    meta: NDArray[np.int64]


@njit(lean=True, forceinline=True)
def key_of(cell: int, word: np.uint64) -> np.uint64:
    """The key of a list. Two that got the same one would only share it: more is found, not less."""
    key = mix64(word ^ np.uint64(cell + 1) * _GOLDEN)
    return key if key != np.uint64(0) else np.uint64(1)


@njit(lean=True, forceinline=True)
def first_of(li: Lists, row: int) -> int:
    """The first entry of a list."""
    return np.int64(li.table[row, PLACE] & _PLACE)


@njit(lean=True, forceinline=True)
def count_of(li: Lists, row: int) -> int:
    """Entries of a list."""
    return np.int64(li.table[row, HELD])


@njit(lean=True, forceinline=True)
def _size_of(li: Lists, row: int) -> int:
    return np.int64(li.table[row, PLACE] >> _SIZE) - 1


@njit(lean=True)
def _add(li: Lists, key: np.uint64, slot: int) -> int:
    """The entry of a subscription on a list, which is made where there is none; -1: no room."""
    row = pl.find(li.table, key)
    if row < 0:
        row = -1 - row
        li.table[row, KEY], li.table[row, PLACE] = key, np.uint64(0)
        li.table[row, HELD] = np.uint64(0)
        li.meta[LISTS] += 1
    at = _first_from(li, row, slot)
    first, count, size = first_of(li, row), count_of(li, row), _size_of(li, row)
    if at < first + count and li.entries[at, SLOT] == slot:
        return at
    if size < 0 or count == 1 << size:
        wider = blocks.take(li.entries, li.meta[POOL:], size + 1)
        if wider < 0:
            return -1
        for e in range(count):
            for c in range(ENTRY):
                li.entries[wider + e, c] = li.entries[first + e, c]
        if size >= 0:
            blocks.give_back(li.entries, li.meta[POOL:], first, size)
        li.table[row, PLACE] = np.uint64(size + 2) << _SIZE | np.uint64(wider)
        at, first = at - first + wider, wider
    for e in range(first + count, at, -1):
        for c in range(ENTRY):
            li.entries[e, c] = li.entries[e - 1, c]
    li.table[row, HELD] = np.uint64(count + 1)
    li.entries[at, SLOT] = np.int32(slot)
    return at


@njit(lean=True, forceinline=True)
def _first_from(li: Lists, row: int, slot: int) -> int:
    """The first entry of a list whose slot is not below this one; most are added at the end."""
    lo = first_of(li, row)
    hi = lo + count_of(li, row)
    if hi > lo and li.entries[hi - 1, SLOT] < slot:
        return hi
    while lo < hi:
        mid = (lo + hi) >> 1
        if li.entries[mid, SLOT] < slot:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit
def post(t: Tops, s: sl.Slots, li: Lists, space: int, slots: Longs, begin: int) -> int:
    """Write the entries of slots from number `begin` on; how many are. Fewer than all: no room.

    Those that are there already get their present MinT; those that ended one that nothing reaches.
    """
    cells = np.empty(COVER, np.int64)
    for q in range(begin, len(slots)):
        slot = slots[q]
        n = np.int64(t.half[slot, KEYWORDS])
        if (li.meta[LISTS] + COVER * n) * 10 > len(li.table) * 7:
            return q
        first, x, y = np.int64(t.half[slot, HEAP]), t.rows[slot, X], t.rows[slot, Y]
        kscore = kscore_star(t.rows[slot, FLOOR], t.rows[slot, ALPHA])
        alpha, maxdist = alpha_star(t.rows[slot, ALPHA]), t.rows[slot, MAXDIST]
        dead = not s.half[slot, sl.FLAGS] & sl.LIVE
        cover(*finest(space, x, y, li.root), cells)
        for cell in cells:
            least = min_t(space, x, y, maxdist, kscore, alpha, li.boxes[cell])
            for j in range(first, first + n):
                e = _add(li, key_of(cell, t.heap[j]), slot)
                if e < 0:
                    return q
                li.bounds[e, WEIGHT] = up(t.reals[j + n])
                li.bounds[e, MIN_T] = np.float32(np.inf) if dead else down(least)
        li.states[slot] = POSTED | (DEAD if dead else 0)
        li.scores[slot] = kscore
    return len(slots)
