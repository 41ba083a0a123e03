"""Adjustment (SSTD 7.6, figures 14 and 15): PM, FM, FG, alone and in turn, after an imbalance.

Queries stand, posts are stored; then a region gets many more posts, or many more standing queries,
and posts there come more often. Each plan adjusts as the engine does, on what workers counted:
queries move between the indexes, posts stay where they are, and asks go by the versions of the
tree. After it, the same stream passes and the same asks are posed. Every plan must report the same
matches and the same answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.index.arena import Memory
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.objects import STORES, ObjectStore
from nearcast.routing import ROUTERS
from nearcast.routing.balance import Counts
from nearcast.routing.base import Seen
from nearcast.routing.sstd.adjustment import Settings
from nearcast.routing.sstd.draft import flattened
from nearcast.routing.sstd.gather import draft_from, gather
from nearcast.routing.sstd.in_turn import FG, FM, PM, adjust
from nearcast.routing.sstd.object_routing import lists_of, route_objects
from nearcast.routing.sstd.qt_router import QtRouter
from nearcast.routing.sstd.qt_tree import QtTree, pack
from nearcast.routing.sstd.versions import Versions
from nearcast_bench.common.cluster import ENGINE, Cluster, Done, Step, Stream, sample_of
from nearcast_bench.common.cluster_run import Oracle
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.moving import move_by
from nearcast_bench.sstd.asking import HOUR_MS, Asks, asks_from, within
from nearcast_bench.sstd.continuous import step_of
from nearcast_bench.sstd.deals import SSTD, standing_of
from nearcast_bench.sstd.scanning import Rows
from nearcast_bench.sstd.setting import Setting
from nearcast_bench.sstd.snapshot import slicing_of
from nearcast_bench.sstd.source import Longs, Posts, Reals, Source, joined, source_of

NONE = "no adjustment"
PLANS: dict[str, tuple[str, ...]] = {
    NONE: (), "PM": (PM,), "FM": (FM,), "PM+FM": (PM, FM), "FG": (FG,),
    "PM+FM+FG": (PM, FM, FG),
}  # fmt: skip
LAMBDA, EPSILON = 6.0, 0.5  # as in the paper
ROUNDS = 64
INSERTED = (1 / 3, 1.0, 5 / 3)  # posts: 10, 30, 50 million of 30; of queries as many times
SIDE = 0.1  # of the region that gets more, as a share of the space's
_HOURS = (24, 48, 72)  # before the insertions; by the adjustment; after it


class Case(NamedTuple):
    """An imbalance."""

    figure: str
    inserted: float
    router: QtRouter
    standing: Stream  # all standing queries; its steps: hot posts before and after
    stored: list[tuple[Posts, Longs]]  # posts of the past with their times
    asks: Asks


@dataclass(slots=True)
class Outcome:
    """What one plan came to."""

    figure: Figure
    matches: tuple[int, int]
    answers: list[Rows]


def run_adjusting(setting: Setting, say: Say) -> Iterator[Figure]:
    """Figures 14 and 15, seed by seed."""
    for n in range(setting.seeds):
        seed = setting.seed + n
        source = source_of(setting.data, seed)
        for figure in ("14", "15"):
            if not setting.has(figure):
                continue
            for times in INSERTED:
                say(f"figure {figure}: {times:.2f} times inserted, seed {seed} …")
                yield from _case(setting, case_of(setting, source, seed, figure, times), seed)


def region_of(source: Source, seed: int) -> tuple[float, float, float, float]:
    """A region at a post chosen at random."""
    rng = np.random.default_rng([seed, 14])
    posts = source.posts(0, 1000)
    at = int(rng.integers(1000))
    west, south, east, north = source.bounds
    w, h = SIDE * (east - west) / 2, SIDE * (north - south) / 2
    return posts.x[at] - w, posts.y[at] - h, posts.x[at] + w, posts.y[at] + h


def moved_into(posts: Posts, box: tuple[float, float, float, float], source: Source) -> Posts:
    """The posts with the whole space shrunk into a region: clusters stay clusters."""
    west, south, east, north = source.bounds
    x = box[0] + (posts.x - west) / (east - west) * (box[2] - box[0])
    y = box[1] + (posts.y - south) / (north - south) * (box[3] - box[1])
    return posts._replace(x=x, y=y)


def case_of(setting: Setting, source: Source, seed: int, figure: str, times: float) -> Case:
    """Queries and posts before, and what is inserted."""
    n, q = setting.objects // 2, setting.queries
    box = region_of(source, seed)
    past = source.posts(0, n)
    more = max(int(times * (n if figure == "14" else q)), 1)
    usual = asks_from(source, n, q, _HOURS[2] * HOUR_MS, seed + 3)
    some = usual.first(min(q, 20_000))
    router = ROUTERS[SSTD](setting.workers)
    assert isinstance(router, QtRouter)
    router.bounds = source.bounds
    sample = past.some(np.arange(min(n, 20_000)))
    router = router.with_table(router.plan(sample.sample(), standing_of(some).survey, {}).data)
    inserted = source.posts(n // 100_000 + 1, more if figure == "14" else n // 3)
    hot = moved_into(inserted, box, source)
    crowd = usual
    if figure == "15":
        others = asks_from(source, n, more, usual.now, seed + 4)
        x, y = moved_into(Posts(others.x, others.y, np.zeros(1, np.int64), others.words[:0, 0]),
                          box, source)[:2]  # fmt: skip
        crowd = replace(usual, x=np.append(usual.x, x), y=np.append(usual.y, y),
                        words=np.concatenate([usual.words, others.words]))  # fmt: skip
    # The stream goes on as it has become: usual posts, and as many of the region as inserted.
    rng = np.random.default_rng([seed, 15])
    share = min(times, 2.0) / (1.0 + min(times, 2.0)) if figure == "14" else 1 / 4
    steps = []
    for i in range(3):
        fresh = source.posts(n // 100_000 + 40 + i, setting.step)
        there = rng.random(setting.step) < share
        mixed = moved_into(fresh, box, source)
        x, y = np.where(there, mixed.x, fresh.x), np.where(there, mixed.y, fresh.y)
        steps.append(step_of(fresh._replace(x=x, y=y), i * setting.step))
    standing = Stream(standing_of(crowd).controls, steps, sample.sample())
    asks = asks_from(source, n, setting.asks, usual.now, seed + 5)
    here = rng.random(len(asks)) < share
    x, y = moved_into(Posts(asks.x, asks.y, np.zeros(1, np.int64), asks.words[:0, 0]),
                      box, source)[:2]  # fmt: skip
    asks = replace(asks, x=np.where(here, x, asks.x), y=np.where(here, y, asks.y), area=1e-3)
    first = (np.arange(len(past.x)) * (_HOURS[0] * HOUR_MS / len(past.x))).astype(np.int64)
    extra = _HOURS[0] * HOUR_MS + np.arange(len(hot.x)) * ((_HOURS[1] - _HOURS[0]) * HOUR_MS
                                                           / len(hot.x))  # fmt: skip
    stored = [(past, first), (hot, extra.astype(np.int64))]
    return Case(figure, times, router, standing, stored, asks)


def _case(setting: Setting, case: Case, seed: int) -> Iterator[Figure]:
    oracle = Oracle(case.standing)
    done: dict[str, list[Outcome]] = {name: [] for name in PLANS}
    for n in range(max(setting.passes, 1)):
        for name in PLANS if n % 2 == 0 else reversed(PLANS):
            done[name].append(_outcome(setting, case, PLANS[name], oracle))
    first = done[NONE][0]
    for name, outcomes in done.items():
        best = outcomes[0].figure
        for other in outcomes:
            if other.matches != first.matches or other.answers != first.answers:
                raise NearcastError(f"bench: after {name}: other matches or answers than without")
        for key in ("adjust_ms", "moving_ms", "latency_ms"):
            best[key] = min(o.figure[key] for o in outcomes)
        best["tuples_per_second"] = max(o.figure["tuples_per_second"] for o in outcomes)
        best["by_pass"] = [o.figure["tuples_per_second"] for o in outcomes]
        yield {"figure": case.figure, "plan": name, "inserted": round(case.inserted, 3),
               "seed": seed, "data": setting.data, "workers": setting.workers,
               "queries": sum(c.num_rows for c in case.standing.standing), **best}  # fmt: skip


def _outcome(setting: Setting, case: Case, methods: Sequence[str], oracle: Oracle) -> Outcome:
    cluster = Cluster(case.router, setting.index, ENGINE)
    cluster.stand(case.standing.standing)
    before = cluster.run(case.standing.steps[0])
    old = case.router.tree
    assert old is not None
    counts = counts_of(before)
    loads = np.array([c.load for c in counts])
    figure: Figure = {
        "ratio_before": _ratio(loads), "method": "", "moved_queries": 0, "splits": 0, "merges": 0,
        "adjust_ms": 0.0, "moving_ms": 0.0,
    }  # fmt: skip
    tree = old
    if methods:
        started = time.thread_time()
        made = _adjusted(cluster, case, counts, before, methods)
        figure["adjust_ms"] = round(1e3 * (time.thread_time() - started), 2)
        if made is not None:
            tree, figure["method"], figure["splits"], figure["merges"] = made
            moved = move_by(cluster, pack(tree), 1)
            figure["moved_queries"] = moved.copies
            figure["moving_ms"] = round(1e3 * float((moved.moving + moved.looking).max()), 2)
    after = [cluster.run(step) for step in case.standing.steps[1:]]
    reported = [d.reported for d in (before, *after)]
    oracle.check(reported)
    work = np.array([[c.load for c in counts_of(d)] for d in after]).sum(axis=0)
    seconds = np.array([d.workers for d in after]).sum(axis=0)
    tuples = sum(s.tuples for s in case.standing.steps[1:])
    figure |= {
        "ratio_after": _ratio(work),
        "slowest_load_per_object": round(float(work.max()) / tuples, 1),
        "tuples_per_second": round(tuples / float(seconds.max())),
        **_asked(setting, case, old, tree),
    }  # fmt: skip
    answers = figure.pop("answers")
    matches = sum(len(r.objects) for r in reported), sum(r.checksum() for r in reported) % 2**64
    return Outcome(figure, matches, answers)


def counts_of(done: Done) -> list[Counts]:
    """What the engine's shards would report of a step."""
    found = np.bincount(done.routed[1], minlength=len(done.workers))
    return [
        Counts(int(found[w]), 0, work.lookups, work.scanned, work.examined)
        for w, work in enumerate(done.work)
    ]


