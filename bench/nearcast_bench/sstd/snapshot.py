"""Asks over the workers of each router: figures 7(a), 8, 9, 10, 13(a), and the stores side by side.

Every worker has a store of the posts that the router sends it. An ask goes to the workers that the
router names, each of which is timed by itself: its latency is that of the slowest of them (of both
phases, for knn), its work that of all. All routers must give the same answers, and the first asks
those of a plain scan.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nearcast.index.arena import Memory
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.objects import STORES, ObjectStore
from nearcast.objects.base import Centres, Found, Objects, Queries, Regions, Slicing, WordCounts
from nearcast.routing.sstd.nearest_by_parts import Answered, in_one_round, in_two_phases
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.sstd.asking import (
    AREA,
    AREAS,
    HOUR_MS,
    KEYWORDS,
    KS,
    NEAREST,
    PERIODS,
    RANGE,
    SEARCHES,
    SPAN_HOURS,
    TERMS,
    Answer,
    Asks,
    asks_from,
    batches,
    timed_asks,
)
from nearcast_bench.sstd.deals import ALL, SSTD, TEXT, ByTree, Deal, Engine, deal_of, standing_of
from nearcast_bench.sstd.scanning import Rows, Scanned
from nearcast_bench.sstd.setting import Setting
from nearcast_bench.sstd.source import DATA, Longs, Posts, Source, Words, source_of

_ALIKE = 3  # asks of each point whose answers all stores must share
CHECKED = 2  # asks of each point that the scan answers, too
PLANNED_BY = 20_000  # posts and queries that a plan is made from, at most
DELTA_HOURS = 72  # Δ of the paper
MULTIPLES = (1, 2, 3, 4)  # of the posts, figure 13(a)
ONE_ROUND, TWO_PHASES = "one round", "two phases"


class Stored(NamedTuple):
    """Posts at the workers of a router."""

    deal: Deal
    stores: list[ObjectStore]


class Visit(NamedTuple):
    """One ask."""

    latency: float  # seconds
    work: float
    visited: int  # workers
    examined: int
    examined_most: int  # by one worker
    answer: Rows


def slicing_of(hours: float) -> Slicing:
    """Slices of an interval each, however few posts they have."""
    return Slicing(delta_ms=round(hours * HOUR_MS), least=1)


def posts_at(deal: Deal, source: Source, count: int, store: str, slicing: Slicing) -> Stored:
    """Load the stores of all workers."""
    stores = [STORES[store](Space.GEOGRAPHIC, Memory(), slicing) for _ in range(deal.workers)]
    first = 0
    for posts, times in batches(source, count, SPAN_HOURS):
        at = deal.stored_at(posts, first)
        for worker, each in enumerate(stores):
            rows = np.flatnonzero(at == worker)
            objects = posts.some(rows).objects(first, times[rows])
            each.add(objects._replace(rank=first + rows))
            each.seal(int(times[-1]))
        first += len(times)
    for each in stores:
        each.seal(2 * SPAN_HOURS * HOUR_MS)
    return Stored(deal, stores)


def planning(setting: Setting, source: Source, seed: int) -> tuple[Posts, Asks]:
    """Posts of the past and queries of the usual size, for plans."""
    n = min(PLANNED_BY, max(setting.objects // 10, 500))
    past = Source(source.name, source.seed + 1000, source.path).posts(0, n)
    asks = asks_from(source, setting.objects, min(setting.queries, PLANNED_BY), _NOW, seed + 1)
    return past, asks


_NOW = SPAN_HOURS * HOUR_MS


def visit(stored: Stored, kind: str, asks: Asks, i: int, way: str = TWO_PHASES) -> Visit:
    """One ask at all workers that it has to visit."""
    if kind == NEAREST:
        return _nearest(stored, asks, i, way)
    seconds: list[float] = []
    answers: list[Answer] = []
    for worker in stored.deal.visited(asks.box(i).reshape(1, 4), asks):
        # Counts of words add up only if each worker gives all of its words.
        own = asks.but(k=0) if kind == TERMS else asks
        started = time.thread_time()
        answers.append(SEARCHES[kind](stored.stores[worker], own, i))
        seconds.append(time.thread_time() - started)
    started = time.thread_time()
    rows = merged(answers, asks.k)
    merging = time.thread_time() - started
    examined = [a.examined for a in answers]
    return Visit(max(seconds, default=0.0) + merging, sum(seconds) + merging, len(seconds),
                 sum(examined), max(examined, default=0), rows)  # fmt: skip


def merged(answers: list[Answer], k: int) -> Rows:
    """The answer of all workers: by rank, which is by time here; or the k most frequent words."""
    if not answers:
        return ()
    found = [a for a in answers if isinstance(a, Found)]
    if found:
        ranks = np.sort(np.concatenate([f.rank for f in found]))
        return tuple((r,) for r in ranks.tolist())
    counted = [a for a in answers if isinstance(a, WordCounts)]
    words, counts = (np.concatenate([getattr(c, f) for c in counted]) for f in ("words", "counts"))
    return most_held(words, counts, k)


def most_held(words: Words, counts: Longs, k: int) -> Rows:
    """The k most frequent words of parts, with ties of the k-th."""
    distinct, at = np.unique(words, return_inverse=True)
    sums = np.bincount(at, counts, len(distinct)).astype(np.int64)
    if len(sums) > k:
        kept = np.flatnonzero(sums >= np.partition(sums, -k)[-k])
        distinct, sums = distinct[kept], sums[kept]
    return tuple(sorted(zip((-sums).tolist(), distinct.tolist(), strict=True)))


class _Timed:
    """A store whose searches are timed, for the phases of knn."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.space = store.space
        self.seconds = 0.0

    def nearest(self, queries: Queries, centres: Centres) -> Found:
        started = time.thread_time()
        found = self._store.nearest(queries, centres)
        self.seconds += time.thread_time() - started
        return found

    def within(self, queries: Queries, regions: Regions, limit: Longs) -> Found:
        started = time.thread_time()
        found = self._store.within(queries, regions, limit)
        self.seconds += time.thread_time() - started
        return found

    def rows(self, handles: Longs) -> Objects:
        started = time.thread_time()
        found = self._store.rows(handles)
        self.seconds += time.thread_time() - started
        return found


