"""Figure 9 of Tornado: the spatially condensed data set on partitions made for the whole space.

Queries and tweets are shrunk about the middle of the space, so that few evaluators get all of the
work. The static version keeps its partitions. The adaptive one, after each round, sums up costs by
row and column, decides on operations (section 4.2), and moves queries between the indexes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from nearcast.model.errors import NearcastError
from nearcast.routing import Router
from nearcast.routing.grid.costs import Costs, ranges_of, sample_costs
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.survey import RegionSurvey
from nearcast.routing.grid.table import GridTable
from nearcast.routing.sampling import thinned
from nearcast.routing.tornado.a_grid import Partitions, partitions_of
from nearcast.routing.tornado.aggregates import Aggregates, add_queries, new_aggregates
from nearcast.routing.tornado.rebalance import Settings, adjust
from nearcast.routing.tornado.summary import summarise
from nearcast.routing.tornado.table import after
from nearcast.wire.tables import numbers
from nearcast_bench.common.cluster import Cluster, Done, Step, Stream, sample_of
from nearcast_bench.common.cluster_run import planned
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.moving import move
from nearcast_bench.tornado.experiment import Setting, layout_of
from nearcast_bench.tornado.stream import tornado_stream

SCALES = (0.4, 0.5, 0.6, 0.7)
STATIC, ADAPTIVE = "static", "adaptive"
PASSES = 3
OPERATIONS = 4  # at most, after a round
SETTLED = 5  # last rounds, of which the middle one counts
SAMPLED = 5_000  # objects of a round that costs are summed up from, each standing for some
MOVE = 5e-6  # seconds of all evaluators that moving a query takes here
BALANCE = Settings(threshold=1.1, horizon=100.0)  # rounds of a twentieth of a second; beta: MOVE


class Sent(NamedTuple):
    """Numbers that evaluators and routing units sent each other."""

    distributed: int = 0
    centralised: int = 0


@dataclass(slots=True)
class Rounds:
    """What a version did, round by round."""

    done: list[Done] = field(default_factory=list)
    operations: int = 0
    moved: int = 0
    moving: list[float] = field(default_factory=list)  # seconds of the slowest evaluator
    sent: Sent = field(default_factory=Sent)


def run_adapt(setting: Setting, say: Say) -> Iterator[Figure]:
    """Static and adaptive at each scale, in turn."""
    usual = tornado_stream(setting.queries, 1, 1, setting.seed)
    router, _ = planned(layout_of(setting, "tornado", setting.index), usual, usual.survey())
    objects = max(setting.objects // 2, 1)
    for scale in SCALES:
        say(f"figure 9: scale {scale:g} …")
        stream = tornado_stream(
            setting.queries, objects, setting.rounds + 1, setting.seed, scale=scale
        )
        few = replace(stream, steps=stream.steps[:3])
        _rounds(setting, router, few, True)  # compiles what moves
        passes: dict[str, list[Rounds]] = {STATIC: [], ADAPTIVE: []}
        for n in range(PASSES):
            for version in (STATIC, ADAPTIVE) if n % 2 == 0 else (ADAPTIVE, STATIC):
                passes[version].append(_rounds(setting, router, stream, version == ADAPTIVE))
        reported = {_matches(made) for made in (*passes[STATIC], *passes[ADAPTIVE])}
        if len(reported) > 1 or not reported.pop():
            raise NearcastError("bench: adaptive partitions change the matches, or there are none")
        for version, made in passes.items():
            yield _figure(setting, stream, scale, version, made)


def _rounds(setting: Setting, router: Router, stream: Stream, adaptive: bool) -> Rounds:
    cluster = Cluster(router, setting.index)
    cluster.stand(stream.standing)
    survey = stream.survey()
    cluster.run(stream.steps[0])  # compiles, and is not timed
    out = Rounds()
    for step in stream.steps[1:]:
        out.done.append(cluster.run(step))
        out.moving.append(0.0)
        if adaptive:
            table, made, sent = _balanced(cluster, step, survey, out.done[-1])
            out.sent = Sent(*(a + b for a, b in zip(out.sent, sent, strict=True)))
            if made:
                now = int(numbers(step.objects["time"])[-1])
                went = move(cluster, table, now)
                out.operations, out.moved = out.operations + made, out.moved + went.copies
                out.moving[-1] = float((went.moving + went.looking).max())
    return out


def _matches(made: Rounds) -> int:
    return sum(len(d.reported.objects) for d in made.done)


def _figure(
    setting: Setting, stream: Stream, scale: float, version: str, passes: list[Rounds]
) -> Figure:
    """Settled: the middle of the last rounds. Overall: all rounds, and the moves between them."""
    tuples = stream.steps[1].tuples
    seconds = np.array([[_seconds(d, setting.units) for d in p.done] for p in passes])
    settled = tuples / np.median(seconds[:, -SETTLED:], axis=1)
    moving = np.array([p.moving for p in passes])
    overall = tuples * seconds.shape[1] / (seconds + moving).sum(axis=1)
    first = passes[0]
    uneven = [float(d.workers.max() / d.workers.mean()) for d in first.done[-SETTLED:]]
    return {
        "figure": "9(a)",
        "scale": scale,
        "version": version,
        "queries": setting.queries,
        "objects_a_round": tuples,
        "evaluators": setting.evaluators,
        "index": setting.index,
        "tuples_per_second": round(float(np.median(settled))),
        "by_pass": [round(v) for v in settled.tolist()],
        "overall_tuples_per_second": round(float(np.median(overall))),
        "overall_by_pass": [round(v) for v in overall.tolist()],
        "by_round": [round(v) for v in (tuples / seconds.min(axis=0)).tolist()],
        "slowest_to_mean": round(float(np.mean(uneven)), 2),
        "operations": first.operations,
        "moved_queries": first.moved,
        "moving_ms": round(1e3 * float(np.median(moving.sum(axis=1))), 2),
        "numbers_sent": first.sent._asdict(),
        "notifications": _matches(first),
    }


def _seconds(done: Done, units: int) -> float:
    return max(float(done.workers.max()), done.dispatcher / units)


def _balanced(
    cluster: Cluster, step: Step, survey: RegionSurvey, done: Done
) -> tuple[GridTable, int, Sent]:
    """(the table after some operations, how many, numbers sent).

    As summaries: what each evaluator reports, and for an operation the cost that the other one has,
    and the boundary that comes back. Cell by cell: place, cost and queries of each that has any.
    """
    router = cluster.dispatcher.router
    assert isinstance(router, GridRouter)
    assert router.grid is not None
    table = router.grid
    some, step_of = thinned(sample_of(step.objects), SAMPLED)
    costs = step_of * sample_costs(table, some, survey, 1)
    cells = 3 * int(np.count_nonzero(costs + _begun(table, survey)))
    a_cost = float(done.workers.sum()) / int(costs.sum())  # seconds
    settings = replace(BALANCE, beta=MOVE / a_cost)
    made, reported = 0, 0
    for _ in range(OPERATIONS):
        partitions = partitions_of(table.cells, router.shards)
        aggregates = _aggregates(table, partitions, costs, survey)
        reported += sum(summarise(partitions, p, a).numbers for p, a in enumerate(aggregates))
        decision = adjust(partitions, aggregates, settings)
        if decision is None:
            break
        table = after(table, decision)
        made += 1
        reported += 2
    return table, made, Sent(reported, cells)


def _begun(table: GridTable, survey: RegionSurvey) -> Costs:
    """Queries by the first cell that each touches."""
    first = ranges_of(table, survey.boxes)
    side = len(table.cells)
    at = first[:, 1].astype(np.int64) * side + first[:, 0]
    return np.bincount(at, minlength=side * side).reshape(side, side)


def _aggregates(
    table: GridTable, partitions: Partitions, costs: Costs, survey: RegionSurvey
) -> list[Aggregates]:
    """What each evaluator would have summed up (figure 5)."""
    ranges = ranges_of(table, survey.boxes)
    out = []
    for partition in partitions:
        a = new_aggregates(len(table.cells))
        x1, y1, x2, y2 = partition.tolist()
        mine = costs[y1 : y2 + 1, x1 : x2 + 1]
        a.columns[x1 : x2 + 1] = mine.sum(axis=0)
        a.rows[y1 : y2 + 1] = mine.sum(axis=1)
        a.overall[0] = mine.sum()
        add_queries(a, partition, ranges, True)
        out.append(a)
    return out
