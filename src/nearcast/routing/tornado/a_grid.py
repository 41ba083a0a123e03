"""The A-Grid of Tornado (section 3.1): a fine grid of cells with rectangular partitions on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit

Cells = NDArray[np.int32]  # [side, side], row = y, column = x: the partition of each cell
Partitions = NDArray[np.int32]  # [n, 4]: xcellmin, ycellmin, xcellmax, ycellmax, all inclusive
Ranges = NDArray[np.int32]  # [q, 4]: as partitions


class AGrid(NamedTuple):
    """Each cell keeps its partition; the Partitions Map keeps the borders of each partition.

    Partition p is the one of evaluator p. The top of the grid is its last row.
    """

    cells: Cells
    partitions: Partitions


def a_grid_of(partitions: Partitions, side: int) -> AGrid:
    """The grid with these partitions, which must tile it."""
    return AGrid(frozen(cells_of(partitions, side)), frozen(np.asarray(partitions, np.int32)))


def cells_of(partitions: Partitions, side: int) -> Cells:
    """The partition of each cell. A partition with xcellmax < xcellmin has none."""
    cells = np.full((side, side), -1, np.int32)
    made = np.ascontiguousarray(partitions, np.int32)
    covered = _paint(made, cells) if _within(made, side) else -1
    if covered != side * side or (side and cells.min() < 0):
        raise ValueError("partitions do not tile the grid: a cell has none, or more than one")
    return cells


def _within(partitions: Partitions, side: int) -> bool:
    used = partitions[partitions[:, 0] <= partitions[:, 2]]
    return bool(np.all(used >= 0) and np.all(used < side))


@njit
def _paint(partitions: Partitions, cells: Cells) -> int:
    """Write every partition into its cells; how many were written."""
    covered = 0
    for p in range(len(partitions)):
        for y in range(partitions[p, 1], partitions[p, 3] + 1):
            for x in range(partitions[p, 0], partitions[p, 2] + 1):
                cells[y, x] = p
                covered += 1
    return covered


def partitions_of(cells: Cells, evaluators: int) -> Partitions:
    """The inverse of `cells_of`; refuses cells of one evaluator that are no rectangle."""
    partitions = _borders(np.ascontiguousarray(cells, np.int32), evaluators)
    painted = np.full(cells.shape, -1, np.int32)
    if _paint(partitions, painted) != cells.size or not np.array_equal(painted, cells):
        raise ValueError("the cells of an evaluator are not a rectangle")
    return partitions


@njit
def _borders(cells: Cells, evaluators: int) -> Partitions:
    side = len(cells)
    out = np.empty((evaluators, 4), np.int32)
    out[:, :2] = side
    out[:, 2:] = -1
    for y in range(side):
        for x in range(side):
            p = cells[y, x]
            if p >= 0:
                out[p, 0] = min(out[p, 0], x)
                out[p, 1] = min(out[p, 1], y)
                out[p, 2] = max(out[p, 2], x)
                out[p, 3] = max(out[p, 3], y)
    for p in range(evaluators):
        if out[p, 2] < 0:
            out[p, :2] = 0
    return out


class Found(NamedTuple):
    """The partitions of each range, and how many steps it took to find them."""

    offsets: NDArray[np.int64]  # [q + 1]
    partitions: NDArray[np.int32]  # of range i: partitions[offsets[i]:offsets[i + 1]], in any order
    steps: NDArray[np.int64]  # [q]: cells read, or boxes compared in a tree


@njit
def with_room(array: NDArray[np.int32], top: int, more: int) -> NDArray[np.int32]:
    """The array, or a copy twice as large where `more` do not fit behind `top`."""
    if top + more <= len(array):
        return array
    larger = np.empty(2 * len(array) + more, np.int32)
    larger[:top] = array[:top]
    return larger
