"""Buffers: of each subscription the best objects of the window, best first.

A buffer holds every object of the window that is at least as good as its last entry was when it
was filled or cut, and whose score is at least the floor; but none that k others precede and
outlive: such a one can never be seen again. Of equal scores the newer one is the better. The first
k entries are the result. Dominated entries, and hidden ones that left the window, go when room is
needed or when the result changes by expiry; a policy may say otherwise (`UPKEEP`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.policy import BY_LENGTH, FOR_ROOM
from nearcast.index.tops.state import (
    CHANGED,
    COMPARED,
    DONE,
    ENTER,
    FLOOR,
    FOREVER,
    FREE,
    LEAVE,
    LENGTH,
    LIST,
    MOMENT,
    NEED_OUT,
    NEED_POOL,
    OUT_TOP,
    POOL_TOP,
    ROOM,
    TOUCHED,
    UPKEEP,
    K,
    Period,
    Tops,
    Weighed,
    leaves,
    place_of,
    sees_window,
)
from nearcast.kernels import slots as sl
from nearcast.model.jit import njit

UNIT = 8  # entries of the smallest block
_WIDTH = 12  # float64 numbers of a unit: eight scores, and sixteen halves of which eight are ranks
_LINEAR = 64  # sizes in units; larger blocks are powers of two


@njit(lean=True, forceinline=True)
def class_of(entries: int) -> int:
    """The size of the block for so many entries."""
    units = max((entries + UNIT - 1) // UNIT, 1)
    if units <= _LINEAR:
        return units - 1
    size = _LINEAR
    while (1 << (size - _LINEAR + 7)) < units:
        size += 1
    return size


@njit(lean=True, forceinline=True)
def units_of(size: int) -> int:
    """Units of a block of that size."""
    return size + 1 if size < _LINEAR else 1 << (size - _LINEAR + 7)


@njit(lean=True, forceinline=True)
def _take(t: Tops, size: int) -> int:
    """A block, in units; -1: the pool must grow."""
    head = t.meta[FREE + size]
    if head > 0:
        t.meta[FREE + size] = t.links[(head - 1) * _WIDTH]
        return head - 1
    top = t.meta[POOL_TOP]
    if (top + units_of(size)) * _WIDTH > len(t.pool):
        return -1
    t.meta[POOL_TOP] = top + units_of(size)
    return top


@njit(lean=True, forceinline=True)
def scores_at(t: Tops, slot: int) -> int:
    """Where the scores of a buffer begin in `pool`."""
    return np.int64(t.half[slot, LIST]) * _WIDTH


@njit(lean=True, forceinline=True)
def ranks_at(t: Tops, slot: int) -> int:
    """Where its ranks begin in `ranks`."""
    return (np.int64(t.half[slot, LIST]) * _WIDTH + t.half[slot, ROOM]) * 2


@njit(lean=True)
def make_room(t: Tops, slot: int, entries: int) -> bool:
    """Room for so many entries; False: the pool must grow."""
    room = np.int64(t.half[slot, ROOM])
    if entries <= room:
        return True
    size = class_of(entries)
    block = _take(t, size)
    if block < 0:
        return False
    old, old_ranks = scores_at(t, slot), ranks_at(t, slot)
    if room > 0:
        wider = units_of(size) * UNIT
        first = block * _WIDTH
        for j in range(t.half[slot, LENGTH]):
            t.pool[first + j] = t.pool[old + j]
            t.ranks[(first + wider) * 2 + j] = t.ranks[old_ranks + j]
        give_back(t, slot)
    t.half[slot, LIST] = np.int32(block)
    t.half[slot, ROOM] = np.int32(units_of(size) * UNIT)
    return True


@njit(lean=True)
def give_back(t: Tops, slot: int) -> None:
    """Make the block of a slot free; the caller sets another, or none."""
    room = np.int64(t.half[slot, ROOM])
    if room > 0:
        size = class_of(room)
        t.links[scores_at(t, slot)] = t.meta[FREE + size]
        t.meta[FREE + size] = np.int64(t.half[slot, LIST]) + 1
        t.half[slot, ROOM] = 0


@njit(lean=True, forceinline=True)
def _move(t: Tops, first: int, ranks: int, source: int, target: int) -> None:
    t.pool[first + target] = t.pool[first + source]
    t.ranks[ranks + target] = t.ranks[ranks + source]


@njit(lean=True, forceinline=True)
def report(
    t: Tops, order: int, slot: int, event: int, moment: int, place: int, score: float
) -> None:
    """Add a change to `out`."""
    top = t.meta[OUT_TOP]
    t.out[top, 0] = order
    t.out[top, 1] = slot
    t.out[top, 2] = event
    t.out[top, 3] = moment
    t.out[top, 4] = place
    t.scores[top] = score
    t.meta[OUT_TOP] = top + 1


@njit(lean=True)
def due_of(t: Tops, p: Period, slot: int) -> int:
    """When the first of the visible entries leaves."""
    ranks = ranks_at(t, slot)
    least = np.int64(FOREVER)
    for j in range(min(t.half[slot, LENGTH], t.half[slot, K])):
        least = min(least, leaves(t, p, t.ranks[ranks + j]))
    return least


@njit(lean=True)
def survivors(t: Tops, p: Period, slot: int) -> int:
    """How many entries are still in the window when the period is over."""
    ranks = ranks_at(t, slot)
    n = 0
    for j in range(t.half[slot, LENGTH]):
        n += leaves(t, p, t.ranks[ranks + j]) > p.until
    return n


@njit(lean=True)
def _expire(t: Tops, p: Period, slot: int, moment: int, order: int, time: int, told: bool) -> None:
    """Take out what has left at `moment`: visible ones leave, then what moves up enters."""
    first, ranks = scores_at(t, slot), ranks_at(t, slot)
    length, k = np.int64(t.half[slot, LENGTH]), np.int64(t.half[slot, K])
    t.meta[TOUCHED] += length
    kept = visible = 0
    by_time = 0 if p.count > 0 else MOMENT
    for j in range(length):
        if leaves(t, p, t.ranks[ranks + j]) <= moment:
            if j < k and told:
                place = place_of(t, t.ranks[ranks + j])
                report(t, order, slot, LEAVE + by_time, time, place, 0.0)
            continue
        visible += j < k
        _move(t, first, ranks, j, kept)
        kept += 1
    if told:
        for j in range(visible, min(np.int64(kept), k)):
            place = place_of(t, t.ranks[ranks + j])
            report(t, order, slot, ENTER + by_time, time, place, t.pool[first + j])
    t.half[slot, LENGTH] = np.int32(kept)


@njit(lean=True, forceinline=True)
def _first_from(values: NDArray[np.int64], value: int) -> int:
    """The first place in ascending `values` that is not below `value`."""
    lo, hi = 0, len(values)
    while lo < hi:
        mid = (lo + hi) >> 1
        if values[mid] < value:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit(lean=True)
def settle(t: Tops, s: sl.Slots, w: Weighed, p: Period, slot: int, until: int) -> int:
    """Let what leaves up to the moment `until` leave; DONE or what is short."""
    while t.due[slot] <= until:
        if t.meta[OUT_TOP] + 2 * t.half[slot, LENGTH] > len(t.out):
            return NEED_OUT
        moment = t.due[slot]
        if p.count > 0:
            i = _first_from(w.ranks, moment)
            row = w.o.order[i]
            time = w.o.time[row]
            told = sees_window(s, slot, i, w.o.until[row])
        else:
            i = max(_first_from(w.clock, moment), np.int64(s.half[slot, sl.BORN]))
            time = moment
            told = sl.lives_at(s, slot, moment)
        _expire(t, p, slot, moment, i, time, told)
        t.due[slot] = due_of(t, p, slot)
    return DONE


@njit(lean=True)
def prune(t: Tops, p: Period, slot: int) -> None:
    """Drop what k others precede and outlive, and hidden entries that left.

    These are outlived by the k entries of the result.
    """
    first, ranks = scores_at(t, slot), ranks_at(t, slot)
    length, k = np.int64(t.half[slot, LENGTH]), np.int64(t.half[slot, K])
    kept = min(length, k)
    for j in range(kept, length):
        own = leaves(t, p, t.ranks[ranks + j])
        beaten, other, spare = 0, 0, kept - k  # so many may leave before it until k cannot be had
        while other < kept and beaten < k and other - beaten <= spare:
            beaten += leaves(t, p, t.ranks[ranks + other]) >= own
            other += 1
        t.meta[COMPARED] += other
        if beaten < k:
            _move(t, first, ranks, j, kept)
            kept += 1
    t.half[slot, LENGTH] = np.int32(kept)


@njit(lean=True)
def drop_left(t: Tops, p: Period, slot: int, now: int) -> None:
    """Drop hidden entries that have left at the moment `now`."""
    first, ranks = scores_at(t, slot), ranks_at(t, slot)
    length = np.int64(t.half[slot, LENGTH])
    kept = min(length, np.int64(t.half[slot, K]))
    for j in range(kept, length):
        if leaves(t, p, t.ranks[ranks + j]) > now:
            _move(t, first, ranks, j, kept)
            kept += 1
    t.half[slot, LENGTH] = np.int32(kept)


@njit(lean=True, forceinline=True)
def _place(t: Tops, slot: int, score: float) -> int:
    """How many entries are better than a new one of this score: of equals it is the newest."""
    first = scores_at(t, slot)
    lo, hi = 0, np.int64(t.half[slot, LENGTH])
    while lo < hi:
        mid = (lo + hi) >> 1
        if t.pool[first + mid] > score:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit(lean=True)
def cut(t: Tops, p: Period, slot: int, most: int, depth: int) -> None:
    """Keep `depth` entries of a buffer with more than `most`, and raise the floor to the last.

    Only if enough of them are still in the window when the period is over.
    """
    length = np.int64(t.half[slot, LENGTH])
    if length <= most:
        return
    ranks = ranks_at(t, slot)
    n = 0
    for j in range(depth):
        n += leaves(t, p, t.ranks[ranks + j]) > p.until
    if n < t.half[slot, K]:
        return
    t.half[slot, LENGTH] = np.int32(depth)
    t.rows[slot, FLOOR] = t.pool[scores_at(t, slot) + depth - 1]


@njit(lean=True)
def insert(t: Tops, p: Period, slot: int, score: float, place: int, most: int, depth: int) -> int:
    """Put the object at a place of the log into a buffer; where it is then, or -1: no room."""
    length = np.int64(t.half[slot, LENGTH])
    t.meta[TOUCHED] += length
    if length == t.half[slot, ROOM]:
        if t.meta[UPKEEP] == FOR_ROOM:
            prune(t, p, slot)
            cut(t, p, slot, most, depth)
            length = np.int64(t.half[slot, LENGTH])
        if not make_room(t, slot, length + 1 + length // 16):
            return -1
    if score < t.rows[slot, FLOOR]:
        return length  # the cut was above it
    at = _place(t, slot, score)
    first, ranks = scores_at(t, slot), ranks_at(t, slot)
    for j in range(length, at, -1):
        _move(t, first, ranks, j - 1, j)
    t.pool[first + at] = score
    t.ranks[ranks + at] = np.int32(np.uint32(t.log[place, 0] & 0xFFFFFFFF))
    t.half[slot, LENGTH] = np.int32(length + 1)
    return at


@njit(lean=True)
def offer(
    t: Tops,
    p: Period,
    slot: int,
    i: int,
    time: int,
    now: int,
    score: float,
    place: int,
    most: int,
    depth: int,
) -> int:
    """Offer an object whose score is at least the floor; DONE or what is short."""
    if t.meta[OUT_TOP] + 2 > len(t.out):
        return NEED_OUT
    k = np.int64(t.half[slot, K])
    # It is noted before room is made: the k-th entry stays where it is.
    at = insert(t, p, slot, score, place, most, depth)
    if at < 0:
        return NEED_POOL
    t.marks[slot] |= CHANGED
    if at < k:
        report(t, i, slot, ENTER, time, place, score)
        if t.half[slot, LENGTH] > k:
            old = place_of(t, t.ranks[ranks_at(t, slot) + k])
            report(t, i, slot, LEAVE, time, old, 0.0)
        t.due[slot] = min(t.due[slot], leaves(t, p, t.ranks[ranks_at(t, slot) + at]))
    if t.meta[UPKEEP] == BY_LENGTH:
        drop_left(t, p, slot, now)
        cut(t, p, slot, most, depth)
    return DONE
