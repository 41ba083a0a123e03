"""Section 7.7: θ, the leaves of the tree, and Δ, the interval of a slice."""

from __future__ import annotations

import time
from collections.abc import Iterator

from nearcast_bench.common.cluster import ENGINE
from nearcast_bench.common.cluster_run import Layout, Oracle, agree, measure_all
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.sstd.asking import (
    HOUR_MS,
    NEAREST,
    PERIODS,
    RANGE,
    SPAN_HOURS,
    TERMS,
    asks_from,
    timed_asks,
)
from nearcast_bench.sstd.continuous import queried, stream_of
from nearcast_bench.sstd.deals import SSTD, Engine, deal_of, standing_of
from nearcast_bench.sstd.setting import Setting
from nearcast_bench.sstd.snapshot import (
    DELTA_HOURS,
    measured,
    planning,
    posts_at,
    slicing_of,
)
from nearcast_bench.sstd.source import Source, source_of

THETAS = (32, 64, 128, 256)
DELTAS = (24, 48, 72, 120, 168)  # hours: a day to a week


def run_tuning(setting: Setting, say: Say) -> Iterator[Figure]:
    """Both, seed by seed."""
    if not setting.has("tuning"):
        return
    for n in range(setting.seeds):
        seed = setting.seed + n
        source = source_of(setting.data, seed)
        yield from _theta(setting, source, seed, say)
        yield from _delta(setting, source, seed, say)


def _theta(setting: Setting, source: Source, seed: int, say: Say) -> Iterator[Figure]:
    past, planned_by = planning(setting, source, seed)
    survey = standing_of(planned_by).survey
    asks = asks_from(source, setting.objects, setting.asks, SPAN_HOURS * HOUR_MS, seed)
    stream = stream_of(setting, source, queried(setting, source, seed), past)
    m = setting.workers
    layouts = [
        Layout(SSTD, setting.index, m, max(m // 2, 1), ENGINE, (("theta", float(theta)),))
        for theta in THETAS
    ]
    say(f"θ: throughput, seed {seed} …")
    found = measure_all(layouts, stream, stream.survey(), Oracle(stream))
    agree(found)
    for theta, got in zip(THETAS, found, strict=True):
        say(f"θ = {theta}: asks, seed {seed} …")
        started = time.thread_time()
        deal = deal_of(SSTD, m, past, survey, theta)
        seconds = time.thread_time() - started
        stored = posts_at(deal, source, setting.objects, setting.store, slicing_of(DELTA_HOURS))
        figure: Figure = {"figure": "7.7 theta", "theta": theta, "seed": seed, "data": source.name,
                          "plan_seconds": round(seconds, 2)}  # fmt: skip
        for kind in (RANGE, NEAREST, TERMS):
            asked, _ = measured(stored, kind, asks, setting)
            figure |= {f"{kind}_{name}": v for name, v in asked.items()}
        for name in ("tuples_per_second", "by_pass", "query_copies", "read_per_object",
                     "read_slowest_to_mean", "slowest_to_mean", "checksum"):  # fmt: skip
            figure[name] = got[name]
        yield figure


def _delta(setting: Setting, source: Source, seed: int, say: Say) -> Iterator[Figure]:
    """One store with slices of another length, and asks of the usual period and of all of it."""
    asks = asks_from(source, setting.objects, setting.asks, SPAN_HOURS * HOUR_MS, seed)
    sums: dict[tuple[str, int], int] = {}
    for hours in DELTAS:
        say(f"Δ = {hours} hours, seed {seed} …")
        started = time.thread_time()
        stored = posts_at(Engine(1), source, setting.objects, setting.store, slicing_of(hours))
        seconds = time.thread_time() - started
        [store] = stored.stores
        for kind in (RANGE, NEAREST, TERMS):
            for period in PERIODS:
                took = timed_asks(store, kind, asks.but(hours=period), setting.passes)
                if sums.setdefault((kind, period), took.checksum) != took.checksum:
                    raise AssertionError(f"Δ = {hours}: other answers than with another Δ")
                yield {
                    "figure": "7.7 delta", "delta_hours": hours, "seed": seed,
                    "data": source.name, "objects": setting.objects, "kind": kind,
                    "hours": period, "slices": len(store.slices()),
                    "bytes_per_object": round(store.bytes / setting.objects, 1),
                    "load_seconds": round(seconds, 2), **took.figures(),
                }  # fmt: skip
