"""Figure 9 of Tornado: the spatially condensed data set on partitions made for the whole space.

Queries and tweets are shrunk about the middle of the space, so that few evaluators get all of the
work. The static version keeps its partitions. The adaptive one, after each round, sums up costs by
row and column, decides on operations (section 4.2), and moves queries between the indexes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nearcast.bench.dealt import Cluster, Done, Figure, Say, Step, sample_of
from nearcast.bench.dealt_run import planned
from nearcast.bench.moving import move
from nearcast.bench.tornado import Setting, layout_of
from nearcast.bench.tweets import tornado_stream
from nearcast.model.errors import NearcastError
from nearcast.routing import GridRouter, Sample
from nearcast.routing.grid.survey import RangeSurvey
from nearcast.routing.grid.table import GridTable
from nearcast.routing.tornado.a_grid import Partitions, partitions_of
from nearcast.routing.tornado.aggregates import Aggregates, add_queries, new_aggregates
from nearcast.routing.tornado.balance import Settings, adjust
from nearcast.routing.tornado.costs import Costs
from nearcast.routing.tornado.repartition import repartition
from nearcast.routing.tornado.summary import summarise
from nearcast.routing.tornado.table import after, ranges_of, sample_costs
from nearcast.wire.tables import numbers

SCALES = (0.4, 0.5, 0.6, 0.7)
STATIC, ADAPTIVE, OURS = "static", "adaptive", "adaptive, new partitions"
OPERATIONS = 4  # at most, after a round
SETTLED = 5  # last rounds, of which the middle one counts
SAMPLED = 5_000  # objects of a round that costs are summed up from
BALANCE = Settings(beta=0.01, threshold=1.1)


def run_adapt(setting: Setting, say: Say) -> Iterator[Figure]:
    """Static and adaptive at each scale, then what they tell the routing layer."""
    for scale in SCALES:
        told = set()
        for version in (STATIC, ADAPTIVE, OURS):
            say(f"figure 9(a): scale {scale:g}, {version} …")
            figure = _adapted(setting, scale, version)
            told.add(figure["notifications"])
            if len(told) > 1:
                raise NearcastError(f"bench: {version} partitions change the matches: {told}")
            yield figure


def _adapted(setting: Setting, scale: float, version: str) -> Figure:
    usual = tornado_stream(setting.queries, 1, 1, setting.seed)
    layout = layout_of(setting, "tornado", setting.index)
    router, _ = planned(layout, usual, usual.survey())
    objects = max(setting.objects // 4, 1)
    stream = tornado_stream(setting.queries, objects, setting.rounds + 1, setting.seed, scale=scale)
    cluster = Cluster(router, setting.index)
    cluster.stand(stream.standing)
    survey = stream.survey()
    cluster.run(stream.steps[0])  # compiles, and is not timed
    done, operations, moved, moving = [], 0, 0, 0.0
    sent = (0, 0)
    for step in stream.steps[1:]:
        done.append(cluster.run(step))
        if version != STATIC:
            table, made, sent = _balanced(cluster, step, survey, version == OURS)
            if made:
                now = int(numbers(step.objects["time"])[-1])
                went = move(cluster, table, now)
                operations, moved = operations + made, moved + went.copies
                moving += float(went.moving.max())
    rates = [_rate(d, step, setting.units) for d, step in zip(done, stream.steps[1:], strict=True)]
    return {
        "figure": "9(a)",
        "scale": scale,
        "version": version,
        "queries": setting.queries,
        "evaluators": setting.evaluators,
        "index": setting.index,
        "tuples_per_second": round(float(np.median(rates[-SETTLED:]))),
        "by_round": [round(r) for r in rates],
        "slowest_to_mean": round(float(np.mean([d.workers.max() / d.workers.mean()
                                                for d in done[-SETTLED:]])), 2),
        "operations": operations,
        "moved_queries": moved,
        "moving_ms": round(1e3 * moving, 2),
        "numbers_sent": {"distributed": sent[0], "centralised": sent[1]},
        "notifications": sum(len(d.told.objects) for d in done),
    }  # fmt: skip


def _rate(done: Done, step: Step, units: int) -> float:
    return step.tuples / max(float(done.workers.max()), done.dispatcher / units)


def _balanced(
    cluster: Cluster, step: Step, survey: RangeSurvey, ours: bool
) -> tuple[GridTable, int, tuple[int, int]]:
    """(the table after some operations, how many, numbers sent: as summaries, or cell by cell)."""
    router = cluster.dispatcher.router
    assert isinstance(router, GridRouter)
    assert router.grid is not None
    table = router.grid
    costs = sample_costs(table, _first(sample_of(step.objects)), survey, 1)
    evaluators = router.shards
    made, sent = 0, (0, 0)
    for n in range(OPERATIONS):
        partitions = partitions_of(table.cells, evaluators)
        aggregates = _aggregates(table, partitions, costs, survey)
        if n == 0:
            summaries = [summarise(partitions, p, a) for p, a in enumerate(aggregates)]
            sent = sum(s.numbers for s in summaries), 2 * table.cells.size
        decision = adjust(partitions, aggregates, BALANCE)
        if decision is None and ours:
            queries = [int(a.overall[1]) for a in aggregates]
            decision = repartition(partitions, costs, queries, BALANCE)
        if decision is None:
            break
        table = after(table, decision)
        made += 1
    return table, made, sent


def _first(sample: Sample) -> Sample:
    offsets = sample.word_offsets[: SAMPLED + 1]
    return Sample(sample.x[:SAMPLED], sample.y[:SAMPLED], offsets, sample.words[: offsets[-1]])


def _aggregates(
    table: GridTable, partitions: Partitions, costs: Costs, survey: RangeSurvey
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
