"""Figures 12 to 16 of PS2Stream: dynamic load adjustment, decided and really carried out.

*Days* (figures 12, 14, 15): Q1 queries, and tweets that follow the sun, four hours a period. *Q3*
(figure 16): in every period a generation of queries is replaced, and before each the kind of
queries changes in a tenth of the regions. After each period the workers' statistics are gathered,
an adjustment is decided, subscriptions move between the indexes, and the next period goes by the
new table.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from nearcast.bench.dealt import (
    Cluster,
    Done,
    Figure,
    Reals,
    Say,
    Step,
    Stream,
    id_hashes,
    sample_of,
)
from nearcast.bench.dealt_run import Layout, planned
from nearcast.bench.moving import Moved, held_by, move
from nearcast.bench.ps2stream import HYBRID, Setting, constants_for
from nearcast.bench.tweets import Tweets, by_hour, ps2stream_tweets, q3_switching
from nearcast.kernels.slots import SUBSCRIBE
from nearcast.model.errors import NearcastError
from nearcast.routing import GridRouter
from nearcast.routing.balance import Period as Seen
from nearcast.routing.balance import taken
from nearcast.routing.grid.survey import survey_of
from nearcast.routing.ps2stream.adjust.decisions import Decision
from nearcast.routing.ps2stream.adjust.gather import gather_cells, join_samples
from nearcast.routing.ps2stream.adjust.local import local_adjustment
from nearcast.routing.ps2stream.adjust.phase2 import SELECTORS, load_to_move
from nearcast.routing.ps2stream.adjust.situation import Settings, Situation
from nearcast.routing.ps2stream.adjust.stats import (
    DEFINITION_3,
    CellStats,
    Costs,
    cell_loads,
    worker_loads,
)
from nearcast.routing.ps2stream.load import Constants
from nearcast.wire.tables import numbers

SIGMA = 1.3
HOURS = 4  # of tweets in a period, which lasts PERIOD_S in the paper
PERIOD_S = 10.0
SPEED = 0.5  # "moderate input speed": of what the slowest worker can do
LATE_MS = (1.0, 10.0, 100.0, 1000.0)
SAMPLED = 5_000  # objects of a period that Phase I judges by
SWITCHED = 0.1  # of the regions, before each generation
PARTS = 5  # periods in a generation
_REPEATS = 5
_FIRST = 200  # updates of the step that compiles


@dataclass(slots=True)
class Period:
    """What one period came to."""

    tuples: int
    seconds: float  # of the slowest, dispatchers or a worker
    share: Reals  # of the tuples, those of each worker
    busy: Reals  # seconds of each worker with a migration
    utilisation: Reals  # of each worker, at moderate speed
    decisions: list[Decision] = field(default_factory=list)
    select_seconds: float = 0.0
    moved: Moved | None = None
    balance: float = 0.0  # L_max / L_min before the adjustment, by statistics


class Adjusting:
    """A cluster whose load is watched, and adjusted by a selector (none: it is left alone)."""

    def __init__(
        self,
        cluster: Cluster,
        constants: Constants,
        selector: str | None,
        dispatchers: int,
        phase1: bool,
    ) -> None:
        self.cluster = cluster
        self.p = Settings(DEFINITION_3).p if phase1 else 0
        self.constants = constants
        self.selector = selector
        self.dispatchers = dispatchers
        self.told = 0  # matches so far

    def period(self, step: Step) -> Period:
        """A step, and then an adjustment."""
        done = self.cluster.run(step)
        self.told += len(done.told.objects)
        m = len(self.cluster.workers)
        tuples_of = done.sent + done.updates
        out = Period(
            step.tuples,
            max(float(done.workers.max()), done.dispatcher / self.dispatchers),
            tuples_of / max(int(tuples_of.sum()), 1),
            np.zeros(m),
            SPEED * done.workers / max(float(done.workers.max()), 1e-12),
        )
        if self.selector is None:
            return out
        situation, costs = self.situation(step, done)
        loads = worker_loads(situation.stats, costs)
        out.balance = float(loads.max() / max(loads.min(), 1e-12))
        after, out.decisions, out.select_seconds = self.decide(situation, costs)
        if out.decisions:
            out.moved = move(self.cluster, after.table, int(numbers(step.objects["time"])[-1]))
            out.busy += out.moved.moving
            # The paper's w_o chooses the cells, and is held up meanwhile.
            out.busy[out.decisions[0].origin] += out.select_seconds
        return out

    def decide(self, situation: Situation, costs: Costs) -> tuple[Situation, list[Decision], float]:
        """(the situation afterwards, decisions, seconds that it took to decide)."""
        settings = Settings(costs, SIGMA, 1.0, self.p, self.selector or "GR", seed=1)
        started = time.thread_time()
        after, decisions = local_adjustment(situation, settings)
        return after, decisions, time.thread_time() - started

    def situation(self, step: Step, done: Done) -> tuple[Situation, Costs]:
        """What the workers have to say after a step, and Definition 1 for single cells."""
        router = self.cluster.dispatcher.router
        assert isinstance(router, GridRouter)
        assert router.grid is not None
        table, now = router.grid, int(numbers(step.objects["time"])[-1])
        sample = sample_of(step.objects)
        ends = np.flatnonzero(numbers(step.controls["op"]) != SUBSCRIBE)
        gone = survey_of(step.controls.take(pa.array(ends)), np.zeros(len(ends), np.uint64))
        began = int(numbers(step.objects["time"])[0])
        seen = []
        for w, held in enumerate(held_by(self.cluster, now)):
            came = held.filter(pa.array(numbers(held["time"]) > began))
            mine = taken(sample, done.routed[0][done.routed[1] == w])
            standing, new = (survey_of(c, id_hashes(c)) for c in (held, came))
            seen.append(Seen(mine, standing, new, gone))
        costs = Costs(*self.constants[:4])
        told = [gather_cells(table, w, s, self.p) for w, s in enumerate(seen)]
        stats = [s for s, _ in told]
        costs = costs._replace(c1=self._per_cell(stats, step.objects.num_rows))
        return Situation(table, stats, join_samples([objects for _, objects in told])), costs

    def _per_cell(self, stats: list[CellStats], objects: int) -> float:
        """c1 for queries of an object's own cell, such that all checks together cost the same.

        c1 was measured over all queries of an index, of which only those of a cell are looked at.
        """
        held = max(float(sum(len(w.living(0)) for w in self.cluster.workers)), 1.0)
        pairs = sum(float((s.objects * s.held).sum()) for s in stats)
        return self.constants.c1 * objects * held / max(pairs, 1.0)


def start(
    setting: Setting,
    tweets: Tweets,
    selector: str | None,
    constants: Constants | None,
    phase1: bool = False,
) -> Adjusting:
    """A cluster of hybrid partitioning with the standing queries, one step later."""
    standing = tweets.standing()
    stream = Stream(standing, [tweets.step(_FIRST)], sample_of(tweets.sample()))
    constants = constants or constants_for(setting, stream)
    layout = Layout(HYBRID, setting.index, setting.workers, setting.dispatchers,
                    parameters=tuple(constants._asdict().items()))  # fmt: skip
    router, _ = planned(layout, stream, stream.survey())
    cluster = Cluster(router, setting.index)
    cluster.stand(standing)
    adjusting = Adjusting(cluster, constants, selector, setting.dispatchers, phase1)
    first = stream.steps[0]
    situation, costs = adjusting.situation(first, cluster.run(first))
    adjusting.decide(situation, costs)  # compiles, as does the next; nothing moves
    move(cluster, situation.table, 0)
    return adjusting


def rates(periods: list[Period]) -> Figure:
    """Throughput without and with the time of migrations, one every ten seconds as in the paper."""
    rate = sum(p.tuples for p in periods) / sum(p.seconds for p in periods)
    lost = sum(min(float(p.busy.max()) / PERIOD_S, 1.0) for p in periods) / len(periods)
    return {
        "tuples_per_second": round(rate),
        "tuples_per_second_with_migrations": round(rate * (1.0 - lost)),
    }


# -- figures 12(a) and 13 ----------------------------------------------------------------------


def selecting(setting: Setting, mu: int, what: str, say: Say) -> Iterator[Figure]:
    """The four algorithms on the same worker: how long they select, and what."""
    say(f"figure {what}: selecting cells, {mu:,} queries …")
    changes = max(setting.changes // 4, 100)
    tweets = ps2stream_tweets("us", "Q1", mu, _FIRST + changes, setting.seed)
    adjusting = start(setting, tweets, None, None)
    step = tweets.step(changes)
    situation, costs = adjusting.situation(step, adjusting.cluster.run(step))
    loads = worker_loads(situation.stats, costs)
    origin = int(loads.argmax())
    stats = situation.stats[origin]
    cells, tau = cell_loads(stats, costs), load_to_move(loads.max(), loads.min(), 1.0)
    for name, select in SELECTORS.items():
        times = []
        for _ in range(_REPEATS):
            started = time.thread_time()
            chosen = select(cells, stats.size, tau, 1)
            times.append(time.thread_time() - started)
        yield {
            "figure": what,
            "selector": name,
            "queries": mu,
            "cells": len(stats.cells),
            "select_ms": round(1e3 * float(np.median(times[1:])), 4),
            "steps": chosen.steps,
            "chosen_cells": len(chosen.cells),
            "cost_mb": round(chosen.size / 1e6, 4),
            "exact": chosen.exact,
        }


# -- figures 12(b), 12(c), 14, 15 --------------------------------------------------------------


def days(setting: Setting, mu: int, selectors: tuple[str, ...], say: Say) -> Iterator[Figure]:
    """Tweets that follow the sun, with each selector in turn; Phase II alone, which they are."""
    changes = max(setting.changes // 8, 100)
    constants = None
    for name in selectors:
        say(f"figures 12, 14, 15: {setting.periods} periods with {name}, {mu:,} queries …")
        total = _FIRST + setting.periods * changes
        tweets = ps2stream_tweets("us", "Q1", mu, total, setting.seed)
        adjusting = start(setting, tweets, name, constants)
        constants = adjusting.constants
        periods = []
        for n in range(setting.periods):
            tweets.posting = by_hour(tweets.corpus, HOURS * n)
            periods.append(adjusting.period(tweets.step(changes)))
        moves = [p for p in periods if p.moved is not None]
        moved = [p.moved for p in moves if p.moved is not None]
        yield {
            "figure": "12, 14, 15",
            "selector": name,
            "queries": mu,
            "periods": len(periods),
            "migrations": len(moves),
            "cost_mb": _mean([m.bytes / 1e6 for m in moved]),
            "moved_queries": _mean([float(m.copies) for m in moved]),
            "select_ms": _mean([1e3 * p.select_seconds for p in moves]),
            "migration_ms": _mean([1e3 * float(p.busy.max()) for p in moves]),
            "looking_ms": _mean([1e3 * float(m.looking.max()) for m in moved]),
            "later_than": {f"{ms:g} ms": round(late(periods, ms / 1e3), 6) for ms in LATE_MS},
            "balance": _mean([p.balance for p in periods]),
            **rates(periods),
        }


def late(periods: list[Period], limit: float) -> float:
    """The share of tuples that wait longer than `limit` seconds because of migrations.

    A worker that is busy for B seconds has a queue then. With utilisation u it is worked off after
    B / (1 - u), and who came in that time waited from B down to nothing: longer than x those of the
    first (B - x) / (1 - u) seconds. A period lasts ten seconds, as in the paper.
    """
    shares = []
    for p in periods:
        window = np.maximum(p.busy - limit, 0.0) / (1.0 - p.utilisation)
        shares.append(float((p.share * np.minimum(window / PERIOD_S, 1.0)).sum()))
    return float(np.mean(shares))


def _mean(values: list[float]) -> float | None:
    return float(f"{np.mean(values):.4g}") if values else None


# -- figure 16 ---------------------------------------------------------------------------------


def switching(setting: Setting, say: Say) -> Iterator[Figure]:
    """Q3 queries whose kind changes region by region, with and without adjustments."""
    mu = setting.mu("Q3") // 2
    generations = max(setting.periods // 2, 2)
    constants = None
    notifications = []
    for name in (None, "GR"):
        say(f"figure 16: {generations} generations of {mu:,} queries, adjusted: {name} …")
        changes = max(2 * mu // PARTS, 1)  # 2 μ updates replace all queries
        total = _FIRST + generations * PARTS * changes
        tweets = ps2stream_tweets("us", "Q3", mu, total, setting.seed)
        switch = q3_switching(tweets, setting.seed, SWITCHED)
        adjusting = start(setting, tweets, name, constants, phase1=True)
        constants = adjusting.constants
        periods: list[Period] = []
        for _ in range(generations):
            switch()
            periods += [adjusting.period(tweets.step(changes)) for _ in range(PARTS)]
        notifications.append(adjusting.told)
        yield {
            "figure": "16",
            "adjusted": name is not None,
            "queries": mu,
            "generations": generations,
            **rates(periods),
            "by_period": [round(p.tuples / p.seconds) for p in periods],
            "migrations": sum(p.moved is not None for p in periods),
            "moved_mb": round(sum(p.moved.bytes for p in periods if p.moved) / 1e6, 2),
            "notifications": adjusting.told,
        }
    if len(set(notifications)) > 1:
        raise NearcastError(f"bench: adjustments changed the matches: {notifications}")


def run_adjust(setting: Setting, say: Say) -> Iterator[Figure]:
    """Figures 12 to 16."""
    wanted = set(setting.figures)
    mu = setting.mu("Q1")
    if wanted & {"12", "13"}:
        yield from selecting(setting, mu // 4, "12", say)
        for n in (mu // 2, mu):
            yield from selecting(setting, n, "13", say)
    if wanted & {"12", "14", "15"}:
        yield from days(setting, mu // 4, ("DP", "GR", "SI", "RA"), say)
        yield from days(setting, mu, ("GR", "SI", "RA"), say)
    if "16" in wanted:
        yield from switching(setting, say)
