"""Tornado's partitions and its baselines as the common routing table (`routing.grid.table`)."""

from __future__ import annotations

import numpy as np

from nearcast.routing.base import Sample
from nearcast.routing.grid.costs import sample_costs
from nearcast.routing.grid.survey import Reals, RegionSurvey
from nearcast.routing.grid.table import GridTable, sealed
from nearcast.routing.tornado.a_grid import Cells, Partitions, cells_of
from nearcast.routing.tornado.decision import Decision, cells_after
from nearcast.routing.tornado.initialization import initial_partitions
from nearcast.routing.tornado.uniform import uniform_partitions


def tornado_table(
    sample: Sample, survey: RegionSurvey, bounds: Reals, side: int, shards: int, each: int = 1
) -> GridTable:
    """Section 4.1 from a sample of objects and queries; an object costs `each` besides q_l."""
    table = space_table(sample, bounds, np.zeros((side, side), np.int32))
    partitions = initial_partitions(sample_costs(table, sample, survey, each), shards)
    return with_partitions(table, partitions)


def uniform_table(sample: Sample, bounds: Reals, side: int, shards: int) -> GridTable:
    """Uni-Space-Rout (section 5.1): equal parts of the space."""
    return space_table(sample, bounds, cells_of(uniform_partitions(side, shards), side))


def text_table(sample: Sample, bounds: Reals, shards: int) -> GridTable:
    """Text-Rout (section 5.1): words are dealt to evaluators by their hash, wherever they are."""
    everywhere = np.full((1, 1), -1, np.int32)
    table = space_table(sample, bounds, everywhere)
    return sealed(
        table._replace(
            map_offsets=np.zeros(2, np.int64),
            worker_offsets=np.array([0, shards], np.int64),
            workers=np.arange(shards, dtype=np.int32),
        )
    )


def space_table(sample: Sample, bounds: Reals, cells: Cells) -> GridTable:
    """A table by place alone, with the words of the sample."""
    words, counts = np.unique(sample.words, return_counts=True)
    return sealed(
        GridTable(
            bounds=np.asarray(bounds),
            cells=cells,
            map_offsets=np.zeros(1, np.int64),
            map_words=np.empty(0, np.uint64),
            map_shards=np.empty(0, np.int32),
            worker_offsets=np.zeros(1, np.int64),
            workers=np.empty(0, np.int32),
            words=words,
            counts=counts,
        )
    )


def with_partitions(table: GridTable, partitions: Partitions) -> GridTable:
    """The table with these partitions, all else as it is."""
    return sealed(table._replace(cells=cells_of(partitions, len(table.cells))))


def after(table: GridTable, decision: Decision) -> GridTable:
    """The next version of a table: as it is when the moves of a decision are made."""
    return sealed(table._replace(cells=cells_after(table.cells, decision)))