def _nearest(stored: Stored, asks: Asks, i: int, way: str) -> Visit:
    queries, centres = asks.queries(i), asks.centre(i)
    deal, stores = stored.deal, [_Timed(s) for s in stored.stores]
    begin = deal.begins_at(queries, centres)
    if way == ONE_ROUND or begin < 0:
        got = in_one_round(stores, queries, centres, range(deal.workers))
        latency = max(s.seconds for s in stores)
    elif isinstance(deal, ByTree):
        got = in_two_phases(deal.nearest_leaf, deal.versions, stores, queries, centres)
        latency = stores[begin].seconds + max(
            (stores[w].seconds for w in got.visited[1:]), default=0
        )
    else:  # by another table: the second phase has no circle, each worker gives its k nearest
        alone = in_one_round(stores, queries, centres, [begin])
        radius = alone.near[-1].distance if len(alone.near) == asks.k else np.inf
        others = [w for w in deal.visited_around(asks, i, radius) if w != begin]
        more = in_one_round(stores, queries, centres, others)
        near = sorted([*alone.near, *more.near])[: asks.k]
        got = Answered(near, radius, [begin, *others], [*alone.examined, *more.examined])
        latency = stores[begin].seconds + max((stores[w].seconds for w in others), default=0)
    work = sum(s.seconds for s in stores)
    rows = tuple((near.rank,) for near in got.near)
    return Visit(latency, work, len(got.visited), sum(got.examined), max(got.examined), rows)


