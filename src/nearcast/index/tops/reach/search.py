"""Finding candidates: the lists of an object's words, leaf by leaf."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.places import point
from nearcast.index.tops.reach.lists import (
    BOX,
    COUNT,
    E0,
    E1,
    E2,
    FEW_CLASSES,
    G2,
    LEAF,
    LEAST,
    MOST,
    NEAR,
    PX,
    PY,
    PZ,
    SLOT,
    Lists,
    comes_before,
    count_of,
    first_of,
    size_of,
    summarise,
)
from nearcast.index.tops.reach.post import headroom
from nearcast.index.tops.state import LOOKUPS, PARTS, PARTS_SKIPPED, SCANNED, Tops, Weighed
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.prefetch import prefetch
from nearcast.model.jit import njit

_LOOSE = np.float32(1.0 + 1e-5)
_AHEAD = 8  # candidates, or leaves, from prefetching memory to reading it
_UP = 1.0 + 1e-6
_NONE = -np.float32(np.inf)

Floats = NDArray[np.float32]
Halves = NDArray[np.int32]


@njit(lean=True)
def _leaf_hits(
    li: Lists, leaf: int, count: int, x: np.float32, y: np.float32, z: np.float32,
    own: np.float32, rest: np.float32, hits: NDArray[np.uint8],
) -> int:  # fmt: skip
    """Mark the entries of a leaf that may take an object; how many there are."""
    e = li.leaves[leaf]
    total = 0
    for j in range(LEAF):
        dx, dy, dz = e[PX, j] - x, e[PY, j] - y, e[PZ, j] - z
        square = dx * dx + dy * dy + dz * dz
        room = e[E0, j] + e[E1, j] * own + e[E2, j] * rest
        far = e[G2, j] * square > room * room * _LOOSE
        hit = (not far or room >= e[NEAR, j]) and not room < np.float32(0.0)
        hits[j] = hit
    for j in range(count):
        total += hits[j]
    return total


@njit(lean=True, forceinline=True)
def _passes(
    s: Floats, x: np.float32, y: np.float32, z: np.float32, own: np.float32, rest: np.float32
) -> bool:
    """Whether a leaf with this summary may have a hit."""
    room = s[MOST] + s[MOST + 1] * own + s[MOST + 2] * rest
    if room < np.float32(0.0):
        return False
    if room >= s[LEAST + 1]:
        return True
    zero = np.float32(0.0)
    dx = max(max(s[BOX] - x, x - s[BOX + 3]), zero)
    dy = max(max(s[BOX + 1] - y, y - s[BOX + 4]), zero)
    dz = max(max(s[BOX + 2] - z, z - s[BOX + 5]), zero)
    square = dx * dx + dy * dy + dz * dz
    return not s[LEAST] * square > room * room * _LOOSE


@njit(lean=True, forceinline=True)
def _hit(
    e: Floats, x: np.float32, y: np.float32, z: np.float32, own: np.float32, rest: np.float32
) -> bool:
    """Whether one entry may take an object."""
    dx, dy, dz = e[PX] - x, e[PY] - y, e[PZ] - z
    square = dx * dx + dy * dy + dz * dz
    room = e[E0] + e[E1] * own + e[E2] * rest
    far = e[G2] * square > room * room * _LOOSE
    return (not far or room >= e[NEAR]) and not room < np.float32(0.0)


@njit
def search(
    t: Tops,
    s: sl.Slots,
    li: Lists,
    w: Weighed,
    space: int,
    first: int,
    stop: int,
    objects: Halves,
    slots: Halves,
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """(objects that are through, candidates) of objects first <= i < stop.

    Candidates are written to `objects` and `slots`; where these have no more room it ends early.
    """
    longest = 0
    for i in range(first, stop):
        row = w.o.order[i]
        longest = max(longest, w.o.word_offsets[row + 1] - w.o.word_offsets[row])
    rows, own = np.empty(longest + 1, np.int64), np.empty(longest + 1)
    rests = np.empty(longest + 1)
    hits = np.empty(LEAF, np.uint8)
    found = 0
    for i in range(first, stop):
        row = w.o.order[i]
        if i + 1 < stop:
            ahead = w.o.order[i + 1]
            for j in range(w.o.word_offsets[ahead], w.o.word_offsets[ahead + 1]):
                prefetch(li.table, pl.home(len(li.table), w.o.words[j]))
        n = 0
        for j in range(w.o.word_offsets[row], w.o.word_offsets[row + 1]):
            at = pl.find(li.table, w.o.words[j])
            if at >= 0 and li.table[at, COUNT] != np.uint64(0):
                place = n
                while place > 0 and comes_before(li, at, rows[place - 1]):
                    rows[place], own[place] = rows[place - 1], own[place - 1]
                    place -= 1
                rows[place], own[place] = at, w.weights[j]
                n += 1
        counts[LOOKUPS] += w.o.word_offsets[row + 1] - w.o.word_offsets[row]
        squares = 0.0
        for j in range(n - 1, -1, -1):
            rests[j] = math.sqrt(squares) * _UP
            squares += own[j] * own[j]
        px, py, pz = point(space, w.o.x[row], w.o.y[row])
        x, y, z = np.float32(px), np.float32(py), np.float32(pz)
        before = found
        for j in range(n):
            mine, rest = np.float32(own[j] * _UP), np.float32(rests[j])
            found = _search_list(
                t,
                s,
                li,
                space,
                rows[j],
                x,
                y,
                z,
                mine,
                rest,
                i,
                hits,
                objects,
                slots,
                found,
                counts,
            )
            if found < 0:
                return i, before
    return stop, found


@njit(lean=True)
def _search_list(
    t: Tops, s: sl.Slots, li: Lists, space: int, row: int,
    x: np.float32, y: np.float32, z: np.float32, own: np.float32, rest: np.float32, i: int,
    hits: NDArray[np.uint8], objects: Halves, slots: Halves, found: int,
    counts: NDArray[np.int64],
) -> int:  # fmt: skip
    """Candidates of one list; how many there are then, -1: there is no room."""
    start, count = first_of(li, row), count_of(li, row)
    if size_of(li, row) < FEW_CLASSES:
        counts[SCANNED] += count
        if found + count > len(slots):
            return -1
        for e in range(start, start + count):
            if _hit(li.few[e], x, y, z, own, rest):
                slot = li.few_slots[e, SLOT]
                level = headroom(t, space, slot)
                if level < li.few[e, E0] or not s.half[slot, sl.FLAGS] & sl.LIVE:
                    li.few[e, E0] = level if s.half[slot, sl.FLAGS] & sl.LIVE else _NONE
                    if not _hit(li.few[e], x, y, z, own, rest):
                        continue
                objects[found] = i
                slots[found] = slot
                found += 1
        return found
    leaves = (count + LEAF - 1) // LEAF
    counts[PARTS] += leaves
    for n in range(leaves):
        if n + _AHEAD < leaves:
            prefetch(li.summaries, start + n + _AHEAD)
        counts[SCANNED] += 1
        leaf = start + n
        if not _passes(li.summaries[leaf], x, y, z, own, rest):
            counts[PARTS_SKIPPED] += 1
            continue
        held = min(LEAF, count - n * LEAF)
        counts[SCANNED] += held
        if _leaf_hits(li, leaf, held, x, y, z, own, rest, hits) == 0:
            continue
        if found + held > len(slots):
            return -1
        found = _take(
            t, s, li, space, leaf, held, x, y, z, own, rest, i, hits, objects, slots, found
        )
    return found


@njit(lean=True)
def _take(
    t: Tops, s: sl.Slots, li: Lists, space: int, leaf: int, held: int,
    x: np.float32, y: np.float32, z: np.float32, own: np.float32, rest: np.float32, i: int,
    hits: NDArray[np.uint8], objects: Halves, slots: Halves, found: int,
) -> int:  # fmt: skip
    """Take over the hits of a leaf, but for those whose floor rose; how many there are then."""
    e, loose = li.leaves[leaf], False
    for j in range(held):
        if hits[j]:
            prefetch(t.rows, li.leaf_slots[leaf, SLOT, j])
            prefetch(s.rows, li.leaf_slots[leaf, SLOT, j])
    for j in range(held):
        if not hits[j]:
            continue
        slot = li.leaf_slots[leaf, SLOT, j]
        level = headroom(t, space, slot)
        if not s.half[slot, sl.FLAGS] & sl.LIVE:
            level = _NONE
        if level < e[E0, j]:
            e[E0, j] = level
            loose = True
            dx, dy, dz = e[PX, j] - x, e[PY, j] - y, e[PZ, j] - z
            square = dx * dx + dy * dy + dz * dz
            room = e[E0, j] + e[E1, j] * own + e[E2, j] * rest
            far = e[G2, j] * square > room * room * _LOOSE
            if (far and not room >= e[NEAR, j]) or room < np.float32(0.0):
                continue
        objects[found] = i
        slots[found] = slot
        found += 1
    if loose:
        summarise(li, leaf, held)
    return found
