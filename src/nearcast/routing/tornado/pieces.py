"""The rectangles of shards: one each in the paper, several where load was cut off and handed over.

A table keeps the shard of each cell and nothing else, so rectangles are read off it, always the
same way: row by row, each as wide as it can be and then as high.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.tornado.a_grid import AGrid, Cells, Partitions, a_grid_of, with_room


class Pieces(NamedTuple):
    """Rectangles that tile a grid, and whose each is."""

    boxes: Partitions  # [n, 4]
    owners: NDArray[np.int32]  # [n]


def pieces_of(cells: Cells) -> Pieces:
    """The rectangles of all shards, by their first cell."""
    return _pieces(frozen(np.asarray(cells, np.int32)))


def grid_of(cells: Cells) -> tuple[AGrid, NDArray[np.int32]]:
    """An A-Grid whose partitions are these rectangles, and the shard of each."""
    found = pieces_of(cells)
    return a_grid_of(found.boxes, len(cells)), frozen(found.owners)


@njit
def _pieces(cells: Cells) -> Pieces:
    side = len(cells)
    taken = np.zeros((side, side), np.bool_)
    out = np.empty(5 * 16, np.int32)
    top = 0
    for y in range(side):
        for x in range(side):
            if taken[y, x]:
                continue
            right, high = _extent(cells, taken, x, y)
            taken[y : high + 1, x : right + 1] = True
            out = with_room(out, top, 5)
            out[top], out[top + 1], out[top + 2], out[top + 3] = x, y, right, high
            out[top + 4] = cells[y, x]
            top += 5
    rows = out[:top].reshape(-1, 5)
    return Pieces(rows[:, :4].copy(), rows[:, 4].copy())


@njit(lean=True)
def _extent(cells: Cells, taken: NDArray[np.bool_], x: int, y: int) -> tuple[int, int]:
    """The last column and row of the rectangle that begins in a cell."""
    side = len(cells)
    owner = cells[y, x]
    right = x
    while right + 1 < side and cells[y, right + 1] == owner and not taken[y, right + 1]:
        right += 1
    high = y
    while high + 1 < side:
        for u in range(x, right + 1):
            if cells[high + 1, u] != owner or taken[high + 1, u]:
                return right, high
        high += 1
    return right, high
