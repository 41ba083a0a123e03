"""Which entries of a posting list an object matches, as far as the entries themselves can say.

Indexes of the loops are unsigned: for signed ones Numba looks each time whether they count from
the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import ROUNDED, Index
from nearcast.index.regions.lists import (
    DECIDES,
    MANY,
    NONE,
    NOT,
    OTHER,
    ROUND_SHIFT,
    WIDTH,
    is_round,
)
from nearcast.index.regions.search import (
    EXACT,
    MASK,
    ONE,
    SEEN,
    TWICE,
    ZERO,
    Entries,
    Found,
    Search,
    Visit,
)
from nearcast.kernels import slots as sl
from nearcast.kernels.rings import OUTSIDE, UNSURE, Spot, side_of_circle, spot_of
from nearcast.model.jit import njit

_SEEN_SHIFT = np.uint64(52)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TWO, _THREE, _FOUR = (np.uint64(n) for n in range(2, 5))
_WIDTH = np.uint64(WIDTH)
_OTHER = np.uint64(OTHER)


class Seen(NamedTuple):
    """What `decide` needs to know of an object."""

    number: int  # in the log
    x: np.float32
    y: np.float32
    settled: int  # slots before this one see it unless they are `careful`
    start: int  # its words
    stop: int
    spot: Spot


@njit(lean=True, forceinline=True)
def within(
    boxes: NDArray[np.float32],
    first: int,
    stop: int,
    x: np.float32,
    y: np.float32,
    hit: NDArray[np.uint64],
) -> int:
    """The entries [first, stop) whose box holds (x, y); how many.

    Without a branch per entry: which side of it a point lies on cannot be predicted.
    """
    m = ZERO
    e, last = np.uint64(first) * _WIDTH, np.uint64(stop) * _WIDTH
    while e < last:
        hit[m] = e
        m += np.uint64(
            (x >= boxes[e + ONE])
            & (y >= boxes[e + _TWO])
            & (x <= boxes[e + _THREE])
            & (y <= boxes[e + _FOUR])
        )
        e += _WIDTH
    return np.int64(m)


@njit(lean=True, forceinline=True)
def _bit_of(ordinal: int) -> tuple[np.uint64, np.uint64]:
    """(word, bit) of a word's number in a mask."""
    return np.uint64(ordinal >> 6 & (MASK - 1)), np.uint64(ordinal & 63)


@njit(lean=True, forceinline=True)
def see(ix: Index, space: int, v: Visit, st: Search, i: int, first: int) -> Seen:
    """Load what `decide` needs of object `i` of the visit; the round begins with `first`."""
    o = v.objects
    row = o.order[i]
    start, stop = st.start[i - first], st.start[i - first + 1]
    st.mask[:] = ZERO
    for j in range(start, stop):
        word, bit = _bit_of(st.ordinal[j])
        st.mask[word] |= ONE << bit
    settled = np.int64(sl.settled(ix.slots, o.time[row]))
    x, y = o.x[row], o.y[row]
    # Its sine and cosine are of use for circles only.
    spot = spot_of(space, x, y) if ix.meta[ROUNDED] else Spot(x, y, 2.0, 0.0)
    return Seen(v.number[i], np.float32(x), np.float32(y), settled, start, stop, spot)


@njit(lean=True, forceinline=True)
def _has_bit(st: Search, ordinal: int) -> bool:
    """Whether the object in hand may have a word; most entries are decided by that."""
    word, bit = _bit_of(ordinal)
    return st.mask[word] >> bit & ONE != ZERO


@njit(lean=True, forceinline=True)
def _fits(st: Search, seen: Seen, one: int, two: int) -> bool:
    """Whether the words of an object are as an entry wants them (`index.regions.lists`)."""
    first, second = (NOT - one if one <= NOT else one), (NOT - two if two <= NOT else two)
    bit_one, bit_two = _has_bit(st, first), _has_bit(st, second)
    if ((one >= 0) & (not bit_one)) | ((two >= 0) & (not bit_two)):
        return False
    if not ((first >= 0) & bit_one) | ((second >= 0) & bit_two):
        return True
    has_one = has_two = False
    for j in range(seen.start, seen.stop):
        has_one |= st.ordinal[j] == first
        has_two |= st.ordinal[j] == second
    return (has_one == (one >= 0)) & ((has_two == (two >= 0)) | (two == NONE))


@njit(lean=True, forceinline=True)
def _is_new(seen: NDArray[np.uint64], stamp: np.uint64, slot: np.uint64) -> bool:
    """Whether the object of this stamp meets `slot` for the first time; it is noted.

    The table need not be emptied for the next object: what has another stamp counts as free.
    """
    key = stamp << np.uint64(32) | slot
    at = slot * _GOLDEN >> _SEEN_SHIFT
    while seen[at] >> np.uint64(32) == stamp:
        if seen[at] == key:
            return False
        at = (at + ONE) & np.uint64(SEEN - 1)
    seen[at] = key
    return True


@njit(lean=True, forceinline=True)
def decide(
    entries: Entries, st: Search, seen: Seen, hits: int, noted: int, found: Found, n: int
) -> tuple[int, int, int]:
    """Write the hits that match behind n matches; as ~slot those that need the exact check.

    (matches now; how many slots are noted in `seen`; what is unsure).
    """
    pool, boxes = entries.pool, entries.boxes
    order, out = found.order, found.slot
    top = np.uint64(n)
    unsure = 0
    for h in range(hits):
        e = st.hit[h]
        one, two = pool[e + _OTHER], pool[e + _OTHER + ONE]
        circle = is_round(two)
        two ^= circle << ROUND_SHIFT
        if not _fits(st, seen, one, two):
            continue
        slot = np.int64(pool[e])
        west, south, east, north = (
            boxes[e + ONE],
            boxes[e + _TWO],
            boxes[e + _THREE],
            boxes[e + _FOUR],
        )
        sure = (one != DECIDES) & (slot < seen.settled)
        if circle:
            side = side_of_circle(seen.spot, west, south, east, north)
            if side == OUTSIDE:
                continue
            sure &= side != UNSURE
        else:
            sure &= (seen.x > west) & (seen.y > south) & (seen.x < east) & (seen.y < north)
        order[top] = seen.number
        out[top] = slot if sure else ~slot
        if two == MANY:  # other lists may have it too
            if 2 * noted >= SEEN:
                unsure |= TWICE
            elif _is_new(st.seen, st.stamp[0], np.uint64(slot)):
                noted += 1
            else:
                continue
        if not sure:  # a subscription that only the exact check decides may be on several lists
            unsure |= EXACT | TWICE if one == DECIDES else EXACT
        top += ONE
    return np.int64(top), noted, unsure
