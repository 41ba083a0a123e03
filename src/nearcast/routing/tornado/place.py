"""Copies of subscriptions by neighbour-based routing: what `grid.table.place_rows` scans for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.grid.costs import ranges_of
from nearcast.routing.grid.survey import Numbers, RegionSurvey
from nearcast.routing.grid.table import GridTable, Pairs
from nearcast.routing.tornado.a_grid import AGrid, Found
from nearcast.routing.tornado.neighbour_search import neighbour_search


def place_by_search(
    table: GridTable, grid: AGrid, owners: NDArray[np.int32], survey: RegionSurvey
) -> Pairs:
    """(rows, shards): all copies of subscriptions, by row, then shard, each once.

    `grid` has the rectangles of `table`, which deals by place alone; `owners` are their shards.
    """
    found = neighbour_search(grid, ranges_of(table, survey.boxes))
    return _by_row(found, owners, survey.box_offsets)


@njit
def _by_row(found: Found, owners: NDArray[np.int32], box_offsets: Numbers) -> Pairs:
    """The shards of all boxes of a row, in order: few, so each is put where it belongs."""
    rows = np.empty(len(found.partitions), np.int64)
    shards = np.empty(len(found.partitions), np.int64)
    top = 0
    for row in range(len(box_offsets) - 1):
        first = top
        start, stop = found.offsets[box_offsets[row]], found.offsets[box_offsets[row + 1]]
        for i in range(start, stop):
            p = owners[found.partitions[i]]
            at = top
            while at > first and shards[at - 1] > p:
                at -= 1
            if at > first and shards[at - 1] == p:
                continue
            for j in range(top, at, -1):
                shards[j] = shards[j - 1]
            shards[at] = p
            rows[top] = row
            top += 1
    return rows[:top], shards[:top]
