"""Continuous kNN by parts: figure 12(a), and how many messages each way of merging takes.

Queries are at all workers, each post at the one that SSTD names. By `radii` the merger
sends workers radii, after rounds of so many posts; by `own` it sends none, which is what a
micro-batch can do: each worker sends what enters the k nearest of its part. All ways must report
the same changes, and results equal to a plain scan.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from nearcast.model.errors import NearcastError
from nearcast.model.space import GEOGRAPHIC_CODE, Space, distance
from nearcast.objects.base import Centres, Queries
from nearcast.routing.sstd.nearest_merge import OWN, RADII, Merger, Part
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.sstd.asking import HOUR_MS, KEYWORDS, SPAN_HOURS, Asks, asks_from
from nearcast_bench.sstd.deals import SSTD, Deal, deal_of, standing_of
from nearcast_bench.sstd.setting import Setting
from nearcast_bench.sstd.snapshot import planning
from nearcast_bench.sstd.source import Posts, source_of

ROUNDS = (10, 100, 1_000, 10_000)  # posts until the merger's radii reach the workers
CHECKED = 20  # queries whose results are compared with a scan


def run_by_parts(setting: Setting, say: Say) -> Iterator[Figure]:
    """Both ways, seed by seed."""
    if not setting.has("12"):
        return
    for n in range(setting.seeds):
        seed = setting.seed + n
        source = source_of(setting.data, seed)
        past, planned_by = planning(setting, source, seed)
        deal = deal_of(SSTD, setting.workers, past, standing_of(planned_by).survey)
        count = 5 * setting.step
        posts = source.posts(0, count)
        made = asks_from(source, count, setting.queries, SPAN_HOURS * HOUR_MS, seed + 2)
        for keywords in KEYWORDS:
            asks = made.but(keywords=keywords)
            ways = [(OWN, count // 5), *((RADII, r) for r in ROUNDS if r < count)]
            reported = set()
            for way, posts_a_round in ways:
                say(f"figure 12(a): {keywords} keywords, {way}, rounds of {posts_a_round:,} …")
                figure, said = merged(deal, posts, asks, way, posts_a_round)
                reported.add(said)
                yield {
                    "figure": "12(a)", "data": setting.data, "seed": seed, "keywords": keywords,
                    "queries": len(asks), "posts": count, "workers": setting.workers,
                    "k": asks.k, **figure,
                }  # fmt: skip
            if len(reported) > 1:
                raise NearcastError("bench: ways of merging kNN disagree on the changes")


def columns_of(asks: Asks) -> tuple[Queries, Centres]:
    """All of them as one batch."""
    n, k = len(asks), asks.keywords
    return Queries(
        np.full(n, -1), np.full(n, 2**60), np.full(n, 2**60), np.arange(n + 1) * k,
        np.ascontiguousarray(asks.words[:, :k]).ravel(), np.zeros(n + 1, np.int64),
        np.empty(0, np.uint64), np.ones(n, bool),
    ), Centres(asks.x, asks.y, np.full(n, asks.k))  # fmt: skip


def merged(deal: Deal, posts: Posts, asks: Asks, way: str, each: int) -> tuple[Figure, int]:
    """The stream through workers and merger: (figures, a checksum of all changes)."""
    queries, centres = columns_of(asks)
    parts = [Part(Space.GEOGRAPHIC, queries, centres, way) for _ in range(deal.workers)]
    merger = Merger(centres.k)
    at = deal.stored_at(posts, 0)
    offered = sent = looked = changed = checksum = 0
    seconds = np.zeros(deal.workers)
    merging = 0.0
    for first in range(0, len(posts.x), each):
        stop = min(first + each, len(posts.x))
        offers = []
        for worker, part in enumerate(parts):
            rows = first + np.flatnonzero(at[first:stop] == worker)
            objects = posts.some(rows).objects(first, rows)._replace(rank=rows)
            started = time.thread_time()
            offers.append(part.offers(objects))
            seconds[worker] += time.thread_time() - started
        started = time.thread_time()
        changes, back = merger.take(offers)
        merging += time.thread_time() - started
        offered += sum(len(o.query) for o in offers)
        looked += sum(o.looked for o in offers)
        changed += len(changes.query)
        mixed = changes.query * 1_000_003 + changes.entered * 10_007 + changes.left
        checksum = (checksum + int((mixed % (1 << 40)).sum())) % 2**63
        if way == RADII:
            for part, (who, radius) in zip(parts, back, strict=True):
                part.within(who, radius)
                sent += len(who)
    _check(posts, asks, merger)
    total = float(seconds.max()) + merging
    return {
        "way": way, "posts_a_round": each, "offers": offered, "radii": sent, "changes": changed,
        "messages_per_change": round((offered + sent) / max(changed, 1), 3),
        "looked_per_post": round(looked / len(posts.x), 1),
        "slowest_worker_seconds": round(float(seconds.max()), 4),
        "merger_seconds": round(merging, 4),
        "posts_per_second": round(len(posts.x) / max(total, 1e-9)),
        "checksum": f"{checksum:016x}",
    }, checksum  # fmt: skip


def _check(posts: Posts, asks: Asks, merger: Merger) -> None:
    """Raise unless the first results are those of a plain scan."""
    owner = np.repeat(np.arange(len(posts.x)), np.diff(posts.offsets))
    for i in range(min(CHECKED, len(asks))):
        held = np.ones(len(posts.x), bool)
        for word in asks.wanted(i):
            has = np.zeros(len(posts.x), bool)
            has[owner[posts.words == word]] = True
            held &= has
        x, y = float(asks.x[i]), float(asks.y[i])
        near = sorted(
            (distance(GEOGRAPHIC_CODE, x, y, float(posts.x[r]), float(posts.y[r])), r)
            for r in np.flatnonzero(held).tolist()
        )
        if merger.result(i) != near[: asks.k]:
            raise NearcastError("bench: merged kNN: not what the scan finds")
