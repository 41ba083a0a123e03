"""`tornado-uniform`: Uni-Space-Rout, a baseline of Tornado (section 5.1)."""

from __future__ import annotations

from typing import ClassVar

from nearcast.routing.base import Sample
from nearcast.routing.grid.survey import RangeSurvey, bounds_of
from nearcast.routing.grid.table import GridTable
from nearcast.routing.tornado.router import Tornado
from nearcast.routing.tornado.table import uniform_table


class TornadoUniform(Tornado):
    """An evaluator an equal part of the space, whatever lies there."""

    name = "tornado-uniform"
    about = "space cut into equal parts, one a shard"
    parameters: ClassVar[dict[str, float]] = {"side": 256.0}

    def prepare(
        self, sample: Sample, survey: RangeSurvey, parameters: dict[str, float]
    ) -> GridTable:
        """The sample only tells where the space ends."""
        bounds = bounds_of(sample, survey)
        return uniform_table(sample, bounds, int(parameters["side"]), self.shards)
