"""Where to split a partition in two (Tornado 4.1 and 4.3): all rows and all columns are tried."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit

COLUMNS = 0  # a vertical split: columns before it, and columns after
ROWS = 1  # a horizontal split
NONE = -1  # a single cell


@njit(lean=True)
def best_split(
    columns: NDArray[np.int64], rows: NDArray[np.int64], total: int
) -> tuple[int, int, int]:
    """(axis, how many columns or rows are in the first part, |cost(X1) - cost(X2)|).

    `columns` and `rows`: cost aggregates of the partition, `total` the overall one. The sum of both
    costs is given, so the least difference is also the least maximum. Of equal splits: across the
    longer side, next to its middle, vertical, the lower.
    """
    c_at, c_difference, c_off = _best_cut(columns, total)
    r_at, r_difference, r_off = _best_cut(rows, total)
    if c_at == 0 and r_at == 0:
        return NONE, 0, 0
    by_rows = c_at == 0
    if c_at > 0 and r_at > 0:
        by_rows = r_difference < c_difference
        if r_difference == c_difference:
            longer = len(rows) - len(columns)
            by_rows = longer > 0 or (longer == 0 and r_off < c_off)
    if by_rows:
        return ROWS, r_at, r_difference
    return COLUMNS, c_at, c_difference


@njit(lean=True)
def _best_cut(values: NDArray[np.int64], total: int) -> tuple[int, int, int]:
    """(how many come before the best cut, the difference there, twice its way from the middle).

    0 before: there is none.
    """
    best, least, off = 0, np.int64(0), 0
    before = np.int64(0)
    for at in range(1, len(values)):
        before += values[at - 1]
        difference = abs(total - 2 * before)
        from_middle = abs(len(values) - 2 * at)
        if best == 0 or difference < least or (difference == least and from_middle < off):
            best, least, off = at, difference, from_middle
    return best, least, off
