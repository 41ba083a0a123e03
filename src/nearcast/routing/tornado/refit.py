"""New bounds for a table: what lies outside of them is in border cells, and cannot be divided.

Owners stay where they are as nearly as cells allow. Balance goes on with the new cells once shards
have reported what these cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.routing.arrays import Arrays
from nearcast.routing.base import Sample
from nearcast.routing.grid.costs import object_cells
from nearcast.routing.grid.table import GridTable, sealed

Bounds = NDArray[np.float64]  # minx, miny, maxx, maxy
_SHARE = 0.1  # of objects that must lie outside
_STRAY = 0.01  # of them, on each side, that bounds need not follow
_LARGEST = 1024  # cells along each axis


def outside(table: GridTable, objects: Sample) -> Arrays:
    """At a shard: how many of its objects lie outside of the bounds, and where most of them are."""
    x, y = objects.x, objects.y
    minx, miny, maxx, maxy = table.bounds
    out = (x < minx) | (x > maxx) | (y < miny) | (y > maxy)
    count = int(out.sum())
    box = np.empty(0)
    if count:
        ends = [np.quantile(v[out], (_STRAY, 1 - _STRAY)) for v in (x, y)]
        box = np.array([ends[0][0], ends[1][0], ends[0][1], ends[1][1]])
    return {"outside": np.array([count, len(x)]), "outside_box": box}


def wanted_bounds(table: GridTable, reported: Sequence[Arrays]) -> Bounds | None:
    """Bounds that hold what lies outside too; None: it is not much."""
    count, total = np.sum([t["outside"] for t in reported], axis=0).tolist()
    if count <= _SHARE * total:
        return None
    boxes = np.array([t["outside_box"] for t in reported if len(t["outside_box"])])
    low = np.minimum(table.bounds[:2], boxes[:, :2].min(axis=0))
    high = np.maximum(table.bounds[2:], boxes[:, 2:].max(axis=0))
    return np.concatenate([low, high])


def refitted(table: GridTable, bounds: Bounds) -> GridTable:
    """The table over other bounds: a cell belongs to the owner of its middle.

    There are more cells if the bounds are wider, so that they stay about as small as they were.
    """
    new, old = bounds[2:] - bounds[:2], table.bounds[2:] - table.bounds[:2]
    growth = np.max(np.divide(new, old, out=np.ones(2), where=old > 0))
    side = len(table.cells)
    while side * 2 <= _LARGEST and side < growth * len(table.cells):
        side *= 2
    middles = (np.arange(side) + 0.5) / side
    x = bounds[0] + middles * (bounds[2] - bounds[0])
    y = bounds[1] + middles * (bounds[3] - bounds[1])
    columns, rows = object_cells(table, frozen(x), frozen(y))
    return sealed(table._replace(bounds=bounds, cells=table.cells[np.ix_(rows, columns)]))
