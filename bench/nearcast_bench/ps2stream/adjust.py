"""Figures 12 to 16 of PS2Stream: dynamic load adjustment, decided and really carried out.

*Days* (figures 12, 14, 15): Q1 queries, and tweets that follow the sun, four hours a period. *Q3*
(figure 16): in every generation all queries are replaced, and before each the kind of queries
changes in a tenth of the regions. All that is compared goes through the same course in turn, pass
by pass, and must report the same matches, those of a sample as the scan does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from nearcast.routing.ps2stream.adjust.decisions import MIGRATE
from nearcast.routing.ps2stream.adjust.phase2 import SELECTORS, load_to_move
from nearcast.routing.ps2stream.adjust.situation import loads_in
from nearcast.routing.ps2stream.adjust.stats import cell_loads
from nearcast.routing.ps2stream.load import Constants
from nearcast.workload.subscriptions import Group
from nearcast_bench.common.cluster import Stream, sample_of
from nearcast_bench.common.cluster_run import Oracle, agree
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.tweets import Tweets, by_hour, ps2stream_tweets, q3_switching
from nearcast_bench.ps2stream.adjusting import (
    Adjusting,
    Course,
    Period,
    Way,
    course_of,
    least,
)
from nearcast_bench.ps2stream.experiment import Setting, constants_for, limited, told_constants

HOURS = 4  # of tweets in a period, which lasts PERIOD_S in the paper
PERIOD_S = 10.0
SPEED = 0.5  # "moderate input speed": of what the slowest worker can do
LATE_MS = (1.0, 10.0, 100.0, 1000.0)
SWITCHED = 0.1  # of the regions, before each generation
PARTS = 5  # periods in a generation
READ, STORED = "adjusted", "adjusted by Definition 3"
_REPEATS = 5
_FIRST = 200  # updates of the step that compiles


def run_adjust(setting: Setting, say: Say) -> Iterator[Figure]:
    """Figures 12 to 16; c1 to c4 of one group are the same for all sizes."""
    setting = limited(setting)
    wanted = set(setting.figures)
    mu = setting.mu("Q1")
    if wanted & {"12", "13", "14", "15"}:
        constants = measured(setting, "Q1", mu)
        yield told_constants(setting, "STS-US-Q1, figures 12 to 15", mu, constants)
        if wanted & {"12", "13"}:
            yield from selecting(setting, constants, mu // 4, "12", say)
            for n in (mu // 2, mu):
                yield from selecting(setting, constants, n, "13", say)
        if "12" in wanted:
            yield from days(setting, constants, mu // 4, tuple(SELECTORS), "12", say)
        if wanted & {"14", "15"}:
            for n in (mu // 2, mu):
                yield from days(setting, constants, n, ("GR", "SI", "RA"), "14, 15", say)
    if "16" in wanted:
        yield from switching(setting, say)


def measured(setting: Setting, group: Group, mu: int) -> Constants:
    """c1 to c4 of a group."""
    tweets = ps2stream_tweets("us", group, mu, 0, setting.seed)
    return constants_for(setting, tweets.standing(), tweets.sample())


def beginning(tweets: Tweets) -> Stream:
    """What stands, and the step that compiles."""
    standing = tweets.standing()
    sample = sample_of(tweets.sample())
    return Stream(standing, [tweets.step(_FIRST)], sample)


def through(
    setting: Setting, course: Course, ways: tuple[Way, ...], what: str, say: Say
) -> list[tuple[Way, list[Period], Figure]]:
    """Each way through the course, pass by pass in turn; what they report must agree."""
    oracle = Oracle(course.stream)
    passes: dict[str, list[list[Period]]] = {way.name: [] for way in ways}
    reported: dict[str, Figure] = {}
    for n in range(setting.passes):
        for way in ways:
            say(f"figure {what}: {way.name}, pass {n + 1} of {setting.passes} …")
            adjusting = Adjusting(course, setting.index, way)
            passes[way.name].append([adjusting.period(s) for s in course.stream.steps[1:]])
            oracle.check(adjusting.reported)
            reported[way.name] = {
                "router": way.name,
                "index": setting.index,
                "passes": n + 1,
                "checked_matches": len(oracle.right),
                "notifications": sum(len(t.objects) for t in adjusting.reported),
                "checksum": f"{sum(t.checksum() for t in adjusting.reported) % 2**64:016x}",
            }
            agree(list(reported.values()))
    checked = ("passes", "checked_matches", "notifications", "checksum")
    return [
        (way, least(passes[way.name]), {k: reported[way.name][k] for k in checked}) for way in ways
    ]


# -- figures 12(a) and 13 ----------------------------------------------------------------------


def selecting(
    setting: Setting, constants: Constants, mu: int, what: str, say: Say
) -> Iterator[Figure]:
    """The four algorithms on the same worker: how long they select, and what."""
    say(f"figure {what}: selecting cells, {mu:,} queries …")
    changes = max(setting.changes // 4, 100)
    tweets = ps2stream_tweets("us", "Q1", mu, _FIRST + changes, setting.seed)
    stream = beginning(tweets)
    step = tweets.step(changes)
    adjusting = Adjusting(course_of(setting, stream, constants), setting.index, Way("GR", "GR"))
    situation, settings = adjusting.situation(step, adjusting.run(step))
    loads = loads_in(situation, settings)
    stats = situation.stats[int(loads.argmax())]
    cells = cell_loads(stats, settings.costs)
    tau = load_to_move(loads.max(), loads.min(), 1.0)
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
            "select_ms": round(1e3 * float(np.min(times[1:])), 4),
            "steps": chosen.steps,
            "chosen_cells": len(chosen.cells),
            "cost_mb": round(chosen.size / 1e6, 4),
            "exact": chosen.exact,
        }


# -- figures 12(b), 12(c), 14, 15 --------------------------------------------------------------


def days(
    setting: Setting,
    constants: Constants,
    mu: int,
    selectors: tuple[str, ...],
    what: str,
    say: Say,
) -> Iterator[Figure]:
    """Tweets that follow the sun, with each selector in turn; Phase II alone, which they are."""
    changes = max(setting.changes // 8, 100)
    total = _FIRST + setting.periods * changes
    tweets = ps2stream_tweets("us", "Q1", mu, total, setting.seed)
    stream = beginning(tweets)
    for n in range(setting.periods):
        tweets.posting = by_hour(tweets.corpus, HOURS * n)
        stream.steps.append(tweets.step(changes))
    course = course_of(setting, stream, constants)
    ways = tuple(Way(name, name) for name in selectors)
    for way, periods, checked in through(setting, course, ways, f"{what}, {mu:,} queries", say):
        yield {
            "figure": "12, 14, 15",
            "selector": way.name,
            "queries": mu,
            "periods": len(periods),
            **migrations(periods),
            "later_than": {f"{ms:g} ms": round(late(periods, ms / 1e3), 6) for ms in LATE_MS},
            "balance": _mean([p.balance for p in periods]),
            **rates(periods, setting.dispatchers, PERIOD_S),
            **checked,
        }


def migrations(periods: list[Period]) -> Figure:
    """How many there were, and the mean of what each moved and took.

    The time of one is that of whoever is busy longest with deciding, looking for what leaves,
    writing, reading, inserting and dropping.
    """
    moves = [p for p in periods if p.moved is not None]
    moved = [p.moved for p in moves if p.moved is not None]
    return {
        "migrations": len(moves),
        "cost_mb": _mean([m.bytes / 1e6 for m in moved]),
        "moved_queries": _mean([float(m.copies) for m in moved]),
        "select_ms": _mean([1e3 * p.select_seconds for p in moves]),
        "migration_ms": _mean([1e3 * float(p.busy.max()) for p in moves]),
        "looking_ms": _mean([1e3 * p.looking for p in moves]),
    }


def late(periods: list[Period], limit: float) -> float:
    """The share of tuples that wait longer than `limit` seconds because of migrations.

    A worker that is busy for B seconds has a queue then. With utilisation u it is worked off after
    B / (1 - u), and who came in that time waited from B down to nothing: longer than x those of the
    first (B - x) / (1 - u) seconds. A period lasts ten seconds, as in the paper.
    """
    shares = []
    for p in periods:
        utilisation = SPEED * p.workers / max(float(p.workers.max()), 1e-12)
        window = np.maximum(p.busy - limit, 0.0) / (1.0 - utilisation)
        shares.append(float((p.share * np.minimum(window / PERIOD_S, 1.0)).sum()))
    return float(np.mean(shares))


def rates(periods: list[Period], dispatchers: int, lasting: float = 0.0) -> Figure:
    """Throughput without and with the time of migrations, and how even workers were.

    `lasting`: seconds of a period in which one migration falls; 0: the period's own.
    """
    seconds = np.array([p.seconds(dispatchers) for p in periods])
    busy = np.array([float(p.busy.max()) for p in periods])
    tuples = sum(p.tuples for p in periods)
    rate = tuples / seconds.sum()
    if lasting:
        with_migrations = rate * (1.0 - np.minimum(busy / lasting, 1.0).mean())
    else:
        slowest = [max(float((p.workers + p.busy).max()), s) for p, s in zip(periods, seconds)]
        with_migrations = tuples / sum(slowest)
    counted = sum(float(p.loads.max()) for p in periods)
    return {
        "tuples_per_second": round(rate),
        "tuples_per_second_with_migrations": round(with_migrations),
        "tuples_per_counted_second": round(1e6 * tuples / max(counted, 1e-9)),
        "load_slowest_to_mean": _mean([p.uneven for p in periods]),
        "seconds_slowest_to_mean": _mean(
            [float(p.workers.max() / p.workers.mean()) for p in periods]
        ),
        "total_load": _mean([float(p.loads.sum()) for p in periods]),
        "query_copies": _mean([p.copies for p in periods]),
    }


def _mean(values: list[float]) -> float | None:
    return float(f"{np.mean(values):.4g}") if values else None


# -- figure 16 ---------------------------------------------------------------------------------


def switching(setting: Setting, say: Say) -> Iterator[Figure]:
    """Q3 queries whose kind changes region by region, with and without adjustments."""
    mu = setting.mu("Q3") // 2
    generations = max(setting.periods // 3, 2) if setting.passes > 2 else 2
    constants = measured(setting, "Q3", mu)
    yield told_constants(setting, "STS-US-Q3, figure 16", mu, constants)
    course = course_of(setting, switched(setting, mu, generations), constants)
    ways = (
        Way("not adjusted", None),
        Way(READ, "GR", True, rounds=setting.workers),
        Way(STORED, "GR", True, stored=True, rounds=setting.workers),
    )
    for way, periods, checked in through(setting, course, ways, f"16, {mu:,} queries", say):
        kinds = [d.kind for p in periods for d in p.decisions]
        yield {
            "figure": "16",
            "adjusted": way.name,
            "queries": mu,
            "generations": generations,
            **rates(periods, setting.dispatchers),
            "by_period": [round(p.tuples / p.seconds(setting.dispatchers)) for p in periods],
            "uneven_by_period": [round(p.uneven, 3) for p in periods],
            "copies_by_period": [round(p.copies, 3) for p in periods],
            **migrations(periods),
            "decisions": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
            "cells": sum(len(d.cells) for p in periods for d in p.decisions if d.kind == MIGRATE),
            **checked,
        }


def switched(setting: Setting, mu: int, generations: int) -> Stream:
    """The stream of figure 16."""
    changes = max(2 * mu // PARTS, 1)  # 2 μ updates replace all queries
    tweets = ps2stream_tweets("us", "Q3", mu, _FIRST + generations * PARTS * changes, setting.seed)
    switch = q3_switching(tweets, setting.seed, SWITCHED)
    stream = beginning(tweets)
    for _ in range(generations):
        switch()
        stream.steps += [tweets.step(changes) for _ in range(PARTS)]
    return stream
