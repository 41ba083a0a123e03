"""The assignment of rows to columns that costs most, each to one: the Hungarian method, O(n³)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit

Numbers = NDArray[np.int64]
_FAR = 1 << 62


def assigned(worth: Numbers) -> Numbers:
    """The column of each row so that the worth of all pairs together is largest; square."""
    return _assigned(frozen(-np.asarray(worth, np.int64)))


@njit
def _assigned(cost: Numbers) -> Numbers:
    """Rows come one by one; each makes the cheapest path of changes that frees a column.

    Column 0 is no column but where a path begins, so all numbers below are one more.
    """
    n = len(cost)
    of_row, of_column = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)  # potentials
    row_at = np.zeros(n + 1, np.int64)  # of each column; 0: free
    came_from = np.zeros(n + 1, np.int64)
    for row in range(1, n + 1):
        row_at[0] = row
        column = _free_column(cost, of_row, of_column, row_at, came_from)
        while column != 0:
            row_at[column] = row_at[came_from[column]]
            column = came_from[column]
    out = np.empty(n, np.int64)
    for column in range(1, n + 1):
        out[row_at[column] - 1] = column - 1
    return out


@njit
def _free_column(
    cost: Numbers, of_row: Numbers, of_column: Numbers, row_at: Numbers, came_from: Numbers
) -> int:
    """The free column that is cheapest to reach from the row at column 0."""
    n = len(cost)
    least = np.empty(n + 1, np.int64)
    least[:] = _FAR
    done = np.zeros(n + 1, np.bool_)
    column = 0
    while row_at[column] != 0:
        done[column] = True
        row = row_at[column]
        step, following = _FAR, 0
        for c in range(1, n + 1):
            if done[c]:
                continue
            reduced = cost[row - 1, c - 1] - of_row[row] - of_column[c]
            if reduced < least[c]:
                least[c], came_from[c] = reduced, column
            if least[c] < step:
                step, following = least[c], c
        for c in range(n + 1):
            if done[c]:
                of_row[row_at[c]] += step
                of_column[c] -= step
            else:
                least[c] -= step
        column = following
    return column
