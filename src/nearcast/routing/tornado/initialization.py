"""Section 4.1 of Tornado: the first partitions, by splits of the costliest as in a k-d tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.grid.cells import summed
from nearcast.routing.grid.costs import Costs
from nearcast.routing.tornado.a_grid import Partitions
from nearcast.routing.tornado.split import NONE, ROWS, best_split


def initial_partitions(costs: Costs, evaluators: int) -> Partitions:
    """Partitions for evaluators, so that the largest cost is small; `costs` of every cell.

    The costliest that is more than a cell is split where the costlier part is cheapest. With fewer
    cells than evaluators the last partitions have none.
    """
    if evaluators < 1 or costs.size == 0:
        raise ValueError("there must be an evaluator and a cell")
    return _split_all(frozen(summed(costs)), evaluators)


@njit
def _split_all(sums: Costs, evaluators: int) -> Partitions:
    side = len(sums) - 1
    out = np.zeros((evaluators, 4), np.int32)
    out[:, 2:] = -1
    out[0, 2:] = side - 1
    costs = np.zeros(evaluators, np.int64)
    costs[0] = sums[side, side]
    scratch = np.empty((2, side), np.int64)
    for new in range(1, evaluators):
        p = _costliest(out[:new], costs)
        if p < 0:
            break
        _split_one(sums, out, costs, p, new, scratch)
    return out


@njit(lean=True)
def _costliest(partitions: Partitions, costs: NDArray[np.int64]) -> int:
    """The head of the paper's queue: of equal costs the one with more cells, then the first."""
    best, most = -1, 0
    for p in range(len(partitions)):
        width = np.int64(partitions[p, 2] - partitions[p, 0] + 1)
        cells = width * (partitions[p, 3] - partitions[p, 1] + 1)
        if cells == 1:
            continue
        if best < 0 or costs[p] > costs[best] or (costs[p] == costs[best] and cells > most):
            best, most = p, cells
    return best


@njit(lean=True)
def _split_one(
    sums: Costs,
    partitions: Partitions,
    costs: NDArray[np.int64],
    p: int,
    new: int,
    scratch: NDArray[np.int64],
) -> None:
    """Cut partition p; the part behind the cut is `new`."""
    x1, y1 = partitions[p, 0], partitions[p, 1]
    x2, y2 = partitions[p, 2] + 1, partitions[p, 3] + 1
    for x in range(x1, x2):
        scratch[0, x - x1] = sums[y2, x + 1] - sums[y1, x + 1] - sums[y2, x] + sums[y1, x]
    for y in range(y1, y2):
        scratch[1, y - y1] = sums[y + 1, x2] - sums[y, x2] - sums[y + 1, x1] + sums[y, x1]
    axis, at, _ = best_split(scratch[0, : x2 - x1], scratch[1, : y2 - y1], costs[p])
    if axis == NONE:
        return
    part = np.int64(0)
    for i in range(at):
        part += scratch[axis, i]
    for side in range(4):
        partitions[new, side] = partitions[p, side]
    low = 1 if axis == ROWS else 0
    partitions[new, low] += at
    partitions[p, low + 2] = partitions[new, low] - 1
    costs[new] = costs[p] - part
    costs[p] = part
