"""`tornado-uniform`: Uni-Space-Rout, a baseline of Tornado (section 5.1)."""

from __future__ import annotations

from typing import ClassVar

from nearcast.routing.base import Sample
from nearcast.routing.grid.survey import RegionSurvey, bounds_of
from nearcast.routing.grid.table import GridTable
from nearcast.routing.tornado.router import Tornado
from nearcast.routing.tornado.table import uniform_table


class TornadoUniform(Tornado):
    """One equal part of the space per evaluator, whatever lies there."""

    name = "tornado-uniform"
    about = "space cut into equal parts, one per shard"
    parameters: ClassVar[dict[str, float]] = {"side": 256.0}

    def prepare(
        self, sample: Sample, survey: RegionSurvey, parameters: dict[str, float]
    ) -> GridTable:
        """The sample is only used to find where the space ends."""
        bounds = bounds_of(sample, survey, self.bounds)
        return uniform_table(sample, bounds, int(parameters["side"]), self.shards)
