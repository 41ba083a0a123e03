"""Posting subscriptions on the lists of their words, and bringing long lists into order."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.places import point
from nearcast.index.tops.reach.lists import (
    E0,
    E1,
    E2,
    FEW_CLASSES,
    G2,
    LEAF,
    NEAR,
    PX,
    PY,
    PZ,
    SLOT,
    WIDTH,
    Lists,
    add,
    comes_before,
    count_of,
    first_of,
    ordered_of,
    row_of,
    set_count,
    size_of,
    summarise,
)
from nearcast.index.tops.state import ALPHA, FLOOR, HEAP, KEYWORDS, MAXDIST, Tops, X, Y
from nearcast.model.jit import njit
from nearcast.model.space import GEOGRAPHIC_CODE

_SLACK = 2e-6  # of a score: what float32 may lose in a sum of three
_TINY = 1.2e-7  # what it may lose of a coordinate
_METRES = 3.0  # of a coordinate on the globe
_DISTANT = 1e15  # from here on squares could overflow
_BEHIND = 64  # entries that are never worth bringing into order

Floats = NDArray[np.float32]


@njit(lean=True, forceinline=True)
def headroom(t: Tops, space: int, slot: int) -> np.float32:
    """alpha - floor, rounded up by all that the other numbers of an entry may have lost."""
    alpha, maxdist = t.rows[slot, ALPHA], t.rows[slot, MAXDIST]
    lost = _METRES if space == GEOGRAPHIC_CODE else 0.0
    if space != GEOGRAPHIC_CODE:
        lost = 4.0 * _TINY * (abs(t.rows[slot, X]) + abs(t.rows[slot, Y]))
    return np.float32(alpha - t.rows[slot, FLOOR] + _SLACK + alpha / maxdist * lost)


@njit(lean=True)
def make_entry(t: Tops, space: int, slot: int, weight: float, rest: float, entry: Floats) -> None:
    """The entry of a slot under a word of this weight, with the norm of the words behind it."""
    x, y, z = point(space, t.rows[slot, X], t.rows[slot, Y])
    alpha, maxdist = t.rows[slot, ALPHA], t.rows[slot, MAXDIST]
    entry[PX], entry[PY], entry[PZ] = np.float32(x), np.float32(y), np.float32(z)
    entry[E0] = headroom(t, space, slot)
    entry[E1] = np.float32((1.0 - alpha) * weight)
    entry[E2] = np.float32((1.0 - alpha) * rest)
    slope = alpha / maxdist
    entry[G2] = np.float32(0.0 if maxdist > _DISTANT else slope * slope * (1.0 - 1e-6))
    entry[NEAR] = np.float32(alpha * (1.0 - 1e-6))


@njit
def post(
    t: Tops,
    li: Lists,
    space: int,
    idf: NDArray[np.float64],
    slots: NDArray[np.int64],
    begin: int,
    most: int,
    grown: NDArray[np.int64],
) -> int:
    """Post slots from number `begin` on; how many are posted then. Fewer than all: make room.

    `idf` has those of all keywords, one slot after the other from `begin` on; no slot has more than
    `most`. `grown` gets the rows of lists that have leaves and grew, and in front their number.
    """
    rows, at = np.empty(most, np.int64), np.empty(most, np.int64)
    entry = np.empty(WIDTH, np.float32)
    done = 0
    for q in range(begin, len(slots)):
        slot = slots[q]
        first, n = np.int64(t.half[slot, HEAP]), np.int64(t.half[slot, KEYWORDS])
        if (li.meta[0] + n) * 10 > len(li.table) * 7 or grown[0] + n + 1 > len(grown):
            return q
        for j in range(n):
            row = row_of(li, t.heap[first + j], idf[done + j])
            place = j
            while place > 0 and comes_before(li, row, rows[place - 1]):
                rows[place], at[place] = rows[place - 1], at[place - 1]
                place -= 1
            rows[place], at[place] = row, j
        squares = 0.0
        for j in range(n - 1, -1, -1):
            weight = t.reals[first + n + at[j]]
            make_entry(t, space, slot, weight, math.sqrt(squares), entry)
            if not add(li, rows[j], entry, slot):
                return q
            if size_of(li, rows[j]) >= FEW_CLASSES:
                grown[0] += 1
                grown[grown[0]] = rows[j]
            squares += weight * weight
        done += n
    return len(slots)


@njit
def tidy(li: Lists, rows: NDArray[np.int64]) -> None:
    """Bring lists into order where much stands behind."""
    for row in rows:
        if size_of(li, row) >= FEW_CLASSES:
            ordered = ordered_of(li, row)
            if count_of(li, row) - ordered > _BEHIND + ordered // 8:
                _order(li, row)


@njit(lean=True, forceinline=True)
def _spread(v: int) -> int:
    """The low ten bits of a number with two free bits behind each."""
    v = (v | (v << 16)) & 0x030000FF
    v = (v | (v << 8)) & 0x0300F00F
    v = (v | (v << 4)) & 0x030C30C3
    return (v | (v << 2)) & 0x09249249


@njit
def _order(li: Lists, row: int) -> None:
    """Bring a list into the order of how far entries reach, then of where they are."""
    first, count = first_of(li, row), count_of(li, row)
    entries = np.empty((count, WIDTH), np.float32)
    slots = np.empty(count, np.int32)
    n = 0
    for e in range(count):
        leaf, j = first + e // LEAF, e % LEAF
        if li.leaves[leaf, E0, j] == -np.float32(np.inf):
            continue
        for c in range(WIDTH):
            entries[n, c] = li.leaves[leaf, c, j]
        slots[n] = li.leaf_slots[leaf, SLOT, j]
        n += 1
    n = _each_once(entries, slots, n)
    low, high = np.empty(3), np.empty(3)
    for c in range(3):
        low[c], high[c] = np.inf, -np.inf
        for e in range(n):
            v = np.float64(entries[e, c])
            if np.isfinite(v):
                low[c], high[c] = min(low[c], v), max(high[c], v)
    keys = np.empty(n, np.int64)
    side = max(max(high[0] - low[0], high[1] - low[1]), high[2] - low[2])
    for e in range(n):
        key = 0
        for c in range(3):
            v = np.float64(entries[e, c])
            part = 0.0 if not np.isfinite(v) or side <= 0.0 else (v - low[c]) / side * 1023.0
            key |= _spread(np.int64(part)) << c
        keys[e] = _class_of(entries, e) << 32 | key
    order = np.argsort(keys)
    for e in range(n):
        leaf, j = first + e // LEAF, e % LEAF
        for c in range(WIDTH):
            li.leaves[leaf, c, j] = entries[order[e], c]
        li.leaf_slots[leaf, SLOT, j] = slots[order[e]]
    for leaf in range((n + LEAF - 1) // LEAF):
        summarise(li, first + leaf, min(LEAF, n - leaf * LEAF))
    set_count(li, row, n, n)


@njit
def _each_once(entries: Floats, slots: NDArray[np.int32], n: int) -> int:
    """Of entries of one slot keep the one that reaches farthest, which is the latest."""
    order = np.argsort(slots[:n], kind="mergesort")
    drop = np.zeros(n, np.bool_)
    for a in range(n - 1):
        one, other = order[a], order[a + 1]
        if slots[one] == slots[other]:
            if entries[other, E0] >= entries[one, E0]:
                drop[one] = True
            else:
                drop[other] = True
                order[a + 1] = one
    kept = 0
    for e in range(n):
        if not drop[e]:
            for c in range(WIDTH):
                entries[kept, c] = entries[e, c]
            slots[kept] = slots[e]
            kept += 1
    return kept


@njit(lean=True, forceinline=True)
def _class_of(entries: Floats, e: int) -> int:
    """What reaches equally far by place and by words has one class."""
    near = np.float64(entries[e, NEAR])
    by_words = np.int64(min(max((1.0 - near) * 6.0, 0.0), 5.0))
    best = np.float64(entries[e, E0]) + 0.5 * np.float64(entries[e, E1])
    part = best / near if near > 1e-9 else np.inf
    if not part < 1.0:
        reach = np.int64(15)
    elif part <= 0.0:
        reach = max(3 + np.int64(part * 4.0), 0)
    else:
        reach = max(15 + np.int64(2.0 * math.log2(part)), 4)
    return by_words << 4 | reach
