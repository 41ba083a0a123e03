"""The three routers of Tornado: exact whatever they plan, and wherever balance moves cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.routing.grid_twins import Log, check_exact, logs, places, plain_of

from nearcast.kernels.hashing import hash_ids
from nearcast.routing import Sample
from nearcast.routing.grid import table as gt
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.survey import survey_of
from nearcast.routing.tornado.a_grid import cells_of, partitions_of
from nearcast.routing.tornado.aggregates import new_aggregates
from nearcast.routing.tornado.rebalance import Settings, adjust
from nearcast.routing.tornado.router import Tornado
from nearcast.routing.tornado.table import after
from nearcast.routing.tornado.tornado_text import TornadoText
from nearcast.routing.tornado.tornado_uniform import TornadoUniform
from nearcast.wire.tables import lists, numbers, strings

usual = settings(max_examples=20)
by_name = pytest.mark.parametrize(
    "planner", [Tornado, TornadoText, TornadoUniform], ids=lambda r: r.name
)


def sample_of(log: Log) -> Sample:
    words = lists(log.objects["words"], np.uint64)
    return Sample(numbers(log.objects["x"]), numbers(log.objects["y"]), *words)


def ids_of(log: Log) -> NDArray[np.uint64]:
    offsets, data = strings(log.controls["id"])
    return hash_ids(data, offsets)


def planned(planner: type[GridRouter], log: Log, shards: int) -> GridRouter:
    reported = {"side": 6.0} if "side" in planner.parameters else {}
    survey = survey_of(log.controls, ids_of(log))
    return planner(shards, planner(shards).plan(sample_of(log), survey, reported).data)


@by_name
@usual
@given(log=logs(), later=logs(), shards=st.sampled_from((1, 2, 3, 5)))
def test_no_match_is_missed_or_told_twice(
    planner: type[GridRouter], log: Log, later: Log, shards: int
) -> None:
    router = planned(planner, log, shards)
    assert router.grid is not None
    plain = plain_of(router.grid)
    for events in (log, later):  # also for words and places that the plan has not seen
        check_exact(plain, events)
        placed = router.place(events.controls, ids_of(events))
        rows, shards_of = places(router.grid, events.controls)
        assert placed.rows.tolist() == rows.tolist()
        assert placed.shards.tolist() == shards_of.tolist()


@usual
@given(logs(), logs(), st.data())
def test_routing_is_exact_after_any_decisions(log: Log, later: Log, data: st.DataObject) -> None:
    router = planned(Tornado, log, 4)
    assert router.grid is not None
    table = router.grid
    for _ in range(3):
        partitions = partitions_of(table.cells, 4)
        costs = np.array(data.draw(st.lists(st.integers(0, 9), min_size=36, max_size=36)))
        aggregates = []
        for p in range(4):
            a = new_aggregates(6)
            mine = np.where(table.cells == p, costs.reshape(6, 6), 0)
            a.columns[:], a.rows[:], a.overall[0] = mine.sum(0), mine.sum(1), mine.sum()
            aggregates.append(a)
        made = adjust(partitions, aggregates, Settings(0.0))
        if made is not None:
            table = after(table, made)
            assert np.array_equal(cells_of(partitions_of(table.cells, 4), 6), table.cells)
    check_exact(plain_of(table), later)
    moved = Tornado(4, gt.pack(table)).place(later.controls, ids_of(later))
    assert moved.shards.tolist() == places(table, later.controls)[1].tolist()


def test_there_are_no_partitions_before_a_plan() -> None:
    with pytest.raises(ValueError, match="before a plan"):
        _ = Tornado(2).a_grid
