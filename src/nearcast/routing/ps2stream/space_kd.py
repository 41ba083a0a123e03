"""`space-kd`: the space divided by a kd-tree, one leaf per worker."""

from __future__ import annotations

from nearcast.routing.grid.table import GridTable
from nearcast.routing.ps2stream.baseline import Ps2StreamRouter
from nearcast.routing.ps2stream.grid_t import grid_t
from nearcast.routing.ps2stream.nodes import root
from nearcast.routing.ps2stream.space_partition import space_partition
from nearcast.routing.ps2stream.workload import Workload


class SpaceKd(Ps2StreamRouter):
    """kd-tree partitioning (section VI-B)."""

    name = "space-kd"
    about = "space cut by a kd-tree into one region a worker, of about equal load"

    def partition(self, w: Workload, parameters: dict[str, float]) -> GridTable:
        """One leaf per worker."""
        del parameters  # those of the workload are in it
        leaves = space_partition(w, root(w), self.shards)
        return grid_t(w, leaves, list(range(len(leaves))))
