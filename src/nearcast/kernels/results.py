"""Results of k nearest objects: sorted lists in one pool, with or without a time window.

A list is sorted by (distance, order of arrival), so the object that was there first stays at equal
distance. Without a window it holds the k nearest. With one it holds the k-skyband: an object that
k others precede in the list and outlive can never be seen again and is dropped; the visible result
is the first k. A change is reported as (object number or -1, slot, event, distance, moment, name).

A list of `room` entries is a block of the pool, 16 bytes per entry: how near and which. A list with
a window has a second block right behind it, with the time of each entry and how many outlive it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import blocks
from nearcast.model.jit import njit

# int64 columns of a row; X, Y, REACH are read as float64
X, Y, REACH, K, WINDOW, LIST = 0, 1, 2, 3, 4, 5
# int32 columns of a row (the same memory)
LENGTH, ROOM, DIRTY = 12, 13, 14
POSTED = 15  # the level of the lists that lead to it (index.balls.post)
# columns of an entry; DISTANCE is read as float64
DISTANCE, NAME = 0, 1
# columns of its second half, `room` entries further on, where there is a window
TIME, OUTLIVED = 0, 1
ENTRY = 2

# places in `meta`, behind those of the pool's blocks (`kernels.blocks`)
NAMES_TOP = blocks.META
WINDOWED = blocks.META + 1  # subscriptions with a window
DIRTY_TOP = blocks.META + 2
OUT_TOP = blocks.META + 3
CLOSED = blocks.META + 4  # batches so far; a slot that changed in this one has the next in DIRTY
META = blocks.META + 5

ENTER, LEAVE = 0, 1
DONE, NEED_POOL, NEED_OUT, NEED_LISTS = 0, 1, 2, 3


class Results(NamedTuple):
    """State of all results; all arrays but the last three may be memory-mapped."""

    rows: NDArray[np.int64]  # [slots, 8]
    reals: NDArray[np.float64]  # the same memory
    half: NDArray[np.int32]  # the same memory, [slots, 16]
    pool: NDArray[np.int64]  # [entries, ENTRY]
    distances: NDArray[np.float64]  # the same memory
    names: NDArray[np.uint8]  # object ids: two bytes of length, then the bytes
    meta: NDArray[np.int64]
    dirty: NDArray[np.int32]  # slots that changed in this batch
    out: NDArray[np.int64]  # [*, 5]: object number, slot, event, moment, name
    out_distance: NDArray[np.float64]


@njit(lean=True, forceinline=True)
def make_room(r: Results, slot: int, need: int) -> bool:
    """Make room for `need` entries in the list of `slot`; False if the pool must grow first."""
    room = np.int64(r.half[slot, ROOM])
    if need <= room:
        return True
    twice = 1 if r.rows[slot, WINDOW] > 0 else 0
    size = blocks.size_for(need)
    first = blocks.take(r.pool, r.meta, size + twice)
    if first < 0:
        return False
    old = r.rows[slot, LIST]
    for i in range(r.half[slot, LENGTH]):
        _copy(r, old + i, first + i)
        if twice:
            _copy(r, old + room + i, first + (1 << size) + i)
    if room > 0:
        blocks.give_back(r.pool, r.meta, old, blocks.size_for(room << twice))
    r.rows[slot, LIST] = first
    r.half[slot, ROOM] = np.int32(1 << size)
    return True


@njit(lean=True, forceinline=True)
def _copy(r: Results, source: int, target: int) -> None:
    for c in range(ENTRY):
        r.pool[target, c] = r.pool[source, c]


@njit(lean=True, forceinline=True)
def report(r: Results, i: int, slot: int, event: int, moment: int, name: int, dist: float) -> None:
    """Add a change to `out`."""
    top = r.meta[OUT_TOP]
    r.out[top, 0] = i
    r.out[top, 1] = slot
    r.out[top, 2] = event
    r.out[top, 3] = moment
    r.out[top, 4] = name
    r.out_distance[top] = dist
    r.meta[OUT_TOP] = top + 1


@njit(lean=True, forceinline=True)
def touch(r: Results, slot: int) -> None:
    """Note that the list of `slot` changed, and how far it reaches now."""
    if r.half[slot, DIRTY] != r.meta[CLOSED] + 1:
        r.half[slot, DIRTY] = np.int32(r.meta[CLOSED] + 1)
        r.dirty[r.meta[DIRTY_TOP]] = slot
        r.meta[DIRTY_TOP] += 1
    length = r.half[slot, LENGTH]
    k = r.rows[slot, K]
    if length >= k and r.rows[slot, WINDOW] == 0:
        r.reals[slot, REACH] = r.distances[r.rows[slot, LIST] + k - 1, DISTANCE]
    else:
        r.reals[slot, REACH] = np.nan  # compares false: nothing is out of reach


@njit(lean=True, forceinline=True)
def _place(r: Results, first: int, length: int, dist: float) -> int:
    """Rank behind all that are as near as `dist`."""
    pos = length
    while pos > 0 and r.distances[first + pos - 1, DISTANCE] > dist:
        pos -= 1
    return pos


@njit(lean=True, forceinline=True)
def put(r: Results, first: int, length: int, pos: int, dist: float, name: int) -> None:
    """Put an entry at rank `pos` of a list, those from there on one rank further."""
    for j in range(length, pos, -1):
        _copy(r, first + j - 1, first + j)
    r.distances[first + pos, DISTANCE] = dist
    r.pool[first + pos, NAME] = name


@njit(lean=True, forceinline=True)
def offer(r: Results, slot: int, i: int, dist: float, time: int, name: int) -> bool:
    """Offer an object to `slot`. The caller made room for one more entry and two changes.

    True if the object was taken (its name must then stay in `names`).
    """
    if r.rows[slot, WINDOW] > 0:
        return _offer_windowed(r, slot, i, dist, time, name)
    k = r.rows[slot, K]
    first = r.rows[slot, LIST]
    length = np.int64(r.half[slot, LENGTH])
    pos = _place(r, first, length, dist)
    if pos >= k:
        return False
    report(r, i, slot, ENTER, time, name, dist)
    if length == k:
        length -= 1
        report(r, i, slot, LEAVE, time, r.pool[first + length, NAME], 0.0)
    put(r, first, length, pos, dist, name)
    r.half[slot, LENGTH] = np.int32(length + 1)
    touch(r, slot)
    return True


@njit(lean=True)
def _offer_windowed(r: Results, slot: int, i: int, dist: float, time: int, name: int) -> bool:
    """The same, keeping the k-skyband."""
    k = r.rows[slot, K]
    first = r.rows[slot, LIST]
    more = first + np.int64(r.half[slot, ROOM])
    length = np.int64(r.half[slot, LENGTH])
    pos = _place(r, first, length, dist)
    outlived = 0
    for j in range(pos):
        outlived += r.pool[more + j, TIME] >= time
    if outlived >= k:
        return False
    if pos < k:
        report(r, i, slot, ENTER, time, name, dist)
        if length >= k:
            report(r, i, slot, LEAVE, time, r.pool[first + k - 1, NAME], 0.0)
    put(r, first, length, pos, dist, name)
    for j in range(length, pos, -1):
        _copy(r, more + j - 1, more + j)
    r.pool[more + pos, TIME] = time
    r.pool[more + pos, OUTLIVED] = outlived
    kept = pos + 1
    for j in range(pos + 1, length + 1):
        if r.pool[more + j, TIME] <= time:
            r.pool[more + j, OUTLIVED] += 1
        if r.pool[more + j, OUTLIVED] < k:
            _copy(r, first + j, first + kept)
            _copy(r, more + j, more + kept)
            kept += 1
    r.half[slot, LENGTH] = np.int32(kept)
    touch(r, slot)
    return True


@njit(lean=True)
def next_moment(r: Results, slot: int) -> int:
    """When the first entry of `slot` grows older than its window."""
    more = r.rows[slot, LIST] + r.half[slot, ROOM]
    oldest = np.int64(1) << np.int64(62)
    for j in range(r.half[slot, LENGTH]):
        oldest = min(oldest, r.pool[more + j, TIME])
    return oldest + r.rows[slot, WINDOW]


@njit(lean=True)
def expire(r: Results, slot: int, moment: int, reporting: bool) -> None:
    """Take out what is too old at `moment`, the next one of `slot`.

    The caller made room for two changes per entry. What leaves is reported before what moves up.
    """
    k = r.rows[slot, K]
    first = r.rows[slot, LIST]
    more = first + np.int64(r.half[slot, ROOM])
    length = np.int64(r.half[slot, LENGTH])
    last = moment - r.rows[slot, WINDOW]
    visible = 0  # of those that stay, how many were visible
    for j in range(length):
        if r.pool[more + j, TIME] <= last:
            if j < k and reporting:
                report(r, -1, slot, LEAVE, moment, r.pool[first + j, NAME], 0.0)
        elif j < k:
            visible += 1
    kept = 0
    for j in range(length):
        if r.pool[more + j, TIME] > last:
            if visible <= kept < k and reporting:
                dist = r.distances[first + j, DISTANCE]
                report(r, -1, slot, ENTER, moment, r.pool[first + j, NAME], dist)
            _copy(r, first + j, first + kept)
            _copy(r, more + j, more + kept)
            kept += 1
    r.half[slot, LENGTH] = np.int32(kept)
    touch(r, slot)


@njit(lean=True)
def restore(
    r: Results,
    slots: NDArray[np.int64],
    offsets: NDArray[np.int64],
    distances: NDArray[np.float64],
    times: NDArray[np.int64],
    outlived: NDArray[np.int64],
    name_offsets: NDArray[np.int64],
    names: NDArray[np.uint8],
) -> None:
    """Replace the lists of `slots`. Room must have been made for all of them."""
    for i in range(len(slots)):
        slot = slots[i]
        length = offsets[i + 1] - offsets[i]
        r.half[slot, LENGTH] = 0
        make_room(r, slot, length)
        first = r.rows[slot, LIST]
        for j in range(length):
            at = offsets[i] + j
            top = r.meta[NAMES_TOP]
            size = name_offsets[at + 1] - name_offsets[at]
            r.names[top] = size & 0xFF
            r.names[top + 1] = size >> 8
            for b in range(size):
                r.names[top + 2 + b] = names[name_offsets[at] + b]
            r.meta[NAMES_TOP] = top + 2 + size
            put(r, first, j, j, distances[at], top)
            if r.rows[slot, WINDOW] > 0:
                more = first + np.int64(r.half[slot, ROOM])
                r.pool[more + j, TIME] = times[at]
                r.pool[more + j, OUTLIVED] = outlived[at]
        r.half[slot, LENGTH] = np.int32(length)
        touch(r, slot)
