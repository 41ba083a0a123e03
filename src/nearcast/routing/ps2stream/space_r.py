"""`space-r`: the space divided by the leaves of an R-tree, and the leaves among workers."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, sqrt
from typing import ClassVar

import numpy as np

from nearcast.routing.grid.survey import Numbers
from nearcast.routing.grid.table import GridTable
from nearcast.routing.ps2stream.baseline import Ps2StreamRouter, runs
from nearcast.routing.ps2stream.grid_t import grid_t
from nearcast.routing.ps2stream.nodes import space_node
from nearcast.routing.ps2stream.workload import Region, Workload


class SpaceR(Ps2StreamRouter):
    """R-tree partitioning (section VI-B): the leaves that STR packing makes, as SpatialHadoop.

    `leaves`: how many per worker.
    """

    name = "space-r"
    about = "space cut into the leaves of an R-tree, neighbouring leaves to one worker"
    parameters: ClassVar[dict[str, float]] = Ps2StreamRouter.parameters | {"leaves": 8.0}

    def partition(self, w: Workload, parameters: dict[str, float]) -> GridTable:
        """Runs of leaves."""
        wanted = max(ceil(parameters["leaves"] * self.shards), 1)
        leaves = [space_node(w, region) for region in str_leaves(w, wanted)]
        workers = runs(np.array([leaf.load for leaf in leaves]), self.shards)
        return grid_t(w, leaves, workers.tolist())


def str_leaves(w: Workload, wanted: int) -> list[Region]:
    """About `wanted` leaves of an R-tree packed by Sort-Tile-Recursive, as tiles of the space.

    Objects are sorted by x and cut into √wanted slabs, each of them by y into as many tiles, all
    with about as many objects. Tiles meet, where leaves would leave gaps: every place has one.
    Every other slab runs backwards, so that tiles next to each other in the list are neighbours.
    """
    slabs = max(round(sqrt(wanted)), 1)
    tiles = ceil(wanted / slabs)
    found: list[Region] = []
    edges = _edges(w.column, slabs, w.side)
    for i, (left, right) in enumerate(pairwise(edges)):
        mine = (w.column >= left) & (w.column < right)
        lines = _edges(w.line[mine], tiles, w.side)
        slab = [(left, low, right, high) for low, high in pairwise(lines)]
        found += slab[::-1] if i % 2 else slab
    return found


def _edges(lines: Numbers, parts: int, side: int) -> list[int]:
    """Where to cut so that each part has about as many of `lines`."""
    if len(lines) == 0:
        return [0, side]
    ordered = np.sort(lines)
    inner = {int(ordered[len(ordered) * i // parts]) for i in range(1, parts)}
    return sorted(inner | {0, side})
