"""Covering cells: the space in parts that are smaller near the subscription, for each of them.

Cells are those of a quadtree with all nodes down to `DEPTH`. A subscription begins with the whole
space; the cell that it is in is split, `DEPTH` times: that makes 3·DEPTH + 1 cells, seven as in
Skype's figure 2. They are disjoint and cover everything: cells at the border reach on without end.
So a message is in exactly one covering cell of each subscription.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.igpt.bounds import lambda_t, ssim_ub
from nearcast.index.tops.igpt.places import distance_to, longitude, set_box
from nearcast.model.jit import njit
from nearcast.model.space import GEOGRAPHIC_CODE

DEPTH = 2
SIDE = 1 << DEPTH
COVER = 3 * DEPTH + 1
CELLS = SIDE * SIDE * (DEPTH + 1)  # numbers of cells are below this; most of them are not used

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


@njit(lean=True, forceinline=True)
def cell_number(level: int, column: int, row: int) -> int:
    """The number of a cell; level 0 is the whole space."""
    return (level * SIDE + row) * SIDE + column


@njit(lean=True, forceinline=True)
def _step(value: float, low: float, high: float) -> int:
    """The column (or row) of the finest cells for a coordinate; the border takes what is beyond."""
    if not value > low:
        return 0
    part = (value - low) / (high - low) * SIDE
    return np.int64(min(part, SIDE - 1.0))


@njit(lean=True, forceinline=True)
def finest(space: int, x: float, y: float, root: Floats) -> tuple[int, int]:
    """(column, row) of the finest cell in which a place is."""
    x = longitude(space, x)
    return _step(x, root[0], root[2]), _step(y, root[1], root[3])


@njit(lean=True)
def cover(column: int, row: int, out: Longs) -> None:
    """The covering cells of a subscription in this finest cell: COVER of them."""
    n = 0
    for level in range(1, DEPTH + 1):
        own_column, own_row = column >> (DEPTH - level), row >> (DEPTH - level)
        for quarter in range(4):
            c, r = (own_column & ~1) | (quarter & 1), (own_row & ~1) | (quarter >> 1)
            if level == DEPTH or c != own_column or r != own_row:
                out[n] = cell_number(level, c, r)
                n += 1


@njit
def boxes(space: int, root: Floats) -> Floats:
    """The box around each cell, by its number. What is far out in the plane belongs to a border.

    Rectangles are a little larger than the cells, for what a division may have rounded.
    """
    out = np.empty((CELLS, 6))
    rect = np.empty(4)
    for level in range(DEPTH + 1):
        n = 1 << level
        for row in range(n):
            for column in range(n):
                for axis in range(2):
                    low, high = root[axis], root[axis + 2]
                    at = column if axis == 0 else row
                    wide = (high - low) / n
                    more = wide * 1e-9 + (abs(low) + abs(high)) * 1e-15
                    rect[axis] = low + at * wide - more
                    rect[axis + 2] = low + (at + 1) * wide + more
                    if space != GEOGRAPHIC_CODE:
                        if at == 0:
                            rect[axis] = -np.inf
                        if at == n - 1:
                            rect[axis + 2] = np.inf
                if space == GEOGRAPHIC_CODE:
                    rect[1], rect[3] = max(rect[1], -90.0), min(rect[3], 90.0)
                    rect[0], rect[2] = max(rect[0], -180.0), min(rect[2], 180.0)
                set_box(space, rect, out[cell_number(level, column, row)])
    return out


@njit(lean=True, forceinline=True)
def min_t(
    space: int, x: float, y: float, maxdist: float, kscore: float, alpha: float, box: Floats
) -> float:
    """MinT: the least textual similarity with which a message in a cell may count. Skype 2.2.

    `kscore` and `alpha` are kScore* and alpha* of the subscription at (x, y).
    """
    return lambda_t(kscore, alpha, ssim_ub(distance_to(space, x, y, box), maxdist))
