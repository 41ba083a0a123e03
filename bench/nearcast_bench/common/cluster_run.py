"""A stream through a cluster: throughput, latency, memory, and whether the answer is right."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.index.arena import Memory
from nearcast.kernels.slots import SUBSCRIBE
from nearcast.kinds import KINDS
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.routing import ROUTERS, Router
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.survey import RegionSurvey
from nearcast.routing.sstd.qt_router import QtRouter
from nearcast.wire.tables import OBJECTS, REGIONS, join, lists, numbers, object_columns
from nearcast_bench.common.cluster import (
    ENGINE,
    Cluster,
    Done,
    Numbers,
    Reals,
    Reported,
    Stream,
    Words,
    id_hashes,
)
from nearcast_bench.common.figures import Figure

PASSES = 3
SAMPLE = 200  # objects whose matches are compared with the scan's, at most
PAIRS = 400_000  # and pairs of an object and a region around any of them that the scan looks at


@dataclass(frozen=True, slots=True)
class Layout:
    """Who deals, who matches, and how many of them there are."""

    router: str
    index: str
    workers: int
    dispatchers: int
    dispatch: str = ENGINE
    parameters: tuple[tuple[str, float], ...] = ()


def planned(layout: Layout, stream: Stream, survey: RegionSurvey) -> tuple[Router, float]:
    """(the router with its plan, seconds that planning took)."""
    router = ROUTERS[layout.router](layout.workers)
    if not isinstance(router, GridRouter | QtRouter):
        return router, 0.0
    known = {k: v for k, v in layout.parameters if k in router.parameters}
    started = time.thread_time()
    plan = router.plan(stream.sample, survey, known)
    return router.with_table(plan.data), time.thread_time() - started


class Oracle:
    """What a sample of objects matches, by the scan; only regions around them are offered to it."""

    def __init__(self, stream: Stream) -> None:
        steps = [*stream.steps, *stream.small]
        objects = join([s.objects for s in steps], OBJECTS)
        rows = np.random.default_rng(0).permutation(objects.num_rows)[:SAMPLE]
        at = np.stack([numbers(objects["x"])[rows], numbers(objects["y"])[rows]], axis=1)
        tables = [*stream.standing, *(s.controls for s in steps)]
        around = [0] * len(rows)
        near = [_around(c, at, around) for c in tables]
        total = np.cumsum(around) * np.arange(1, len(rows) + 1)
        k = max(int(np.searchsorted(total, PAIRS)), 1)
        chosen = np.sort(rows[:k])
        some = objects.take(pa.array(chosen))
        self.numbers: Numbers = numbers(some["pos"]).copy()
        first, places = 0, [np.zeros(len(c), np.int64) for c in stream.standing]
        for step in steps:
            places.append(np.searchsorted(chosen, first + step.at))
            first += step.objects.num_rows
        kept = [np.flatnonzero(n < k) for n in near]
        controls = join([c.take(pa.array(r)) for c, r in zip(tables, kept)], REGIONS)
        before = np.concatenate([p[r] for p, r in zip(places, kept)]).astype(np.int32)
        index = KINDS["range"].index("scan")(Space.GEOGRAPHIC, Memory())
        index.apply(controls, before)
        columns = object_columns(some)
        found = index.match(columns, columns.clock, int(columns.time[-1]))
        slots = controls.take(pa.array(np.flatnonzero(numbers(controls["op"]) == SUBSCRIBE)))
        self.right = _pairs(self.numbers[found.order], id_hashes(slots)[found.slot])

    def check(self, reported: list[Reported]) -> None:
        """Raise if the sample's matches are not exactly those of the scan."""
        objects = np.concatenate([t.objects for t in reported])
        ids = np.concatenate([t.ids for t in reported])
        mine = np.isin(objects, self.numbers)
        if _pairs(objects[mine], ids[mine]) != self.right:
            raise NearcastError("bench: the matches are not those of the scan")


def _pairs(objects: Numbers, ids: Words) -> list[tuple[int, int]]:
    return sorted(zip(objects.tolist(), ids.tolist(), strict=True))


def _around(controls: pa.RecordBatch, at: Reals, count: list[int]) -> Numbers:
    """The first of the positions that each control's box holds, len(at) if none; counted."""
    boxes = lists(controls["region"], np.float64)[1].reshape(-1, 4)
    first = np.full(len(boxes), len(at))
    for i in range(len(at) - 1, -1, -1):
        x, y = at[i]
        inside = np.flatnonzero((boxes[:, 0] <= x) & (x <= boxes[:, 2]))
        inside = inside[(boxes[inside, 1] <= y) & (y <= boxes[inside, 3])]
        first[inside] = i
    for i, n in enumerate(np.bincount(first, minlength=len(at) + 1)[: len(at)].tolist()):
        count[i] += n
    return first


def measure(layout: Layout, stream: Stream, survey: RegionSurvey, oracle: Oracle) -> Figure:
    """One layout through the stream."""
    return measure_all([layout], stream, survey, oracle)[0]


