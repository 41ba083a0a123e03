"""What the six baselines of PS2Stream share (section VI-B)."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.base import Sample
from nearcast.routing.grid.survey import Numbers, RegionSurvey
from nearcast.routing.grid.table import GridTable
from nearcast.routing.ps2stream import load, workload
from nearcast.routing.ps2stream.grid_t import Maps, table_of
from nearcast.routing.ps2stream.live import Adjusting
from nearcast.routing.ps2stream.nodes import Node, root
from nearcast.routing.ps2stream.workload import Workload, lay_out


class Ps2StreamRouter(Adjusting):
    """A router of the paper: a workload in, the table of its partitioning out."""

    paper = "PS2Stream (Chen et al.)"
    by_place = True
    parameters: ClassVar[dict[str, float]] = load.PARAMETERS | workload.PARAMETERS

    def prepare(
        self, sample: Sample, survey: RegionSurvey, parameters: dict[str, float]
    ) -> GridTable:
        """The table for a workload."""
        return self.partition(lay_out(sample, survey, parameters, self.bounds), parameters)

    @abstractmethod
    def partition(self, w: Workload, parameters: dict[str, float]) -> GridTable:
        """The table for a workload that is laid out."""


class TextRouter(Ps2StreamRouter):
    """A baseline that divides the lexicon; space plays no part."""

    by_place = False

    @abstractmethod
    def deal(self, w: Workload, node: Node) -> Numbers:
        """The worker of each term of the vocabulary; -1: by hash."""

    def partition(self, w: Workload, parameters: dict[str, float]) -> GridTable:
        """One cell, one map."""
        del parameters  # those of the workload are in it
        part = self.deal(w, root(w))
        dealt = part >= 0
        maps = Maps()
        cell = maps.add(w.vocabulary[dealt], part[dealt], list(range(self.shards)))
        return table_of(w, np.array([[cell]], np.int32), maps)


def runs(loads: NDArray[np.float64], m: int) -> Numbers:
    """Neighbours to the same worker: a line of loads cut into `m` runs of about equal sums.

    A place belongs to the run in which the middle of its load lies; without any load, by number.
    """
    if loads.sum() == 0.0:
        loads = np.ones(len(loads))
    middle = np.cumsum(loads) - 0.5 * loads
    runs: Numbers = np.minimum((middle * (m / loads.sum())).astype(np.int64), m - 1)
    return runs
