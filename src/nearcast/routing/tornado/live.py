"""Live balance of Tornado's routers: sections 4.2 and 4.3 on what evaluators count in a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from nearcast.routing.arrays import Arrays
from nearcast.routing.balance import AUTO, COMMON, CONTROL, GLOBAL, LOCAL, Balance, Counts
from nearcast.routing.grid.live import Adjustment, BalancingRouter, Period
from nearcast.routing.grid.table import GridTable, sealed
from nearcast.routing.tornado.a_grid import Partitions, partitions_of
from nearcast.routing.tornado.cell_loads import CellLoads, Plan, shard_costs
from nearcast.routing.tornado.chain import chain_of_pieces, chain_of_the_paper
from nearcast.routing.tornado.decision import NEW_BOUNDS, Decision
from nearcast.routing.tornado.gather import (
    UNIT,
    aggregates_of,
    gather_aggregates,
    gather_cells,
    loads_of,
    weights_of,
)
from nearcast.routing.tornado.pieces import pieces_of
from nearcast.routing.tornado.rebalance import Settings, adjust
from nearcast.routing.tornado.refit import Bounds, refitted, wanted_bounds
from nearcast.routing.tornado.repartition import repartition
from nearcast.routing.tornado.table import after


class ShiftAndSplit(BalancingRouter):
    """One operation of the paper at a time (`local`), new partitions for all (`global`).

    `auto`: a chain of operations or new partitions, whichever is worth more.
    """

    balances: ClassVar[Mapping[str, tuple[str, ...]]] = {
        AUTO: (*COMMON, "beta", "horizon", "rounds", "rectangles"),
        LOCAL: (*COMMON, "beta", "horizon", "rectangles"),
        GLOBAL: (*COMMON, "beta", "horizon"),
    }

    def gather_cells(self, shard: int, period: Period, balance: Balance) -> Arrays:
        """Aggregates where one operation is chosen by them, otherwise costs of cells."""
        partitions = self._partitions(balance)
        if partitions is None:
            return gather_cells(self._table, shard, period)
        return gather_aggregates(self._table, partitions, shard, period)

    def rebalance(
        self, reported: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Adjustment | None:
        """By aggregates one operation, by costs of cells the best plan, or new bounds first."""
        weights = weights_of(reported, counts)
        settings = settings_of(balance)
        partitions = self._partitions(balance)
        if partitions is not None:
            made = adjust(partitions, [aggregates_of(t, weights) for t in reported], settings)
            if made is None:
                return None
            loads = np.array(made.before, float), np.array(made.after, float)
            return Adjustment(after(self._table, made), [_described(made)], *loads)
        cells = loads_of(reported, len(self._table.cells), weights)
        bounds = wanted_bounds(self._table, reported) if balance.mode != LOCAL else None
        if bounds is not None and self._uneven(cells, settings):
            return self._refitted(bounds, cells)
        best = max(self._plans(cells, balance, settings), key=lambda p: p.worth, default=None)
        if best is None:
            return None
        table = sealed(self._table._replace(cells=best.cells))
        decisions = [_described(d) for d in best.decisions]
        return Adjustment(table, decisions, best.before.astype(float), best.after.astype(float))

    def _plans(self, loads: CellLoads, balance: Balance, settings: Settings) -> Iterator[Plan]:
        """All that is worth more than it costs; of equal ones the first is taken."""
        cells, n = self._table.cells, self.shards
        if not self._uneven(loads, settings):
            return
        ways = []
        if balance.mode != GLOBAL:
            if self._rectangular:
                ways.append(chain_of_the_paper)
            if settings.rectangles > 1 or not self._rectangular:
                ways.append(chain_of_pieces)
        if balance.mode != LOCAL:
            ways.append(repartition)
        for way in ways:
            made = way(cells, n, loads, settings)
            if made is not None:
                yield made

    def _uneven(self, loads: CellLoads, settings: Settings) -> bool:
        costs = shard_costs(self._table.cells, loads.costs, self.shards)
        return bool(costs.max() * self.shards > settings.threshold * costs.sum())

    def _refitted(self, bounds: Bounds, loads: CellLoads) -> Adjustment:
        """The same owners over other bounds."""
        costs = shard_costs(self._table.cells, loads.costs, self.shards)
        reason = f"many objects lie outside of the bounds; these become {bounds.tolist()}"
        all_costs = tuple(costs.tolist())
        made = Decision(NEW_BOUNDS, (), all_costs, all_costs, 0, 0, reason)
        as_is = costs.astype(float)
        return Adjustment(refitted(self._table, bounds), [_described(made)], as_is, as_is)

    @property
    def _table(self) -> GridTable:
        assert self.grid is not None
        return self.grid

    @property
    def _rectangular(self) -> bool:
        """Whether no shard has more than one rectangle."""
        owners = pieces_of(self._table.cells).owners
        return len(owners) == len(np.unique(owners))

    def _partitions(self, balance: Balance) -> Partitions | None:
        """The partitions, if operations are chosen by aggregates."""
        if balance.mode != LOCAL or not self._rectangular:
            return None
        return partitions_of(self._table.cells, self.shards)


def settings_of(balance: Balance) -> Settings:
    """The settings of a run in the unit of costs; `local` is one operation at a time."""
    rounds = 1 if balance.mode == LOCAL else balance.rounds
    return Settings(
        balance.beta * CONTROL * UNIT,
        balance.threshold,
        balance.horizon,
        rounds,
        balance.rectangles,
    )


def _described(d: Decision) -> dict[str, Any]:
    return {
        "kind": d.kind,
        "reason": d.reason,
        "moves": [{"from": m.source, "to": m.target, "cells": list(m.cells)} for m in d.moves],
        "cells": sum(
            (m.cells[2] - m.cells[0] + 1) * (m.cells[3] - m.cells[1] + 1) for m in d.moves
        ),
        "before": list(d.before),
        "after": list(d.after),
        "c_r": d.c_r,
        "c_t": d.c_t,
    }
