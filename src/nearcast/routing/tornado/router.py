"""`tornado`: partitions of equal cost, subscriptions placed by the search of the A-Grid."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.base import Sample
from nearcast.routing.grid.survey import RegionSurvey, bounds_of
from nearcast.routing.grid.table import GridTable, Pairs
from nearcast.routing.tornado.a_grid import AGrid
from nearcast.routing.tornado.live import ShiftAndSplit
from nearcast.routing.tornado.pieces import grid_of
from nearcast.routing.tornado.place import place_by_search
from nearcast.routing.tornado.table import tornado_table


class Tornado(ShiftAndSplit):
    """One rectangle of cells per evaluator; balance may give it more.

    `side`: cells of the fine grid along each axis; `each`: what an object costs besides the
    queries that it is checked against.
    """

    name = "tornado"
    paper = "Tornado (Mahmood et al.)"
    about = "space cut into one rectangle a shard, by equal cost"
    by_place = True
    parameters: ClassVar[dict[str, float]] = {"side": 256.0, "each": 1.0}

    def prepare(
        self, sample: Sample, survey: RegionSurvey, parameters: dict[str, float]
    ) -> GridTable:
        """Section 4.1."""
        bounds = bounds_of(sample, survey, self.bounds)
        side, each = int(parameters["side"]), int(parameters["each"])
        return tornado_table(sample, survey, bounds, side, self.shards, each)

    @cached_property
    def a_grid(self) -> tuple[AGrid, NDArray[np.int32]]:
        """The rectangles of the table, and the shard of each."""
        if self.grid is None:
            raise ValueError("there are no partitions before a plan")
        return grid_of(self.grid.cells)

    def copies(self, survey: RegionSurvey) -> Pairs:
        """By hash before a plan, then at every partition that the search finds."""
        if self.grid is None:
            return super().copies(survey)
        return place_by_search(self.grid, *self.a_grid, survey)
