"""Throughput of standing range queries by router: figures 7(b), 11, 13(b), and more workers.

`common.cluster_run` lets a stream through each layout: what is reported must be what the scan
reports, and the same for all. Posts and queries of a point come from one seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from nearcast.workload.tables import controls
from nearcast_bench.common.cluster import ENGINE, Step, Stream
from nearcast_bench.common.cluster_run import Layout, Oracle, agree, measure_all
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.sstd.asking import HOUR_MS, SPAN_HOURS, Asks, asks_from
from nearcast_bench.sstd.deals import PLANNED, SSTD, TEXT, standing_of
from nearcast_bench.sstd.setting import Setting
from nearcast_bench.sstd.snapshot import planning
from nearcast_bench.sstd.source import DATA, Posts, Source, source_of

AREAS = (1e-6, 1e-4, 1e-2)
KEYWORDS = (1, 2, 3)
MULTIPLES = (0.5, 1, 2, 4)  # of the standing queries, figure 13(b)
STEPS = 3  # the first one is not timed
SYSTEMS = tuple(name for name in PLANNED if name != TEXT)


def step_of(posts: Posts, first: int) -> Step:
    """Posts of a stream; times count objects."""
    times = np.arange(first + 1, first + 1 + len(posts.x))
    return Step(controls(0), np.empty(0, np.int32), posts.table(first, times))


def stream_of(setting: Setting, source: Source, asks: Asks, past: Posts) -> Stream:
    """Standing queries made from posts that come, and the steps."""
    n = setting.step
    whole = source.posts(0, STEPS * n)
    steps = [step_of(whole.some(np.arange(i * n, (i + 1) * n)), i * n) for i in range(STEPS)]
    return Stream(standing_of(asks).controls, steps, past.sample())


def queried(setting: Setting, source: Source, seed: int, count: int = 0) -> Asks:
    """So many queries at places of the posts of the stream."""
    return asks_from(source, STEPS * setting.step, count or setting.queries,
                     SPAN_HOURS * HOUR_MS, seed + 1)  # fmt: skip


def run_continuous(setting: Setting, say: Say) -> Iterator[Figure]:
    """All figures of standing range queries, seed by seed."""
    for n in range(setting.seeds):
        seed = setting.seed + n
        source = source_of(setting.data, seed)
        usual = queried(setting, source, seed)
        if setting.has("7"):
            for data in DATA:
                other = source_of(data, seed)
                some = queried(setting, other, seed)
                point: Figure = {"figure": "7(b)", "data": data}
                yield from _point(setting, other, some, seed, point, (SSTD,), say)
        if setting.has("11"):
            for area in AREAS:
                point = {"figure": "11(a)", "area": area}
                yield from _point(setting, source, usual.but(area=area), seed, point, PLANNED, say)
            for k in KEYWORDS:
                point = {"figure": "11(b)", "keywords": k}
                yield from _point(setting, source, usual.but(keywords=k), seed, point, SYSTEMS, say)
        if setting.has("13"):
            for multiple in MULTIPLES:
                some = queried(setting, source, seed, max(int(multiple * setting.queries), 1))
                yield from _point(setting, source, some, seed, {"figure": "13(b)"}, SYSTEMS, say)
        if setting.has("workers"):
            for workers in setting.scaling:
                more = replace(setting, workers=workers)
                point = {"figure": "workers"}
                yield from _point(more, source, usual, seed, point, SYSTEMS, say)


def _point(
    setting: Setting,
    source: Source,
    asks: Asks,
    seed: int,
    point: Figure,
    routers: Sequence[str],
    say: Say,
) -> Iterator[Figure]:
    """One workload through the layouts of routers, in turn."""
    say(f"{', '.join(f'{k} {v}' for k, v in point.items())}, {len(asks):,} queries, seed {seed} …")
    past, _ = planning(setting, source, seed)
    stream = stream_of(setting, source, asks, past)
    m = setting.workers
    layouts = [Layout(r, setting.index, m, max(m // 2, 1), ENGINE) for r in routers]
    found = measure_all(layouts, stream, stream.survey(), Oracle(stream))
    agree(found)
    for got in found:
        yield {"data": source.name, "seed": seed} | point | got