def measured(stored: Stored, kind: str, asks: Asks, setting: Setting, way: str = TWO_PHASES
             ) -> tuple[Figure, list[Rows]]:  # fmt: skip
    """All asks, `passes` times in turn: (figures, answers)."""
    visits = [[visit(stored, kind, asks, i, way) for i in range(len(asks))]
              for _ in range(setting.passes)]  # fmt: skip
    latency = np.array([[v.latency for v in one] for one in visits]).min(axis=0) * 1e3
    work = np.array([[v.work for v in one] for one in visits]).min(axis=0) * 1e3
    first = visits[0]
    return {
        "latency_ms": round(float(latency.mean()), 3),
        "latency_p99_ms": round(float(np.percentile(latency, 99)), 3),
        "work_ms": round(float(work.mean()), 3),
        "workers_visited": round(float(np.mean([v.visited for v in first])), 3),
        "examined": round(float(np.mean([v.examined for v in first])), 1),
        "examined_by_one": round(float(np.mean([v.examined_most for v in first])), 1),
        "found": round(float(np.mean([len(v.answer) for v in first])), 1),
    }, [v.answer for v in first]


Point = tuple[str, str, Asks, Figure]  # figure, kind, asks, parameters


def points_of(setting: Setting, asks: Asks) -> list[Point]:
    """Figures 8, 9 and 10: one parameter varies, the others are the paper's defaults."""
    out: list[Point] = []

    def add(figure: str, kind: str, **values: float) -> None:
        if setting.has(figure.split("(", maxsplit=1)[0]):
            out.append((figure, kind, asks.but(**values), dict(values)))

    for area in AREAS:
        add("8(a)", RANGE, area=area)
    for n in KEYWORDS:
        add("8(b)", RANGE, keywords=n)
    for hours in PERIODS:
        add("8(time)", RANGE, hours=hours)
    for k in KS:
        add("9(a)", NEAREST, k=k)
    for n in KEYWORDS:
        add("9(b)", NEAREST, keywords=n)
    for area in AREAS:
        add("10(a)", TERMS, area=area)
    for k in KS:
        add("10(b)", TERMS, k=k)
    return out


def run_snapshot(setting: Setting, say: Say) -> Iterator[Figure]:
    """All figures of asks, seed by seed."""
    for n in range(setting.seeds):
        seed = setting.seed + n
        source = source_of(setting.data, seed)
        if {"8", "9", "10"} & set(setting.figures):
            yield from _systems(setting, source, seed, say)
        if setting.has("7"):
            yield from _data_sets(setting, seed, say)
        if setting.has("13"):
            yield from _objects(setting, source, seed, say)
        if setting.has("stores"):
            yield from _stores(setting, source, seed, say)


def _systems(setting: Setting, source: Source, seed: int, say: Say) -> Iterator[Figure]:
    past, queried = planning(setting, source, seed)
    asks = asks_from(source, setting.objects, setting.asks, _NOW, seed)
    points = points_of(setting, asks)
    survey = standing_of(queried).survey
    answers: dict[int, list[Rows]] = {}
    right = _scan_of(source, setting, points)
    for name in ALL:
        say(f"figures 8 to 10: {name}, seed {seed} …")
        deal = deal_of(name, setting.workers, past, survey)
        stored = posts_at(deal, source, setting.objects, setting.store, slicing_of(DELTA_HOURS))
        for n, (figure, kind, one, values) in enumerate(points):
            usual = _usual(figure, setting, seed, deal) | {"kind": kind} | values
            ways = (TWO_PHASES, ONE_ROUND) if kind == NEAREST and name == SSTD else (TWO_PHASES,)
            for way in ways:
                got, said = measured(stored, kind, one, setting, way)
                if answers.setdefault(n, said) != said or said[:CHECKED] != right[n]:
                    raise NearcastError(f"bench: {name}, {kind}: not what the others or scan find")
                extra = {"way": way} if kind == NEAREST else {}
                yield usual | extra | got


def _usual(figure: str, setting: Setting, seed: int, deal: Deal) -> Figure:
    return {
        "figure": figure, "router": deal.name, "data": setting.data, "objects": setting.objects,
        "workers": setting.workers, "store": setting.store, "seed": seed,
    }  # fmt: skip


