"""What an evaluator reports of its cells after a batch: aggregates (4.3), or costs by cell.

Operations of the paper are chosen by aggregates; a chain of them, and new partitions, by the costs
of cells. The cost per object is kept apart from q_l: the weights of both are known only when all
evaluators have reported theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.routing.arrays import Arrays
from nearcast.routing.balance import Counts
from nearcast.routing.grid.cells import cells_at, only_posting_words
from nearcast.routing.grid.costs import Costs, ranges_of, sample_costs
from nearcast.routing.grid.live import Period
from nearcast.routing.grid.survey import take
from nearcast.routing.grid.table import GridTable
from nearcast.routing.sampling import thinned
from nearcast.routing.tornado.a_grid import Partitions
from nearcast.routing.tornado.aggregates import Aggregates, add_queries, new_aggregates
from nearcast.routing.tornado.cell_loads import CellLoads
from nearcast.routing.tornado.refit import outside

SAMPLED = 4096  # objects whose q_l is counted; of more, every n-th stands for n
QUERIES = 65_536  # that they are checked against, likewise
UNIT = 100.0  # costs are whole numbers of this part of a load


class Weights(NamedTuple):
    """The cost per object, and per query that it is checked against."""

    each: int
    check: int


def gather_aggregates(
    table: GridTable, partitions: Partitions, shard: int, period: Period
) -> Arrays:
    """Aggregates of the batch, of q_l and of objects, for an evaluator that is a rectangle."""
    checks, objects = _by_cell(table, period)
    mine = new_aggregates(len(table.cells))
    mine.columns[:], mine.rows[:], mine.overall[0] = _sums(checks)
    borders = np.ascontiguousarray(partitions[shard], np.int32)
    add_queries(mine, borders, ranges_of(table, frozen(period.held.boxes)), True)
    columns, rows, total = _sums(objects)
    return {
        **mine._asdict(),
        "object_columns": columns,
        "object_rows": rows,
        "object_overall": np.array([total, 0]),
    }


def gather_cells(table: GridTable, shard: int, period: Period) -> Arrays:
    """q_l, objects, and queries that begin there, of each cell that has any; totals of both."""
    checks, objects = _by_cell(table, period)
    queries = _begun(table, shard, period)
    cells = np.flatnonzero(checks.ravel() + objects.ravel() + queries)
    return {
        "cells": cells.astype(np.int32),
        "checks": checks.ravel()[cells],
        "objects": objects.ravel()[cells].astype(np.int32),
        "queries": queries[cells].astype(np.int32),
        "overall": np.array([checks.sum(), queries.sum()]),
        "object_overall": np.array([objects.sum(), 0]),
        **outside(table, period.objects),
    }


def _by_cell(table: GridTable, period: Period) -> tuple[Costs, Costs]:
    """q_l and objects of every cell."""
    side = len(table.cells)
    sample, step = thinned(period.objects, SAMPLED)
    every = -(-len(period.held.conjunction) // QUERIES) or 1
    held = period.held
    if every > 1:
        held = take(held, np.arange(0, len(held.conjunction), every))
    checks = step * every * sample_costs(table, sample, only_posting_words(table, held), 0)
    at = cells_at(table, frozen(period.objects.x), frozen(period.objects.y))
    return checks, np.bincount(at, minlength=side * side).reshape(side, side)


def _begun(table: GridTable, shard: int, period: Period) -> NDArray[np.int64]:
    """Queries by the first cell that each touches; the shard that owns this cell reports them."""
    offsets = period.held.box_offsets
    first = ranges_of(table, frozen(period.held.boxes[offsets[:-1][np.diff(offsets) > 0]]))
    at = first[:, 1].astype(np.int64) * len(table.cells) + first[:, 0]
    mine = at[table.cells.ravel()[at] == shard]
    return np.bincount(mine, minlength=table.cells.size)


def _sums(cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    return cells.sum(axis=0), cells.sum(axis=1), int(cells.sum())


def weights_of(reported: Sequence[Arrays], counts: Sequence[Counts]) -> Weights:
    """Weights by which all cells together cost what was counted."""
    checks = sum(int(t["overall"][0]) for t in reported)
    objects = sum(int(t["object_overall"][0]) for t in reported)
    check = UNIT * sum(c.checks for c in counts) / checks if checks else 0.0
    each = UNIT * sum(c.each for c in counts) / objects if objects else 0.0
    return Weights(max(round(each), 1), max(round(check), 1))


def aggregates_of(reported: Arrays, w: Weights) -> Aggregates:
    """The aggregates of an evaluator, in costs."""
    found = {
        name: w.check * reported[name] + w.each * reported[f"object_{name}"]
        for name in ("columns", "rows", "overall")
    }
    found["overall"][1] = reported["overall"][1]
    return Aggregates(**{name: reported[name] for name in Aggregates._fields} | found)


def loads_of(reported: Sequence[Arrays], side: int, w: Weights) -> CellLoads:
    """Every cell by what all evaluators said."""
    costs, queries = np.zeros((2, side * side), np.int64)
    for t in reported:
        costs[t["cells"]] += w.check * t["checks"] + w.each * t["objects"]
        queries[t["cells"]] += t["queries"]
    return CellLoads(costs.reshape(side, side), queries.reshape(side, side))
