"""Live balance of PS2Stream's routers: section V on what shards count in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.kernels.ragged import frozen
from nearcast.routing.balance import (
    GLOBAL,
    Adjustment,
    Balance,
    CanBalance,
    CanReplan,
    Counts,
    Period,
    imbalance,
    taken,
    thinned,
)
from nearcast.routing.base import Sample
from nearcast.routing.dkm.arrays import Arrays
from nearcast.routing.grid.cells import cells_at, refined
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.survey import RangeSurvey, join, take
from nearcast.routing.grid.table import GridTable, place_rows, route_rows
from nearcast.routing.ps2stream.adjust.decisions import Decision
from nearcast.routing.ps2stream.adjust.gather import (
    first_owner,
    gather_cells,
    join_samples,
    pack_cells,
    unpack_cells,
)
from nearcast.routing.ps2stream.adjust.local import adjust
from nearcast.routing.ps2stream.adjust.situation import Settings, Situation, loads_of
from nearcast.routing.ps2stream.adjust.stats import CellStats, Costs, Reals
from nearcast.routing.ps2stream.adjust.strategies import Strategies, repartition
from nearcast.routing.tornado.table import sample_costs

PLANNED = 5_000  # objects that each shard tells of for a plan, at most


class Adjusting(GridRouter, CanBalance, CanReplan):
    """Local adjustment, both phases, round after round until σ holds or nothing is gained.

    And the global one: a plan for what came lately, beside the present one if that is worth it.

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

    def gather_all(self, shard: int, period: Period) -> Arrays:
        """Subscriptions held, and a sample of the objects that no other shard tells of."""
        assert self.grid is not None
        objects = period.objects
        at = cells_at(self.grid, frozen(objects.x), frozen(objects.y))
        mine = np.flatnonzero(first_owner(self.grid, frozen(at)) == shard)
        sample, _ = thinned(taken(objects, mine), PLANNED)
        survey = {f"survey_{name}": a for name, a in period.held._asdict().items()}
        return survey | {f"sample_{name}": a for name, a in sample._asdict().items()}

    def replan(
        self, told: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Adjustment | None:
        """Section V-B: Algorithm 1 on a recent sample, and loads by both tables on it."""
        assert self.grid is not None
        sample = _joined(told)
        surveys = [RangeSurvey(*(t[f"survey_{n}"] for n in RangeSurvey._fields)) for t in told]
        survey = join(surveys)
        table = self.prepare(sample, survey, self.given({}))
        now, then = (
            shard_loads(t, sample, survey, self.shards, counts) for t in (self.grid, table)
        )
        found = repartition(Strategies(0), now, then, balance.threshold, balance.gain)
        if found is None:
            return None
        return Adjustment(table, [_told(found)], now, then)

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


def _joined(told: list[Arrays]) -> Sample:
    """The samples of all shards."""
    lengths = np.concatenate([np.diff(t["sample_word_offsets"]) for t in told])
    return Sample(
        np.concatenate([t["sample_x"] for t in told]),
        np.concatenate([t["sample_y"] for t in told]),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([t["sample_words"] for t in told]),
    )


def shard_loads(
    table: GridTable, sample: Sample, survey: RangeSurvey, shards: int, counts: list[Counts]
) -> Reals:
    """The load of each shard on a sample by a table: objects it gets, and what they are held
    against there, weighted as all shards counted."""
    x, y, offsets, words = (frozen(a) for a in sample)
    rows, to = route_rows(table, x, y, offsets, words)
    placed, at = place_rows(table, survey)
    objects, checks = np.zeros(shards), np.zeros(shards)
    for shard in range(shards):
        mine, held = taken(sample, rows[to == shard]), take(survey, placed[at == shard])
        objects[shard] = len(mine.x)
        checks[shard] = sample_costs(table, mine, held, 0).sum()
    total, each = sum(c.objects for c in counts), sum(c.each for c in counts)
    entries, found = sum(c.scanned for c in counts), sum(c.checks for c in counts)
    return objects * (each / max(total, 1)) + checks * (found / max(entries, 1))


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
