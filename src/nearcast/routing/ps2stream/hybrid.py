"""`ps2stream`: hybrid partitioning, by text or by space, region by region (section IV)."""

from __future__ import annotations

from typing import ClassVar

from nearcast.routing.grid.table import GridTable
from nearcast.routing.ps2stream.baseline import Ps2StreamRouter
from nearcast.routing.ps2stream.grid_t import grid_t
from nearcast.routing.ps2stream.partition_workload import Thresholds, partition_workload
from nearcast.routing.ps2stream.workload import Workload


class Ps2Stream(Ps2StreamRouter):
    """Algorithm 1, and the grid^t of its kd^t-tree.

    `delta`, `sigma`, `theta`: the paper's thresholds, whose values it does not give; `theta` 0
    stands for 16 nodes per worker. `epsilon`: what line 9 of Algorithm 1 calls about 0.
    """

    name = "ps2stream"
    about = "space cut by a kd-tree, regions divided by words where that costs less"
    parameters: ClassVar[dict[str, float]] = Ps2StreamRouter.parameters | {
        "delta": 0.5,
        "sigma": 1.2,
        "theta": 0.0,
        "epsilon": 0.05,
    }

    def partition(self, w: Workload, parameters: dict[str, float]) -> GridTable:
        """The grid^t."""
        made = partition_workload(w, self.shards, thresholds(parameters, self.shards))
        return grid_t(w, made.nodes, made.workers)


def thresholds(parameters: dict[str, float], m: int) -> Thresholds:
    """The thresholds among the parameters of a plan for `m` workers."""
    theta = int(parameters["theta"]) or 16 * m
    return Thresholds(parameters["delta"], parameters["sigma"], theta, parameters["epsilon"])
