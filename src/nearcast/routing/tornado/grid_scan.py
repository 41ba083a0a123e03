"""The uniform grid that Tornado compares the A-Grid with (figure 7): all cells of a range."""

from __future__ import annotations

import numpy as np

from nearcast.model.jit import njit
from nearcast.routing.tornado.a_grid import AGrid, Found, Ranges, with_room


@njit
def grid_scan(grid: AGrid, ranges: Ranges) -> Found:
    """The partitions that each range of cells overlaps; steps: cells read."""
    evaluators = len(grid.partitions)
    seen = np.full(evaluators, -1, np.int64)
    offsets = np.zeros(len(ranges) + 1, np.int64)
    steps = np.zeros(len(ranges), np.int64)
    out = np.empty(len(ranges) + evaluators, np.int32)
    top = 0
    for i in range(len(ranges)):
        out = with_room(out, top, evaluators)
        r = ranges[i]
        for y in range(r[1], r[3] + 1):
            for x in range(r[0], r[2] + 1):
                p = grid.cells[y, x]
                steps[i] += 1
                if seen[p] != i:
                    seen[p] = i
                    out[top] = p
                    top += 1
        offsets[i + 1] = top
    return Found(offsets, out[:top].copy(), steps)
