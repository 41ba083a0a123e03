"""Algorithm 1 of Tornado, neighborSearch: from partition to partition over dominant cells.

A dominant cell is the top left cell of a partition inside the range. From it one shortcut leads
right, out of the partition in the row of that cell, and one down, in its column. Every partition
of the range is reached: one that begins right of the range's left border has a left neighbour in
the row of its dominant cell; the shortcut right of that neighbour, followed by shortcuts down,
runs along the neighbour's whole right border. One that does not is below another in the range's
first column, where shortcuts down lead from one to the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.tornado.a_grid import AGrid, Found, Ranges, with_room


@njit
def neighbour_search(grid: AGrid, ranges: Ranges) -> Found:
    """The partitions that each range of cells overlaps; steps: cells read.

    At most 2 · (partitions found) - 1 cells are read, whatever the side of the grid.
    """
    evaluators = len(grid.partitions)
    seen = np.full(evaluators, -1, np.int64)  # the paper's Booleans; a range's number: no clearing
    stack = np.empty(2 * evaluators + 1, np.int32)
    offsets = np.zeros(len(ranges) + 1, np.int64)
    steps = np.zeros(len(ranges), np.int64)
    out = np.empty(len(ranges) + evaluators, np.int32)
    top = 0
    for i in range(len(ranges)):
        out = with_room(out, top, evaluators)
        top, steps[i] = _search(grid, ranges[i], i, seen, stack, out, top)
        offsets[i + 1] = top
    return Found(offsets, out[:top].copy(), steps)


@njit(lean=True)
def _search(
    grid: AGrid,
    r: NDArray[np.int32],
    mark: int,
    seen: NDArray[np.int64],
    stack: NDArray[np.int32],
    out: NDArray[np.int32],
    top: int,
) -> tuple[int, int]:
    """Lines 1 to 13; the stack holds the partitions whose dominant cells are to be visited."""
    stack[0] = grid.cells[r[3], r[0]]
    size, read = 1, 1
    while size > 0:
        size -= 1
        p = stack[size]
        if seen[p] == mark:
            continue
        seen[p] = mark
        out[top] = p
        top += 1
        borders = grid.partitions[p]
        x, y = max(borders[0], r[0]), min(borders[3], r[3])  # getDom
        below, right = borders[1] - 1, borders[2] + 1
        if below >= r[1]:
            stack[size] = grid.cells[below, x]
            size += 1
            read += 1
        if right <= r[2]:
            stack[size] = grid.cells[y, right]
            size += 1
            read += 1
    return top, read
