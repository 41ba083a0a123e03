"""Live balance of PS2Stream's routers: section V on what shards count in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.routing.balance import (
    GLOBAL,
    Adjustment,
    Balance,
    CanBalance,
    Counts,
    Period,
    imbalance,
)
from nearcast.routing.dkm.arrays import Arrays
from nearcast.routing.grid.cells import refined
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.table import GridTable
from nearcast.routing.ps2stream.adjust.decisions import Decision
from nearcast.routing.ps2stream.adjust.gather import (
    gather_cells,
    join_samples,
    pack_cells,
    unpack_cells,
)
from nearcast.routing.ps2stream.adjust.local import adjust
from nearcast.routing.ps2stream.adjust.situation import Settings, Situation, loads_of
from nearcast.routing.ps2stream.adjust.stats import CellStats, Costs


class LocalAdjustment(GridRouter, CanBalance):
    """Local adjustment, both phases, round after round until σ holds or nothing is gained.

    The threshold is asked of the largest load and the mean; σ, which is about the largest and the
    smallest, is the same number, and so at least as strict.
    """

    def gather(self, shard: int, period: Period, balance: Balance) -> Arrays:
        """Rows of cells, finer than the plan's where that has few."""
        return pack_cells(*gather_cells(self._fine(balance), shard, period, balance.cells))

    def rebalance(
        self, told: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Adjustment | None:
        """Section V-A; `global` leaves it out."""
        if balance.mode == GLOBAL:
            return None
        stats, samples = zip(*(unpack_cells(t) for t in told), strict=True)
        settings = Settings(
            fitted(list(stats), counts),
            sigma=balance.threshold,
            aim=1.0,
            p=balance.cells,
            selector=balance.selection.upper(),
            deeper=True,
        )
        start = Situation(self._fine(balance), list(stats), join_samples(list(samples)))
        end, decisions = adjust(start, settings, balance.rounds)
        if imbalance(loads_of(end.stats, settings).tolist()) > balance.threshold:
            # A cell that is most of a shard's load: only words can divide it, at a price.
            end, more = adjust(end, settings._replace(slack=balance.slack), balance.rounds)
            decisions += more
        if not decisions:
            return None
        before, after = (loads_of(s.stats, settings) for s in (start, end))
        return Adjustment(end.table, [_told(d) for d in decisions], before, after)

    def _fine(self, balance: Balance) -> GridTable:
        assert self.grid is not None
        return refined(self.grid, balance.side)


def fitted(stats: list[CellStats], counts: list[Counts]) -> Costs:
    """Constants of Definition 1 by which all cells together have the load that was counted."""
    objects = sum(float(s.objects.sum()) for s in stats)
    pairs = sum(float((s.objects * s.held).sum()) for s in stats)
    updates = sum(float((s.inserted + s.deleted).sum()) for s in stats)
    c1, c2, c3 = (
        total / number if number > 0 else 0.0
        for total, number in (
            (sum(c.checks for c in counts), pairs),
            (sum(c.each for c in counts), objects),
            (sum(c.updates for c in counts), updates),
        )
    )
    return Costs(c1, c2, c3, c3)


def _told(d: Decision) -> dict[str, Any]:
    return {
        "kind": d.kind,
        "reason": d.reason,
        "from": d.origin,
        "to": d.target,
        "cells": len(d.cells),
        "words": len(d.words),
        "size": d.size,
        "before": np.round(d.before, 1).tolist(),
        "after": np.round(d.after, 1).tolist(),
    }
