"""Live balance of Tornado's routers: sections 4.2 and 4.3 on what evaluators count in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.routing.balance import GLOBAL, LOCAL, Adjustment, Balance, CanBalance, Counts, Period
from nearcast.routing.dkm.arrays import Arrays
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.table import GridTable
from nearcast.routing.tornado.a_grid import Partitions, partitions_of
from nearcast.routing.tornado.balance import Settings, adjust
from nearcast.routing.tornado.decision import Decision
from nearcast.routing.tornado.gather import aggregates_of, costs_of, gather_costs, weights_of
from nearcast.routing.tornado.repartition import repartition
from nearcast.routing.tornado.table import after


class ShiftAndSplit(GridRouter, CanBalance):
    """One operation of the paper at a time (`local`), new partitions for all (`global`).

    `auto`: the operation if it is enough to come below the threshold, otherwise whichever of both
    leaves the smaller largest cost.
    """

    def gather(self, shard: int, period: Period, balance: Balance) -> Arrays:
        """Aggregates, and costs of cells."""
        return gather_costs(self._table, self._partitions, shard, period)

    def rebalance(
        self, told: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Adjustment | None:
        """The choice on summaries; cell costs are looked at only for new partitions."""
        weights = weights_of(told, counts)
        settings = Settings(balance.beta * weights.check, balance.threshold)
        aggregates = [aggregates_of(t, weights) for t in told]
        best = None
        if balance.mode != GLOBAL:
            best = adjust(self._partitions, aggregates, settings)
        if balance.mode != LOCAL and not (best and _enough(best, balance)):
            queries = [int(a.overall[1]) for a in aggregates]
            costs = costs_of(told, len(self._table.cells), weights)
            new = repartition(self._partitions, costs, queries, settings)
            if new and (best is None or max(new.after) < max(best.after)):
                best = new
        if best is None:
            return None
        before, later = np.array(best.before, float), np.array(best.after, float)
        return Adjustment(after(self._table, best), [_told(best)], before, later)

    @property
    def _table(self) -> GridTable:
        assert self.grid is not None
        return self.grid

    @property
    def _partitions(self) -> Partitions:
        return partitions_of(self._table.cells, self.shards)


def _enough(decision: Decision, balance: Balance) -> bool:
    largest, mean = max(decision.after), sum(decision.after) / len(decision.after)
    return largest <= balance.threshold * mean


def _told(d: Decision) -> dict[str, Any]:
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
