"""What the kernels of `topk`-like subscriptions share: a row each, buffers in a pool, the window.

A row has 64 bytes. The keywords of a subscription stand in `heap`, their normalised weights behind
them. Its buffer is a block of `pool`: scores (float64), then the low 32 bits of ranks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import slots as sl
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

# float64 columns of a row
X, Y, ALPHA, MAXDIST, FLOOR = 0, 1, 2, 3, 4
# int32 columns of a row (the same memory)
HEAP, LIST, K, KEYWORDS, LENGTH, ROOM = 10, 11, 12, 13, 14, 15

# places in `meta`
POOL_TOP = 0  # units of the pool handed out so far
HEAP_TOP = 1
OUT_TOP = 2
FIRST, TOP = 3, 4  # the window's objects are at these places of `log`
PLAIN = 5  # 1: their ranks follow each other without gaps
READY = 6  # 1: the log is that of the window
PASSED = 7  # how far time had come when the last batch ended
STALE = 8  # 1: buffers may hold what had left before
POSTED = 9  # slots that were posted
FREE = 10  # .. FREE + CLASSES: 1 + the first free block of a size; 0: none
CLASSES = 96
UPKEEP = FREE + CLASSES  # when entries go (`index.tops.policy`)
TOUCHED = UPKEEP + 1  # counted work: entries of buffers into which objects came or from which left
COMPARED = UPKEEP + 2  # and pairs of entries that were compared, to find dominated ones
META = UPKEEP + 3

# marks of a slot within a batch
CHANGED, WHOLE = 1, 2

NOT_BEGUN = -(2**62)  # as `due`: it has no first result yet
FOREVER = 2**62
ENTER, LEAVE = 0, 1
MOMENT, BEGIN = 2, 4  # added to them in `out`: time did it; it is a first result
DONE, NEED_OUT, NEED_POOL = 0, 1, 2

# places in `counts`
NEXT, EXAMINED, LOOKUPS, SCANNED, OFFERED, VISITED = range(6)
# groups of entries under one bound (or leaves of a list), those that were passed over whole; cells
PARTS, PARTS_SKIPPED, CELLS, CELLS_SKIPPED = range(6, 10)
COUNTS = 10

_LOW = np.int64(0xFFFFFFFF)


class Tops(NamedTuple):
    """State of all subscriptions; `marks` and what stands behind them are of one batch."""

    rows: NDArray[np.float64]  # [slots, 8]
    half: NDArray[np.int32]  # the same memory, [slots, 16]
    heap: NDArray[np.uint64]
    reals: NDArray[np.float64]  # the same memory as `heap`
    due: NDArray[np.int64]  # per slot: no visible entry leaves before this moment
    pool: NDArray[np.float64]
    ranks: NDArray[np.int32]  # the same memory as `pool`
    links: NDArray[np.int64]  # the same memory
    log: NDArray[np.int64]  # [objects, 3]: rank, time, where its id begins; ascending ranks
    meta: NDArray[np.int64]
    marks: NDArray[np.uint8]
    out: NDArray[np.int64]  # [*, 5]: order, slot, event, moment, place in `log`
    scores: NDArray[np.float64]  # parallel to `out`


class Weighed(NamedTuple):
    """The objects of a batch with what their words weigh."""

    o: ObjectColumns
    ranks: NDArray[np.int64]  # by number in object order
    clock: NDArray[np.int64]
    weights: NDArray[np.float64]  # parallel to `o.words`: tf·idf, divided by the object's norm
    idf: NDArray[np.float64]  # parallel too


class Period(NamedTuple):
    """The window, and the objects that are handled at a time."""

    count: int  # of the window; 0: it is one of time
    span: int
    first: int  # numbers of objects: first <= i < stop
    stop: int
    until: int  # the moments of this period are up to here


@njit(lean=True, forceinline=True)
def place_of(t: Tops, low: int) -> int:
    """The place in `log` of an object of the window, by the low bits of its rank."""
    top = t.meta[TOP]
    newest = t.log[top - 1, 0]
    rank = newest - ((newest - np.int64(low)) & _LOW)
    if t.meta[PLAIN]:
        return top - 1 - (newest - rank)
    lo, hi = t.meta[FIRST], top
    while lo < hi:
        mid = (lo + hi) >> 1
        if t.log[mid, 0] < rank:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit(lean=True, forceinline=True)
def leaves(t: Tops, p: Period, low: int) -> int:
    """The moment at which an object leaves the window: a rank, or a time."""
    if p.count > 0:
        newest = t.log[t.meta[TOP] - 1, 0]
        return newest - ((newest - np.int64(low)) & _LOW) + p.count
    return t.log[place_of(t, low), 1] + p.span


@njit(lean=True, forceinline=True)
def sees_window(s: sl.Slots, slot: int, i: int, until: int) -> bool:
    """Whether `slot` sees object number `i` of the batch; its time may be before the slot's."""
    if i < s.half[slot, sl.BORN] or s.half[slot, sl.FLAGS] & sl.LIVE == 0:
        return False
    end = s.rows[slot, sl.END]
    link = s.half[slot, sl.ENDS]
    while link >= 0:  # the latest end first
        if i < s.ends[link, 1]:
            end = s.ends[link, 2]
        link = s.ends[link, 3]
    return s.rows[slot, sl.START] < end and until < end


@njit
def first_ends(s: sl.Slots, slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ends that slots of this batch were subscribed with."""
    ends = np.empty(len(slots), np.int64)
    for n in range(len(slots)):
        ends[n] = s.rows[slots[n], sl.END]
        link = s.half[slots[n], sl.ENDS]
        while link >= 0:
            ends[n] = s.ends[link, 2]
            link = s.ends[link, 3]
    return ends


@njit
def weigh(
    o: ObjectColumns,
    counts: NDArray[np.int32],
    firsts: NDArray[np.int32],
    idf: NDArray[np.float64],
) -> NDArray[np.float64]:
    """tf·idf of each word over the norm of its object, which is summed in order of first use."""
    out = np.empty(len(o.words))
    at = np.empty(16, np.int64)
    for row in range(len(o.word_offsets) - 1):
        start, stop = o.word_offsets[row], o.word_offsets[row + 1]
        if stop - start > len(at):
            at = np.empty(2 * (stop - start), np.int64)
        for j in range(start, stop):
            at[firsts[j]] = j
            out[j] = counts[j] * idf[j]
        squares = 0.0
        for n in range(stop - start):
            weight = out[at[n]]
            squares += weight * weight
        norm = np.sqrt(squares)
        for j in range(start, stop):
            out[j] /= norm
    return out
