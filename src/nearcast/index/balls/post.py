"""Posting subscriptions by their balls, and following balls as they shrink.

The ball B(s) of a subscription (DkM-SKS section 3.2) holds every position nearer than its k-th
nearest object; with fewer than k objects, or with a window, it is the whole space. An object
outside cannot change the result, so the subscription need only be posted in the cells that the
ball touches. As long as a subscription lives its ball only shrinks: an entry that was right stays
right, and is corrected when it leads an object there in vain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.balls.groups import Groups, enclose, forget_boxes, join
from nearcast.index.posting import (
    CELLS,
    CHANGED,
    GRID,
    POSTED,
    UNIVERSAL,
    Index,
    fits,
    outward,
    post_in_cells,
    posting_words,
    use_words,
)
from nearcast.kernels import postings as pl
from nearcast.kernels import results as rs
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import ROOT, cell_at, level_of
from nearcast.kernels.results import Results
from nearcast.model.extent import circle_boxes
from nearcast.model.jit import njit
from nearcast.model.space import EARTH_RADIUS_M, GEOGRAPHIC_CODE

# layouts
EVERYWHERE = 0  # one list per word: balls do not matter (KOP)
PYRAMID = 1  # cells as large as the ball needs, the ball's box in each entry
FIXED = 2  # cells of one size, lists without boxes (the paper's grid and inverted file)
GROUPED = 3  # one list per word and subset, one rectangle per subset (SOP, index.groups)

_MANY = 256  # a ball that touches more cells of a fixed grid is on the list for everywhere
_WORTH = 1.4  # how much larger than its ball an entry's box must be to be corrected
_QUEUE = 1 << 14
_COARSE = 1.2e-4  # of a coordinate: 500 times its rounding to 32 bits, outwards
_ROUNDING = 1e-2  # what that rounding may change of u² + v²
_BENT = 0.07  # twice tan 60°, for a degree
_METRES = EARTH_RADIUS_M * np.pi / 180.0  # of a degree of latitude


class Scratch(NamedTuple):
    """Work space of the functions below."""

    boxes: NDArray[np.float64]  # [2, 4]
    box: NDArray[np.float32]  # [4]
    queue: NDArray[np.int32]  # slots whose balls have become small enough for a finer level


def make_scratch() -> Scratch:
    """Work space."""
    return Scratch(np.empty((2, 4)), np.empty(4, np.float32), np.empty(_QUEUE, np.int32))


@njit(lean=True)
def cells_of(layout: int) -> int:
    """In how many cells a subscription is posted under one word, at most."""
    return _MANY if layout == FIXED else CELLS


@njit(lean=True)
def _ball(r: Results, space: int, slot: int, boxes: NDArray[np.float64]) -> int:
    """Put the boxes of B(s) into `boxes`; how many there are, 0 if it is the whole space."""
    reach = r.reals[slot, rs.REACH]
    if not reach < np.inf:
        return 0
    return circle_boxes(space, r.reals[slot, rs.X], r.reals[slot, rs.Y], reach, boxes)


@njit(lean=True)
def _cells_touched(level: int, boxes: NDArray[np.float64], n: int) -> float:
    cells = 0.0
    for i in range(n):
        columns = np.float64(cell_at(level, boxes[i, 2])) - cell_at(level, boxes[i, 0]) + 1.0
        lines = np.float64(cell_at(level, boxes[i, 3])) - cell_at(level, boxes[i, 1]) + 1.0
        cells += columns * lines
    return cells


@njit(lean=True)
def _level(ix: Index, layout: int, boxes: NDArray[np.float64], n: int) -> int:
    """The level for a ball with these boxes."""
    if n == 0 or layout == EVERYWHERE:
        return ROOT
    level = 0
    for i in range(n):
        level = max(level, level_of(boxes[i, 2] - boxes[i, 0], boxes[i, 3] - boxes[i, 1]))
    if layout == PYRAMID or level == ROOT:
        return level
    if ix.meta[GRID] == 0:  # the first ball decides: a cell is 2 to 8 times as wide
        ix.meta[GRID] = 1 + level
    grid = ix.meta[GRID] - 1
    return grid if _cells_touched(grid, boxes, n) <= _MANY else ROOT


@njit(lean=True)
def choose_grid(ix: Index, r: Results, space: int, slot: int, s: Scratch) -> None:
    """Let the ball of `slot` decide how wide the cells of a fixed grid are."""
    _level(ix, FIXED, s.boxes, _ball(r, space, slot, s.boxes))


@njit(lean=True)
def _post_ball(
    ix: Index,
    r: Results,
    space: int,
    layout: int,
    slot: int,
    s: Scratch,
    g: Groups,
) -> bool:
    """Post `slot` where its ball is now; False if the lists must grow first."""
    if not fits(ix, slot, cells_of(layout)):
        return False
    n = _ball(r, space, slot, s.boxes)
    if layout == GROUPED:
        level = join(g, r.reals[slot, rs.X], r.reals[slot, rs.Y], s.boxes, n)
        n = 1
        s.boxes[0, :] = 0.0  # the one cell of this level
    else:
        level = _level(ix, layout, s.boxes, n)
    if level == ROOT:
        n = 1
        s.boxes[0, :2] = -np.inf
        s.boxes[0, 2:] = np.inf
    first, words = posting_words(ix, slot)
    for b in range(n):
        w, x, y, z = s.boxes[b, 0], s.boxes[b, 1], s.boxes[b, 2], s.boxes[b, 3]
        if layout == PYRAMID:
            outward(s.box, w, x, y, z)
        else:
            outward(s.box, -np.inf, -np.inf, np.inf, np.inf)
        for i in range(first, first + words):
            word = ix.slots.heap[i] if i >= 0 else UNIVERSAL
            if not post_in_cells(ix, word, slot, level, w, x, y, z, s.box):
                return False
    r.half[slot, rs.POSTED] = level
    return True


@njit(lean=True)
def post_balls(ix: Index, r: Results, space: int, layout: int, s: Scratch, g: Groups) -> bool:
    """Post every subscription not posted yet; False if the lists must grow first."""
    while ix.meta[POSTED] < ix.slots.meta[sl.COUNT]:
        if not _post_ball(ix, r, space, layout, ix.meta[POSTED], s, g):
            return False
        use_words(ix, ix.meta[POSTED])
        ix.meta[POSTED] += 1
    return True


@njit(lean=True)
def refine(
    ix: Index,
    r: Results,
    space: int,
    layout: int,
    s: Scratch,
    g: Groups,
    queued: NDArray[np.int64],
) -> bool:
    """Post the `queued[0]` subscriptions of the queue at finer levels; False as above.

    Only between rounds of look-ups: a look-up sees either the old entries or the new ones.
    """
    while queued[0] > 0:
        slot: int = np.int64(s.queue[queued[0] - 1])  # type: ignore[assignment]
        n = _ball(r, space, slot, s.boxes)
        if _level(ix, layout, s.boxes, n) != r.half[slot, rs.POSTED] and not _post_ball(
            ix, r, space, layout, slot, s, g
        ):
            return False
        queued[0] -= 1
    return True


@njit(lean=True)
def tighten(ix: Index, r: Results, space: int, s: Scratch, g: Groups) -> None:
    """Make the rectangles of all groups anew from the balls of their members as they are now."""
    forget_boxes(g)
    for slot in range(ix.meta[POSTED]):
        if ix.slots.half[slot, sl.FLAGS] & sl.LIVE:
            n = _ball(r, space, slot, s.boxes)
            enclose(g, r.half[slot, rs.POSTED], s.boxes, n)
    ix.meta[CHANGED] = 0


@njit(lean=True)
def in_a_corner(boxes: NDArray[np.float32], entry: int, space: int, x: float, y: float) -> bool:
    """Whether (x, y), inside the box of an entry, is surely outside the ball that the box encloses.

    In the plane the ball touches the four sides: (x, y) is outside if u² + v² > 1, u and v being
    its distances from the middle in half-widths and half-heights. On the sphere a cap of radius ρ
    at latitude φ stays within u² + v² <= 1 / (1 - ρ tan φ - ρ²), since the cosine of a latitude
    ρ away is at least cos φ (1 - ρ tan φ - ρ² / 2). Boxes are rounded to 32 bits, which must be
    little beside their size; one that ends at the antimeridian may be half of a ball's.
    """
    left, right = np.float64(boxes[entry, 1]), np.float64(boxes[entry, 3])
    low, high = np.float64(boxes[entry, 2]), np.float64(boxes[entry, 4])
    half_x, half_y = (right - left) / 2.0, (high - low) / 2.0
    largest_x, largest_y = max(abs(left), abs(right)), max(abs(low), abs(high))
    if not (half_x > _COARSE * largest_x and half_y > _COARSE * largest_y):
        return False
    limit = 1.0 + _ROUNDING
    if space == GEOGRAPHIC_CODE:
        if half_y > 1.0 or largest_y > 60.0 or largest_x >= 180.0:
            return False
        limit += half_y * _BENT
    u = (x - (left + right) / 2.0) / half_x
    v = (y - (low + high) / 2.0) / half_y
    return bool(u * u + v * v > limit)


@njit(lean=True, forceinline=True)
def _is_tight(ix: Index, r: Results, space: int, slot: int, entry: int) -> bool:
    """Whether the box of an entry is about as high as the ball: a cheap look before `_ball`."""
    height = np.float64(ix.lists.boxes[entry, 4]) - np.float64(ix.lists.boxes[entry, 2])
    reach = r.reals[slot, rs.REACH]
    if space == GEOGRAPHIC_CODE:
        reach /= _METRES
    return bool(height <= 2.0 * _WORTH * reach)


@njit(lean=True, forceinline=True)
def follow(
    ix: Index,
    r: Results,
    space: int,
    layout: int,
    slot: int,
    level: int,
    entry: int,
    x: float,
    y: float,
    s: Scratch,
    queued: NDArray[np.int64],
) -> None:
    """Correct the entry at `level` that led an object at (x, y) to `slot`.

    An entry of a level where it is no longer posted is buried: an earlier round made others.
    """
    if level != r.half[slot, rs.POSTED] or not ix.slots.half[slot, sl.FLAGS] & sl.LIVE:
        pl.bury(ix.lists, entry)
        return
    if layout == GROUPED:  # its entries hold as long as it lives; rectangles follow (`tighten`)
        return
    if layout == PYRAMID and _is_tight(ix, r, space, slot, entry):
        return
    n = _ball(r, space, slot, s.boxes)
    if n == 0:
        return
    if _level(ix, layout, s.boxes, n) != level:
        if queued[0] < len(s.queue):
            s.queue[queued[0]] = slot
            queued[0] += 1
    elif layout == PYRAMID:
        if n == 1:
            b = s.boxes
            outward(s.box, b[0, 0], b[0, 1], b[0, 2], b[0, 3])
            for c in range(4):
                ix.lists.boxes[entry, 1 + c] = s.box[c]
    elif not _touches(level, s.boxes, n, x, y):
        pl.bury(ix.lists, entry)


@njit(lean=True)
def _touches(level: int, boxes: NDArray[np.float64], n: int, x: float, y: float) -> bool:
    """Whether one of the boxes touches the cell of (x, y)."""
    column, line = cell_at(level, x), cell_at(level, y)
    for i in range(n):
        if cell_at(level, boxes[i, 0]) <= column <= cell_at(level, boxes[i, 2]) and cell_at(
            level, boxes[i, 1]
        ) <= line <= cell_at(level, boxes[i, 3]):
            return True
    return False
