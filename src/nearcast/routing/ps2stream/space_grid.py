"""`space-grid`: the space divided into cells of one size, and the cells among workers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.curve import z_code
from nearcast.routing.grid.table import GridTable
from nearcast.routing.ps2stream.baseline import Ps2StreamRouter, runs
from nearcast.routing.ps2stream.grid_t import Maps, table_of
from nearcast.routing.ps2stream.nodes import root
from nearcast.routing.ps2stream.workload import Workload


class SpaceGrid(Ps2StreamRouter):
    """Grid partitioning (section VI-B), with its 2⁶ × 2⁶ cells."""

    name = "space-grid"
    about = "space cut into 64 × 64 cells, neighbouring cells to one worker, by equal load"
    parameters: ClassVar[dict[str, float]] = Ps2StreamRouter.parameters | {"side": 64.0}

    def partition(self, w: Workload, parameters: dict[str, float]) -> GridTable:
        """Runs of cells along the Z-curve, which keeps neighbours together."""
        del parameters  # those of the workload are in it
        line, column = np.divmod(np.arange(w.side * w.side), w.side)
        order = np.argsort(z_code(column, line))
        workers = np.empty(w.side * w.side, np.int32)
        workers[order] = runs(cell_loads(w).ravel()[order], self.shards)
        return table_of(w, workers.reshape(w.side, w.side), Maps())


def cell_loads(w: Workload) -> NDArray[np.float64]:
    """Definition 1 for each cell on its own, as [row, column]."""
    sent = root(w).objects
    objects = np.bincount(w.line[sent] * w.side + w.column[sent], minlength=w.side**2)
    steps = np.zeros((w.side + 1, w.side + 1), np.int64)  # a box is four corners of its sum
    left, low, right, high = w.boxes.T
    for rows, columns, by in (
        (low, left, 1),
        (high + 1, left, -1),
        (low, right + 1, -1),
        (high + 1, right + 1, 1),
    ):
        np.add.at(steps, (rows, columns), by)
    queries = steps.cumsum(0).cumsum(1)[:-1, :-1]
    loads: NDArray[np.float64] = w.load(objects.reshape(w.side, w.side), queries)
    return loads
