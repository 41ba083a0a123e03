"""The best way to cut each rectangle of a shard in two and hand one part to another shard."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.tornado.a_grid import Partitions

Sums = NDArray[np.int64]  # [side + 1, side + 1], as `grid.cells.summed` has them
_WAYS = 4  # the first columns, the last columns, the first rows, the last rows


class Cuts(NamedTuple):
    """Parts that could be handed over: of each rectangle the best one from each side."""

    boxes: Partitions  # [n, 4]
    worth: NDArray[np.float64]  # [n]: horizon times C_r, less C_t


@njit(lean=True)
def within(sums: Sums, x1: int, y1: int, x2: int, y2: int) -> int:
    """The sum of the cells of a rectangle, all ends included."""
    upper = sums[y2 + 1, x2 + 1] - sums[y2 + 1, x1]
    return np.int64(upper - sums[y1, x2 + 1] + sums[y1, x1])


@njit
def best_cuts(
    boxes: Partitions, costs: Sums, moves: Sums, hot: int, cold: int, horizon: float, beta: float
) -> Cuts:
    """Of rectangles of a shard with cost `hot`, for one with cost `cold`.

    `moves`: queries by cell as they count for C_t: those that go back where they were count less
    than none. The whole rectangle is a part too.
    """
    out = np.empty((_WAYS * len(boxes), 4), np.int32)
    worth = np.empty(_WAYS * len(boxes))
    for i in range(len(worth)):
        box, way = boxes[i // _WAYS], i % _WAYS
        axis = way // 2
        x1, y1, x2, y2 = box[0], box[1], box[2], box[3]
        length = box[axis + 2] - box[axis] + 1
        best = -np.inf
        for count in range(1, length + 1):
            if way == 0:
                x2 = box[0] + count - 1
            elif way == 1:
                x1 = box[2] - count + 1
            elif way == 2:
                y2 = box[1] + count - 1
            else:
                y1 = box[3] - count + 1
            part = within(costs, x1, y1, x2, y2)
            gain = hot - max(hot - part, cold + part)
            value = horizon * gain - beta * within(moves, x1, y1, x2, y2)
            if value > best:
                best = value
                out[i, 0], out[i, 1], out[i, 2], out[i, 3] = x1, y1, x2, y2
        worth[i] = best
    return Cuts(out, worth)