def _scan_of(source: Source, setting: Setting, points: Sequence[Point]) -> list[list[Rows]]:
    """What a plain scan finds for the first asks of each point."""
    by_kind: dict[str, list[Asks]] = {}
    place = []
    for _, kind, asks, _ in points:
        place.append((kind, len(by_kind.setdefault(kind, []))))
        by_kind[kind].append(asks)
    scanned = Scanned(by_kind, CHECKED)
    first = 0
    for posts, times in batches(source, setting.objects, SPAN_HOURS):
        scanned.look_at(posts, times, first)
        first += len(times)
    return [
        [scanned.answer(kind, n, i) for i in range(min(CHECKED, setting.asks))] for kind, n in place
    ]


def _data_sets(setting: Setting, seed: int, say: Say) -> Iterator[Figure]:
    """Figure 7(a): SRQ by the area, on posts as they are, spread evenly, and in one heap."""
    for data in DATA:
        say(f"figure 7(a): {data}, seed {seed} …")
        source = source_of(data, seed)
        past, queried = planning(setting, source, seed)
        deal = deal_of(SSTD, setting.workers, past, standing_of(queried).survey)
        stored = posts_at(deal, source, setting.objects, setting.store, slicing_of(DELTA_HOURS))
        asks = asks_from(source, setting.objects, setting.asks, _NOW, seed)
        for area in AREAS:
            got, _ = measured(stored, RANGE, asks.but(area=area), setting)
            yield _usual("7(a)", setting, seed, deal) | {"data": data, "area": area} | got


def _objects(setting: Setting, source: Source, seed: int, say: Say) -> Iterator[Figure]:
    """Figure 13(a): SRQ with more and more posts."""
    past, queried = planning(setting, source, seed)
    survey = standing_of(queried).survey
    for multiple in MULTIPLES:
        count = multiple * setting.objects // 2
        asks = asks_from(source, count, setting.asks, _NOW, seed)
        answers = None
        for name in [d for d in ALL if d != TEXT]:
            say(f"figure 13(a): {name}, {count:,} posts, seed {seed} …")
            deal = deal_of(name, setting.workers, past, survey)
            stored = posts_at(deal, source, count, setting.store, slicing_of(DELTA_HOURS))
            got, said = measured(stored, RANGE, asks, setting)
            answers = said if answers is None else answers
            if answers != said:
                raise NearcastError(f"bench: {name}: other answers than the other routers")
            yield _usual("13(a)", setting, seed, deal) | {"objects": count} | got


def _stores(setting: Setting, source: Source, seed: int, say: Say) -> Iterator[Figure]:
    """One worker, the stores in turn; the scan on a twentieth of the posts, as the check."""
    few = max(setting.objects // 20, 500)
    for count, names in ((few, tuple(STORES)), (setting.objects, ("curve", "rtree"))):
        asks = asks_from(source, count, setting.asks, _NOW, seed)
        settings: list[tuple[str, Figure]] = [
            *((kind, {"area": a}) for kind in (RANGE, TERMS) for a in (1e-6, AREA, 1e-2)),
            *((NEAREST, {"k": k}) for k in (10, 40)),
            *((RANGE, {"hours": h}) for h in PERIODS),
            *((RANGE, {"keywords": n}) for n in KEYWORDS),
        ]
        sums: dict[int, int] = {}
        for name in names:
            say(f"stores: {name}, {count:,} posts, seed {seed} …")
            started = time.thread_time()
            [store] = posts_at(Engine(1), source, count, name, slicing_of(DELTA_HOURS)).stores
            seconds = time.thread_time() - started
            for n, (kind, values) in enumerate(settings):
                own = asks.but(**values)
                alike = timed_asks(store, kind, own.first(_ALIKE), 1).checksum
                if sums.setdefault(n, alike) != alike:
                    raise NearcastError(f"bench: {name}, {kind}: not what the other stores find")
                scan = name == "scan"
                some = own.first(_ALIKE) if scan else own
                took = timed_asks(store, kind, some, 1 if scan else setting.passes)
                yield {
                    "figure": "stores", "store": name, "objects": count, "seed": seed,
                    "data": setting.data, "kind": kind, **values, **took.figures(),
                    "bytes_per_object": round(store.bytes / count, 1),
                    "load_seconds": round(seconds, 2),
                }  # fmt: skip
