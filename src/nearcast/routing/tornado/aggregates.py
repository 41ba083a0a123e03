"""Row, column and overall aggregates at the evaluators (Tornado 4.3, figure 5).

Costs are summed by row and by column. A query lies in many cells, and sums over cells would count
it often: it is counted in the first and in the last row (and column) that it touches, which gives
the exact number of queries in any band of rows or columns. All updates take O(1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.tornado.a_grid import Ranges

Counts = NDArray[np.int64]
Rectangle = tuple[int, int, int, int]  # xcellmin, ycellmin, xcellmax, ycellmax


class Aggregates(NamedTuple):
    """What one evaluator keeps; rows and columns are numbered as in the whole grid."""

    columns: Counts  # [side]: costs
    rows: Counts  # [side]
    first_columns: Counts  # [side]: queries whose range within the partition begins there
    last_columns: Counts  # [side]: queries whose range within the partition ends there
    first_rows: Counts  # [side]
    last_rows: Counts  # [side]
    overall: Counts  # [2]: cost, queryCount


def new_aggregates(side: int) -> Aggregates:
    """Those of an evaluator that saw nothing."""
    sizes = (side,) * 6 + (2,)
    return Aggregates(*(np.zeros(size, np.int64) for size in sizes))


@njit(lean=True)
def add_queries(
    a: Aggregates, partition: NDArray[np.int32], ranges: Ranges, registered: bool
) -> None:
    """Queries that are registered, or expire; those outside of the partition do not count."""
    step = 1 if registered else -1
    for i in range(len(ranges)):
        x1, y1 = max(ranges[i, 0], partition[0]), max(ranges[i, 1], partition[1])
        x2, y2 = min(ranges[i, 2], partition[2]), min(ranges[i, 3], partition[3])
        if x1 > x2 or y1 > y2:
            continue
        a.first_columns[x1] += step
        a.last_columns[x2] += step
        a.first_rows[y1] += step
        a.last_rows[y2] += step
        a.overall[1] += step


def band_of(a: Aggregates, partition: Rectangle, band: Rectangle) -> tuple[int, int]:
    """(cost, queryCount) of a band of whole rows or whole columns of the partition."""
    if (band[0], band[2]) == (partition[0], partition[2]):
        costs, first, last, low, high = a.rows, a.first_rows, a.last_rows, band[1], band[3]
    elif (band[1], band[3]) == (partition[1], partition[3]):
        costs, first, last, low, high = a.columns, a.first_columns, a.last_columns, band[0], band[2]
    else:
        raise ValueError(f"{band} has neither whole rows nor whole columns of {partition}")
    before, after = int(last[:low].sum()), int(first[high + 1 :].sum())
    return int(costs[low : high + 1].sum()), int(a.overall[1]) - before - after
