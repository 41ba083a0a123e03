"""`tornado-text`: Text-Rout, a baseline of Tornado (section 5.1)."""

from __future__ import annotations

from nearcast.routing.base import Sample
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.survey import RegionSurvey, bounds_of
from nearcast.routing.grid.table import GridTable
from nearcast.routing.tornado.table import text_table


class TornadoText(GridRouter):
    """Every evaluator has a set of words, by their hash; space plays no part."""

    name = "tornado-text"
    paper = "Tornado (Mahmood et al.)"
    about = "words dealt by hash, objects to the shards of all their words"

    def prepare(
        self, sample: Sample, survey: RegionSurvey, parameters: dict[str, float]
    ) -> GridTable:
        """The sample is only used to find the rarest word of a conjunction."""
        del parameters  # it has none
        return text_table(sample, bounds_of(sample, survey), self.shards)
