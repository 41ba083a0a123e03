"""Live balance of PS2Stream's routers: section V on what shards count in a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from nearcast.kernels.ragged import frozen
from nearcast.routing.arrays import Arrays
from nearcast.routing.balance import (
    AUTO,
    CELLS,
    COMMON,
    GLOBAL,
    LOCAL,
    PLAN,
    Balance,
    Change,
    Counts,
    Look,
    Rest,
    imbalance,
)
from nearcast.routing.base import Sample, Seen
from nearcast.routing.grid.cells import cells_at, refined
from nearcast.routing.grid.costs import sample_costs
from nearcast.routing.grid.live import Adjustment, BalancingRouter, Period, period_of, uneven
from nearcast.routing.grid.survey import RegionSurvey, join, take
from nearcast.routing.grid.table import GridTable, place_rows, route_rows
from nearcast.routing.ps2stream.adjust.decisions import RETIRE, Decision
from nearcast.routing.ps2stream.adjust.gather import (
    first_owner,
    gather_cells,
    join_samples,
    pack_cells,
    unpack_cells,
)
from nearcast.routing.ps2stream.adjust.local import adjust
from nearcast.routing.ps2stream.adjust.situation import Settings, Situation, loads_in
from nearcast.routing.ps2stream.adjust.stats import CellStats, Costs, Reals
from nearcast.routing.ps2stream.adjust.strategies import repartition, retire
from nearcast.routing.ps2stream.adjust.touched import touched_by, touched_of
from nearcast.routing.sampling import taken, thinned

PLANNED = 5_000  # objects that each shard reports for a plan, at most
_LOCALLY = ("selection", "cells", "slack", "side", "rounds")  # settings of section V-A
_GLOBALLY = ("gain", "few", "every")  # of section V-B


class Adjusting(BalancingRouter):
    """Local adjustment, both phases, round after round until σ holds or nothing is gained.

    And the global one: a plan for what came lately, beside the present one if that is worth it.

    The threshold compares the largest load with the mean. σ compares the largest with the smallest;
    it is the same number, and so at least as strict.
    """

    balances: ClassVar[Mapping[str, tuple[str, ...]]] = {
        AUTO: (*COMMON, *_LOCALLY, *_GLOBALLY),
        LOCAL: (*COMMON, *_LOCALLY),
        GLOBAL: (*COMMON, *_GLOBALLY),
    }

    def look(
        self, batch: int, counts: list[Counts], balance: Balance, rest: Rest | None
    ) -> Look | None:
        """Gather from shards if loads differ too much or a new strategy is due.

        While two strategies are in use: end the old one, if it is time.
        """
        if self.old is not None:
            ended = self._end_old(batch, counts, balance)
            return Look(change=ended) if ended else None
        found = super().look(batch, counts, balance, rest)
        if balance.mode == LOCAL:
            return found
        age = batch - self.both.since
        # Something may have been moving when it was due; then it is looked at a little later.
        late = age % balance.every if age >= balance.every else balance.every
        due = late <= min(balance.wait, balance.every - 1)
        looked = rest is not None and rest.order == PLAN and batch < rest.until
        if due and not looked:
            return Look(PLAN)
        return Look(PLAN if balance.mode == GLOBAL else CELLS) if found else None

    def gather(self, question: str, shard: int, seen: Seen, balance: Balance) -> Arrays:
        """Statistics of cells, or what a new plan must know."""
        if question == PLAN:
            return self.gather_all(shard, period_of(seen, ids=True))
        return super().gather(question, shard, seen, balance)

    def decide(
        self, question: str, reported: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Change | None:
        """An adjustment of the table in use, or a new one beside it."""
        if question == PLAN:
            return self.change_of(self.replan(reported, counts, balance), beside=True)
        return super().decide(question, reported, counts, balance)

    def _end_old(self, batch: int, counts: list[Counts], balance: Balance) -> Change | None:
        """End the old strategy when it has few subscriptions, has had its time, or is in the way
        of a local adjustment."""
        held, old = sum(c.held for c in counts), sum(c.old for c in counts)
        loads = [c.load for c in counts]
        few = retire(old, held, balance.few, np.array(loads))
        if few is not None:
            why = few.reason
        elif batch + 1 - self.both.since >= balance.every:
            why = f"{old} of {held} subscriptions are left after {balance.every} batches"
        elif uneven(loads, balance) and balance.mode == AUTO:
            why = (
                f"the largest load is {imbalance(loads):.2f} times the mean; {old} of {held} "
                "subscriptions of the old strategy move, then the new one is adjusted"
            )
        else:
            return None
        decision = {"kind": RETIRE, "reason": why, "before": loads, "after": loads}
        return Change([decision], np.array(loads), np.array(loads), self.picture())

    def gather_cells(self, shard: int, period: Period, balance: Balance) -> Arrays:
        """Rows of cells, finer than the plan's where that has few."""
        table = self._fine(balance)
        came = touched_by(table, shard, period.inserted) + touched_by(table, shard, period.deleted)
        rows = gather_cells(table, shard, period, balance.cells)
        return pack_cells(*rows) | {"touched": came.astype(np.int32)}

    def rebalance(
        self, reported: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Adjustment | None:
        """Section V-A; `global` leaves it out."""
        if balance.mode == GLOBAL:
            return None
        rows, samples = zip(*(unpack_cells(t) for t in reported), strict=True)
        stats = as_counted(list(rows), [c.checks for c in counts])
        settings = Settings(
            fitted(stats, counts),
            sigma=balance.threshold,
            aim=1.0,
            p=balance.cells,
            selector=balance.selection.upper(),
            deeper=True,
        )
        table, came = self._fine(balance), sum(t["touched"].astype(np.int64) for t in reported)
        touched = touched_of(table, stats, np.asarray(came), settings.costs)
        start = Situation(table, stats, join_samples(list(samples)), touched=touched)
        end, decisions = adjust(start, settings, balance.rounds)
        if imbalance(loads_in(end, settings).tolist()) > balance.threshold:
            # A cell that is most of a shard's load: only words can divide it, at a price.
            end, more = adjust(end, settings._replace(slack=balance.slack), balance.rounds)
            decisions += more
        if not decisions:
            return None
        before, after = (loads_in(s, settings) for s in (start, end))
        return Adjustment(end.table, [_described(d) for d in decisions], before, after)

    def gather_all(self, shard: int, period: Period) -> Arrays:
        """Subscriptions held, and a sample of the objects that no other shard reports."""
        assert self.grid is not None
        objects = period.objects
        at = cells_at(self.grid, frozen(objects.x), frozen(objects.y))
        mine = np.flatnonzero(first_owner(self.grid, frozen(at)) == shard)
        sample, _ = thinned(taken(objects, mine), PLANNED)
        survey = {f"survey_{name}": a for name, a in period.held._asdict().items()}
        return survey | {f"sample_{name}": a for name, a in sample._asdict().items()}

    def replan(
        self, reported: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Adjustment | None:
        """Section V-B: Algorithm 1 on a recent sample, and loads by both tables on it."""
        assert self.grid is not None
        sample = _joined(reported)
        surveys = [
            RegionSurvey(*(t[f"survey_{n}"] for n in RegionSurvey._fields)) for t in reported
        ]
        survey = join(surveys)
        table = self.prepare(sample, survey, self.given({}))
        parts = [shard_parts(t, sample, survey, self.shards) for t in (self.grid, table)]
        now, then = loads_by(parts, counts)
        found = repartition(now, then, balance.threshold, balance.gain)
        if found is None:
            return None
        return Adjustment(table, [_described(found)], now, then)

    def _fine(self, balance: Balance) -> GridTable:
        assert self.grid is not None
        return refined(self.grid, balance.side)


def fitted(stats: list[CellStats], counts: list[Counts]) -> Costs:
    """Constants of Definition 1 by which all cells together have the load that was counted."""
    return fitted_to(
        stats,
        sum(c.checks for c in counts),
        sum(c.each for c in counts),
        sum(c.updates for c in counts),
    )


def as_counted(stats: list[CellStats], checks: list[float]) -> list[CellStats]:
    """Rows by which each shard has the share of all checks that it counted.

    n_q is an estimate, and an index reads more than it where its cells are coarser.
    """
    pairs = [float((s.objects * s.held).sum()) for s in stats]
    all_checks, all_pairs = sum(checks), sum(pairs)
    if not (all_checks > 0.0 and all_pairs > 0.0):
        return stats
    return [
        s._replace(held=s.held * (c / all_checks * all_pairs / p)) if p > 0.0 else s
        for s, c, p in zip(stats, checks, pairs, strict=True)
    ]


def fitted_to(stats: list[CellStats], checks: float, each: float, changes: float) -> Costs:
    """Constants by which all cells together have these loads: checks of an object against a
    subscription, cost per object, and updates.

    Rows count a subscription in each cell that it touches, and c1 of a whole index is not that of
    a cell: only the sums are known.
    """
    objects = sum(float(s.objects.sum()) for s in stats)
    pairs = sum(float((s.objects * s.held).sum()) for s in stats)
    updates = sum(float((s.inserted + s.deleted).sum()) for s in stats)
    c1, c2, c3 = (
        total / number if number > 0 else 0.0
        for total, number in (
            (checks, pairs),
            (each, objects),
            (changes, updates),
        )
    )
    return Costs(c1, c2, c3, c3)


def _joined(reported: list[Arrays]) -> Sample:
    """The samples of all shards."""
    lengths = np.concatenate([np.diff(t["sample_word_offsets"]) for t in reported])
    return Sample(
        np.concatenate([t["sample_x"] for t in reported]),
        np.concatenate([t["sample_y"] for t in reported]),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([t["sample_words"] for t in reported]),
    )


def shard_parts(table: GridTable, sample: Sample, survey: RegionSurvey, shards: int) -> Reals:
    """[3, shards] for a sample and a table: objects that each shard gets, subscriptions that these
    are checked against there, and copies of subscriptions."""
    x, y, offsets, words = (frozen(a) for a in sample)
    rows, to = route_rows(table, x, y, offsets, words)
    placed, at = place_rows(table, survey)
    out = np.zeros((3, shards))
    for shard in range(shards):
        mine, held = taken(sample, rows[to == shard]), take(survey, placed[at == shard])
        out[:, shard] = len(mine.x), sample_costs(table, mine, held, 0).sum(), len(held.conjunction)
    return out


def loads_by(parts: list[Reals], counts: list[Counts]) -> list[Reals]:
    """The load of each shard by each of some tables; loads were counted under the first one.

    Objects, checks and updates are scaled to what was counted of each. So a table that doubles the
    copies doubles what updates cost.
    """
    loads = [(c.each, c.checks, c.updates) for c in counts]
    each = np.sum(loads, axis=0) / np.maximum(parts[0].sum(axis=1), 1.0)
    return [np.asarray(each @ part) for part in parts]


def _described(d: Decision) -> dict[str, Any]:
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
