"""Tornado on the common routing table: plans, placing by the search, and what follows moves."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing import tornado_twins as twins
from tests.routing.grid_twins import Log, logs, places

from nearcast.routing import Sample
from nearcast.routing.grid import survey as sv
from nearcast.routing.grid import table as gt
from nearcast.routing.grid.costs import sample_costs
from nearcast.routing.tornado.a_grid import partitions_of
from nearcast.routing.tornado.decision import Decision, Move, partitions_after
from nearcast.routing.tornado.pieces import grid_of
from nearcast.routing.tornado.place import place_by_search
from nearcast.routing.tornado.selective import Summaries
from nearcast.routing.tornado.table import (
    after,
    space_table,
    text_table,
    tornado_table,
    uniform_table,
)
from nearcast.routing.tornado.uniform import uniform_partitions
from nearcast.wire.tables import lists, numbers

quick = settings(max_examples=40)
BOUNDS = np.array([-4.0, -4.0, 4.0, 4.0])


def sample_of(log: Log) -> Sample:
    x, y = numbers(log.objects["x"]), numbers(log.objects["y"])
    return Sample(x, y, *lists(log.objects["words"], np.uint64))


def survey_of(log: Log) -> sv.RegionSurvey:
    return sv.survey_of(log.controls, np.arange(log.controls.num_rows).astype(np.uint64))


def pairs(found: gt.Pairs) -> list[tuple[int, int]]:
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


@quick
@given(logs(), st.integers(1, 9), st.integers(1, 12))
def test_the_search_places_what_the_scan_places(log: Log, side: int, shards: int) -> None:
    table = tornado_table(sample_of(log), survey_of(log), BOUNDS, side, shards)
    found = place_by_search(table, *grid_of(table.cells), survey_of(log))
    assert pairs(found) == pairs(places(table, log.controls))


@quick
@given(logs(), st.integers(1, 5), st.integers(1, 4), st.data())
def test_the_search_places_by_shards_of_any_shape(
    log: Log, side: int, shards: int, data: st.DataObject
) -> None:
    owner = st.integers(0, shards - 1)
    drawn = data.draw(st.lists(owner, min_size=side * side, max_size=side * side))
    cells = np.array(drawn, np.int32).reshape(side, side)
    table = space_table(sample_of(log), BOUNDS, cells)
    found = place_by_search(table, *grid_of(cells), survey_of(log))
    assert pairs(found) == pairs(places(table, log.controls))


@quick
@given(logs(), st.integers(1, 6), st.integers(0, 1))
def test_costs_of_a_sample(log: Log, side: int, each: int) -> None:
    sample, survey = sample_of(log), survey_of(log)
    table = space_table(sample, BOUNDS, np.zeros((side, side), np.int32))
    objects, queries = [], []
    for i in range(len(sample.x)):
        held = sample.words[sample.word_offsets[i] : sample.word_offsets[i + 1]].tolist()
        cell = gt.column_of(table, sample.x[i]), gt.line_of(table, sample.y[i])
        objects.append((*cell, [*held, 3]))
    for i in range(len(survey.conjunction)):
        own, end = survey.word_offsets[i : i + 2].tolist()
        first, stop = gt.posting_words(table, survey.words, own, end, bool(survey.conjunction[i]))
        words = survey.words[first:stop].tolist() or [3]
        for b in survey.boxes[survey.box_offsets[i] : survey.box_offsets[i + 1]]:
            low = gt.column_of(table, b[0]), gt.line_of(table, b[1])
            high = gt.column_of(table, b[2]), gt.line_of(table, b[3])
            queries.append(((*low, *high), words))
    twin = twins.equation_1(side, objects, queries, each)
    assert sample_costs(table, sample, survey, each).tolist() == twin


@quick
@given(logs(), st.integers(1, 6), st.integers(1, 4), st.data())
def test_summaries_send_what_may_match(
    log: Log, side: int, shards: int, data: st.DataObject
) -> None:
    sample, survey = sample_of(log), survey_of(log)
    table = tornado_table(sample, survey, BOUNDS, side, shards)
    summaries = Summaries(table, shards)
    summaries.add(survey)
    rows, at = gt.place_rows(table, survey)
    over = data.draw(st.sets(st.integers(0, max(len(rows) - 1, 0)), max_size=len(rows)))
    for i in over:  # copies end one by one
        summaries.ended(int(at[i]), sv.take(survey, rows[i : i + 1]))
    held: dict[int, set[int]] = {shard: set() for shard in range(shards)}
    for i in set(range(len(rows))) - over:
        own, end = survey.word_offsets[rows[i] : rows[i] + 2].tolist()
        first, stop = gt.posting_words(
            table, survey.words, own, end, bool(survey.conjunction[rows[i]])
        )
        held[int(at[i])] |= set(survey.words[first:stop].tolist() or [3])
    routed = pairs(gt.route_rows(table, *sample))
    wanted = []
    for row, shard in routed:
        own, end = sample.word_offsets[row : row + 2].tolist()
        if held[shard] & {3, *sample.words[own:end].tolist()}:
            wanted.append((row, shard))
    assert pairs(summaries.wanted(*sample)) == wanted
    assert sum(s.checked for s in summaries.of) == len(routed)
    assert sum(s.dropped for s in summaries.of) == len(routed) - len(wanted)


@quick
@given(logs(), st.integers(1, 5))
def test_text_routing_deals_by_words_alone(log: Log, shards: int) -> None:
    table = text_table(sample_of(log), BOUNDS, shards)
    for word in (3, 4, 2**40):
        owners = {gt.owner(table, x, y, np.uint64(word)) for x in (-9.0, 0.0, 9.0) for y in (0, 5)}
        assert len(owners) == 1
        assert owners < set(range(shards)) or shards == 1


def test_a_plan_without_a_sample_is_uniform() -> None:
    nothing = Sample(np.empty(0), np.empty(0), np.zeros(1, np.int64), np.empty(0, np.uint64))
    made = tornado_table(nothing, sv.join([]), BOUNDS, 8, 4)
    assert sorted(np.bincount(made.cells.ravel()).tolist()) == [16] * 4
    uniform = uniform_table(nothing, BOUNDS, 8, 4)
    assert np.bincount(uniform.cells.ravel()).tolist() == [16] * 4


def test_a_decision_makes_the_next_version_of_a_table() -> None:
    nothing = Sample(np.empty(0), np.empty(0), np.zeros(1, np.int64), np.empty(0, np.uint64))
    table = uniform_table(nothing, BOUNDS, 4, 4)
    decision = Decision("vertical shift", (Move(1, 0, (2, 0, 2, 1)),), (), (), 1, 0, "")
    made = after(table, decision)
    assert made.cells.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1], [2, 2, 3, 3], [2, 2, 3, 3]]
    assert table.cells[0, 2] == 1  # versions do not change
    assert (
        partitions_of(made.cells, 4).tolist()
        == partitions_after(uniform_partitions(4, 4), decision).tolist()
    )
    assert gt.unpack(gt.pack(made)).cells.tolist() == made.cells.tolist()
