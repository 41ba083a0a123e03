"""Posting subscriptions in FAST's structure, task by task.

One entry may make many others move: lists dissolve, paths get longer, levels get deeper. So the
work is a stack of tasks, each small enough that the room it needs is known before it begins. Where
an array is too short, the stack waits until it has grown.
"""

from __future__ import annotations

import numpy as np

from nearcast.index.fast import nodes as nd
from nearcast.index.fast.cell import (
    BELOW,
    COLUMN,
    CURSOR,
    DEPTH,
    INSIDE,
    KIND,
    LIST,
    ROW,
    SLOT,
    UNDER,
    Tasks,
    post_in_cell,
    push,
)
from nearcast.index.fast.nodes import PATH, Fast
from nearcast.index.posting import (
    POSTED,
    UNIVERSAL,
    Index,
    boxes_of,
    fits,
    outward,
    posting_words,
    use_words,
)
from nearcast.index.regions.lazy_deletion import Lazy
from nearcast.kernels import blocks
from nearcast.kernels import shared_lists as ls
from nearcast.kernels import slots as sl
from nearcast.kernels.bits import is_set
from nearcast.kernels.squares import LARGEST, SMALLEST, exponent_of
from nearcast.model.jit import njit

# what `post` may be short of
DONE, SHORT_NODES, SHORT_HEADS, SHORT_POOL, SHORT_TASKS, SHORT_WORDS = 0, 1, 2, 3, 4, 5
MARGIN = 128  # tasks, and entries of the pool, that one task may need
_EVERYTHING = 1e15  # positions beyond do not choose the side of cells


@njit
def side_for(ix: Index) -> int:
    """The exponent of a side that spans the middles of all regions."""
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    r = ix.slots.reals
    for slot in range(ix.slots.meta[sl.COUNT]):
        first, boxes = boxes_of(ix, slot)
        for b in range(first, first + 4 * boxes, 4):
            for axis in range(2):
                middle = r[b + axis] / 2 + r[b + axis + 2] / 2
                if abs(middle) < _EVERYTHING:
                    low[axis] = min(low[axis], middle)
                    high[axis] = max(high[axis], middle)
    if low[0] > high[0] or low[1] > high[1]:
        return 0
    exponent = exponent_of(high[0] - low[0], high[1] - low[1])
    return min(max(exponent, SMALLEST + nd.DEPTHS), LARGEST)


@njit(lean=True)
def _cells_below(f: Fast, t: Tasks, n: int) -> tuple[int, int, int, int]:
    """(first column, first row, columns, rows) of the cells that task `n` is about."""
    depth, column, row = t.rows[n, DEPTH], t.rows[n, COLUMN], t.rows[n, ROW]
    left, right = nd.place_of(f, depth, t.boxes[n, 0]), nd.place_of(f, depth, t.boxes[n, 2])
    low, high = nd.place_of(f, depth, t.boxes[n, 1]), nd.place_of(f, depth, t.boxes[n, 3])
    if depth > 1:
        left, right = max(left, 2 * column), min(right, 2 * column + 1)
        low, high = max(low, 2 * row), min(high, 2 * row + 1)
    return left, low, max(right - left + 1, 0), max(high - low + 1, 0)


@njit(lean=True)
def _do(ix: Index, f: Fast, t: Tasks) -> bool:
    """Do the task on top, or one cell of it; False if the pool is too short."""
    n = t.top[0] - 1
    slot, under = t.rows[n, SLOT], np.uint64(t.rows[n, UNDER])
    depth, column, row = t.rows[n, DEPTH], t.rows[n, COLUMN], t.rows[n, ROW]
    for c in range(4):
        t.box[c] = t.boxes[n, c]
    if t.rows[n, KIND] == INSIDE:
        t.top[0] = n
        if post_in_cell(ix, f, t, slot, under, depth, column, row, 0) < 0:
            t.top[0] = n + 1
            return False
        return True
    left, low, wide, high = _cells_below(f, t, n)
    at = t.rows[n, CURSOR]
    if at >= wide * high:
        t.top[0] = n
        return True
    shared = post_in_cell(
        ix, f, t, slot, under, depth, left + at // high, low + at % high, t.rows[n, LIST]
    )
    if shared < 0:
        return False
    t.rows[n, LIST] = shared
    t.rows[n, CURSOR] = at + 1
    return True


@njit(lean=True)
def _shortage(f: Fast, t: Tasks) -> int:
    """What must grow before the next task."""
    if (f.meta[nd.NODES] + PATH + 2) * 10 > len(f.nodes) * 8:
        return SHORT_NODES
    if f.lists.meta[ls.HEADS] + 2 > len(f.lists.heads):
        return SHORT_HEADS
    if f.lists.meta[blocks.TOP] + MARGIN > len(f.lists.pool):
        return SHORT_POOL
    return SHORT_TASKS if t.top[0] + MARGIN > len(t.rows) else DONE


@njit
def post(ix: Index, f: Fast, lazy: Lazy, t: Tasks) -> int:
    """Post every subscription not posted yet; what is short, if anything: call again then."""
    while True:
        while t.top[0] > 0:
            short = _shortage(f, t)
            if short != DONE:
                return short
            if not _do(ix, f, t):
                return SHORT_POOL
        slot = ix.meta[POSTED]
        if slot == ix.slots.meta[sl.COUNT]:
            return DONE
        if not fits(ix, slot, 0):
            return SHORT_WORDS
        first_box, boxes = boxes_of(ix, slot)
        if max(ix.slots.half[slot, sl.COVER], 1) * boxes > len(t.rows):
            return SHORT_TASKS
        if not is_set(lazy.left, slot) and ix.slots.half[slot, sl.FLAGS] & sl.LIVE:
            _begin(ix, t, slot, first_box, boxes)
        ix.meta[POSTED] = slot + 1


@njit(lean=True)
def _begin(ix: Index, t: Tasks, slot: int, first_box: int, boxes: int) -> None:
    """Put what posting `slot` takes on the stack."""
    r = ix.slots.reals
    use_words(ix, slot)
    first, words = posting_words(ix, slot)
    conjunction = nd.is_conjunction(ix, slot)
    for i in range(first, first + words):
        under = ix.slots.heap[i] if i >= 0 else UNIVERSAL
        for b in range(first_box, first_box + 4 * boxes, 4):
            outward(t.box, r[b], r[b + 1], r[b + 2], r[b + 3])
            push(t, BELOW, slot, np.uint64(0) if conjunction else under, 0, 0, 0, t.box)
