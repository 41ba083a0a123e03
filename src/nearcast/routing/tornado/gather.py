"""What an evaluator knows of its cells after a batch: aggregates (4.3), and costs by cell.

The aggregates are what the operations of the paper are chosen by. The costs of single cells are
read only where new partitions are made for all (`repartition`).
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.ragged import frozen
from nearcast.routing.balance import Period
from nearcast.routing.base import Sample
from nearcast.routing.dkm.arrays import Arrays
from nearcast.routing.grid.table import GridTable
from nearcast.routing.tornado.a_grid import Partitions
from nearcast.routing.tornado.aggregates import add_queries, new_aggregates
from nearcast.routing.tornado.costs import Costs
from nearcast.routing.tornado.table import ranges_of, sample_costs

SAMPLED = 20_000  # objects whose q_l is counted; of more, every n-th stands for n


def gather_costs(table: GridTable, partitions: Partitions, shard: int, period: Period) -> Arrays:
    """Aggregates of the batch, and (cell, cost) of each cell that has any."""
    step = len(period.objects.x) // SAMPLED + 1
    sample = _every(period.objects, step)
    costs = step * sample_costs(table, sample, period.held, round(period.each))
    mine = new_aggregates(len(table.cells))
    mine.columns[:] = costs.sum(axis=0)
    mine.rows[:] = costs.sum(axis=1)
    mine.overall[0] = costs.sum()
    borders = np.ascontiguousarray(partitions[shard], np.int32)
    add_queries(mine, borders, ranges_of(table, frozen(period.held.boxes)), True)
    cells = np.flatnonzero(costs)
    return dict(mine._asdict()) | {"cells": cells, "costs": costs.ravel()[cells]}


def costs_of(told: list[Arrays], side: int) -> Costs:
    """The cost of every cell, by what all evaluators said."""
    costs = np.zeros(side * side, np.int64)
    for each in told:
        np.add.at(costs, each["cells"], each["costs"])
    return costs.reshape(side, side)


def _every(sample: Sample, step: int) -> Sample:
    """Every n-th object."""
    if step == 1:
        return sample
    rows = np.arange(0, len(sample.x), step)
    lengths = np.diff(sample.word_offsets)[rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    at = np.repeat(sample.word_offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
    return Sample(sample.x[rows], sample.y[rows], offsets, sample.words[at])