def measure_all(
    layouts: Sequence[Layout], stream: Stream, survey: RegionSurvey, oracle: Oracle
) -> list[Figure]:
    """Layouts through the same stream; the first step is not timed: something may be compiled.

    All is done `PASSES` times, the layouts in turn, and of each step and worker the least time
    counts: what else the machine does only ever adds to it.
    """
    plans = [planned(layout, stream, survey) for layout in layouts]
    passes: list[list[Pass]] = [[] for _ in layouts]
    for n in range(PASSES):
        for at in range(len(layouts)) if n % 2 == 0 else range(len(layouts) - 1, -1, -1):
            made = _pass(plans[at][0], layouts[at], stream)
            if n > 0:  # only the first one's answers are looked at
                made = made.without_answers()
            passes[at].append(made)
    return [
        _figure(layout, stream, oracle, made, plan_seconds)
        for layout, made, (_, plan_seconds) in zip(layouts, passes, plans, strict=True)
    ]


def _figure(
    layout: Layout, stream: Stream, oracle: Oracle, passes: list[Pass], plan_seconds: float
) -> Figure:
    """What the passes of a layout report."""
    done, small, memory, copies, load_seconds = passes[0]
    reported = [d.reported for d in [*done, *small]]
    oracle.check(reported)
    warm, steps = (done[1:], stream.steps[1:]) if len(done) > 1 else (done, stream.steps)
    tuples = sum(s.tuples for s in steps)
    objects = sum(s.objects.num_rows for s in steps)
    each = np.array([[_seconds(d) for d in p.done] for p in passes])[:, -len(warm) :]
    seconds = each.min(axis=0)
    dispatcher, workers = float(seconds[:, 0].sum()), seconds[:, 1:].sum(axis=0)
    slowest = _slowest(seconds, layout)
    standing = sum(c.num_rows for c in stream.standing)
    read = np.array([[w.scanned + w.lookups for w in d.work] for d in warm]).sum(axis=0)
    latency = []
    if small:
        times = np.min([[_seconds(d) for d in p.small] for p in passes], axis=0)[1:]
        latency = (times[:, 0] + times[:, 1:].max(axis=1)).tolist()
    return {
        "router": layout.router,
        "index": layout.index,
        "workers": layout.workers,
        "dispatchers": layout.dispatchers,
        "dispatch": layout.dispatch,
        "queries": standing,
        "tuples": tuples,
        "tuples_per_second": round(tuples / slowest),
        "by_pass": [round(tuples / _slowest(e, layout)) for e in each],
        "tuples_per_second_of_workers": round(tuples / max(float(np.max(workers)), 1e-9)),
        "bound_by": "dispatchers" if dispatcher / layout.dispatchers >= slowest else "a worker",
        "dispatch_us_per_tuple": round(1e6 * dispatcher / tuples, 3),
        "work_us_per_tuple": round(1e6 * float(np.sum(workers)) / tuples, 3),
        "slowest_to_mean": round(float(np.max(workers) / max(np.mean(workers), 1e-12)), 2),
        "latency_ms": round(1e3 * float(np.mean(latency)), 3) if latency else None,
        "latency_tuples": stream.small[0].tuples if stream.small else None,
        "dispatcher_mb": round(memory[0] / 1e6, 2),
        "worker_mb": round(float(np.mean(memory[1])) / 1e6, 2),
        "object_copies": round(sum(int(d.sent.sum()) for d in warm) / objects, 3),
        "query_copies": round(copies / max(standing, 1), 3),
        "read_per_object": round(float(read.sum()) / objects, 1),
        "read_slowest_to_mean": round(float(read.max() / max(read.mean(), 1e-9)), 2),
        "checked_matches": len(oracle.right),
        "notifications": sum(len(t.objects) for t in reported),
        "checksum": f"{sum(t.checksum() for t in reported) % 2**64:016x}",
        "plan_seconds": round(plan_seconds, 2),
        "load_seconds": round(load_seconds, 2),
    }


class Pass(NamedTuple):
    """A stream through a cluster, once."""

    done: list[Done]
    small: list[Done]
    memory: tuple[int, list[int]]  # bytes of the dispatcher and of each worker
    copies: int  # of standing queries
    load_seconds: float  # that inserting them took, all workers together

    def without_answers(self) -> Pass:
        """Only the times."""
        bare = [
            [
                replace(d, reported=Reported(d.reported.objects[:0], d.reported.ids[:0]))
                for d in part
            ]
            for part in (self.done, self.small)
        ]
        return self._replace(done=bare[0], small=bare[1])


def _pass(router: Router, layout: Layout, stream: Stream) -> Pass:
    cluster = Cluster(router, layout.index, layout.dispatch)
    cluster.stand(stream.standing)
    done = [cluster.run(step) for step in stream.steps]
    memory = cluster.dispatcher.bytes, cluster.worker_bytes
    small = [cluster.run(step) for step in stream.small]
    loaded = float(cluster.insert_seconds.sum())
    return Pass(done, small, memory, cluster.copies, loaded)


def _slowest(seconds: Reals, layout: Layout) -> float:
    """The busiest worker, or a dispatcher: seconds [step, dispatcher and workers]."""
    both = float(seconds[:, 1:].sum(axis=0).max()), float(seconds[:, 0].sum()) / layout.dispatchers
    return max(*both, 1e-9)


def _seconds(done: Done) -> list[float]:
    """Of the dispatcher, and of each worker."""
    return [done.dispatcher, *done.workers.tolist()]


def agree(figures: list[Figure]) -> None:
    """Raise if layouts reported different matches of the same stream."""
    if len({(f["notifications"], f["checksum"]) for f in figures}) > 1:
        sums = {f"{f['router']}+{f['index']}": f["notifications"] for f in figures}
        raise NearcastError(f"bench: the routers disagree on the matches: {sums}")