def _ratio(loads: Reals) -> float:
    return round(float(loads.max() / max(loads.min(), 1e-9)), 2)


def _adjusted(
    cluster: Cluster, case: Case, counts: list[Counts], done: Done, methods: Sequence[str]
) -> tuple[QtTree, str, int, int] | None:
    """(the tree, what was done, splits, merges); None: nothing."""
    step = case.standing.steps[0]
    reported = []
    for worker, index in enumerate(cluster.workers):
        mine = sample_of(_rows(step, done, worker))
        held = index.living(1)
        reported.append(gather(case.router, worker, Seen(index, mine, held, held[:0], held[:0])))
    root, workloads = draft_from(case.router, reported, counts, case.router.given({}))
    settings = Settings(LAMBDA, EPSILON, ROUNDS)
    made = adjust(root, workloads, case.router.shards, settings, methods)
    if made is None:
        return None
    assert case.router.tree is not None
    tree = flattened(root, case.router.tree.bounds, workloads.j.lengths)
    return tree, made.kind, made.splits, made.merges


def _rows(step: Step, done: Done, worker: int) -> pa.RecordBatch:
    return step.objects.take(pa.array(done.routed[0][done.routed[1] == worker]))


def _asked(setting: Setting, case: Case, old: QtTree, tree: QtTree) -> Figure:
    """Asks over posts of before and after the adjustment, by the versions of the tree."""
    workers = setting.workers
    slicing = slicing_of(24)
    stores: list[ObjectStore] = [
        STORES[setting.store](Space.GEOGRAPHIC, Memory(), slicing) for _ in range(workers)
    ]
    change = _HOURS[1] * HOUR_MS
    fresh = joined([_posts_of(s) for s in case.standing.steps])
    late = (
        change
        + 1
        + np.arange(len(fresh.x)) * ((_HOURS[2] - _HOURS[1]) * HOUR_MS // (len(fresh.x) + 1))
    )
    first = 0
    for posts, times, by in (*((p, t, old) for p, t in case.stored), (fresh, late, tree)):
        at = by.shard[route_objects(by, lists_of(by), *posts)]
        for worker, store in enumerate(stores):
            rows = np.flatnonzero(at == worker)
            store.add(posts.some(rows).objects(first, times[rows])._replace(rank=first + rows))
        first += len(posts.x)
    for store in stores:
        store.seal(2 * _HOURS[2] * HOUR_MS)
    versions = Versions([-1, change + 1], [old, tree]) if tree is not old else Versions([-1], [old])
    answers: list[Rows] = []
    latency, visited, examined = [], 0, 0
    for i in range(len(case.asks)):
        begin = case.asks.now - round(case.asks.hours * HOUR_MS)
        slowest, ranks = 0.0, []
        for worker in versions.shards_for(case.asks.box(i).reshape(1, 4), begin + 1, case.asks.now):
            started = time.thread_time()
            found = within(stores[worker], case.asks, i)
            slowest = max(slowest, time.thread_time() - started)
            ranks += found.rank.tolist()
            visited += 1
            examined += found.examined
        latency.append(slowest)
        answers.append(tuple((r,) for r in sorted(ranks)))
    n = len(case.asks)
    return {
        "latency_ms": round(1e3 * float(np.mean(latency)), 3),
        "workers_visited": round(visited / n, 3),
        "examined": round(examined / n, 1),
        "answers": answers,
    }


def _posts_of(step: Step) -> Posts:
    """The posts of a step."""
    s = sample_of(step.objects)
    return Posts(s.x, s.y, s.word_offsets, s.words)
