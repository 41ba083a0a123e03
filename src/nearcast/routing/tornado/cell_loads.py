"""What new partitions are made from: the cost of every cell, and the queries that begin in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.grid.costs import Costs
from nearcast.routing.tornado.a_grid import Cells, Partitions
from nearcast.routing.tornado.aggregates import Aggregates, new_aggregates
from nearcast.routing.tornado.decision import Decision, rectangle
from nearcast.routing.tornado.rebalance import Settings


class CellLoads(NamedTuple):
    """Each query counts once, in the first cell that it touches."""

    costs: Costs  # [side, side]
    queries: Costs  # [side, side]


class Plan(NamedTuple):
    """Decisions, one after the other, and where they lead."""

    decisions: tuple[Decision, ...]
    cells: Cells
    before: NDArray[np.int64]  # cost of each shard
    after: NDArray[np.int64]
    moved: int  # queries that change hands in all, each once
    worth: float  # what it saves within the horizon, less what the moves cost


def shard_costs(cells: Cells, costs: Costs, shards: int) -> NDArray[np.int64]:
    """Equation (2) for the cells of each shard, whatever their shape."""
    return np.bincount(cells.ravel(), costs.ravel(), shards).astype(np.int64)


def plan_of(
    decisions: list[Decision], old: Cells, new: Cells, loads: CellLoads, shards: int, s: Settings
) -> Plan | None:
    """Decisions as a plan; None: they are not worth it, taken together."""
    before, after = (shard_costs(cells, loads.costs, shards) for cells in (old, new))
    moved = int(loads.queries[old != new].sum())
    worth = s.horizon * int(before.max() - after.max()) - s.beta * moved
    if not decisions or not worth > 0:
        return None
    return Plan(tuple(decisions), new, before, after, moved, worth)


def aggregates_from(partitions: Partitions, loads: CellLoads) -> list[Aggregates]:
    """The aggregates that evaluators with these partitions would report (4.3)."""
    out = []
    for p in range(len(partitions)):
        a = new_aggregates(len(loads.costs))
        x1, y1, x2, y2 = rectangle(partitions, p)
        across, along = slice(x1, x2 + 1), slice(y1, y2 + 1)
        costs, queries = loads.costs[along, across], loads.queries[along, across]
        a.columns[across], a.rows[along] = costs.sum(axis=0), costs.sum(axis=1)
        a.first_columns[across] = a.last_columns[across] = queries.sum(axis=0)
        a.first_rows[along] = a.last_rows[along] = queries.sum(axis=1)
        a.overall[:] = costs.sum(), queries.sum()
        out.append(a)
    return out
