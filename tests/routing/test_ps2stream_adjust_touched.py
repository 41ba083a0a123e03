"""Copies of updates by a table, and the loads that follow: against plain Python and place_rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.routing.ps2stream_adjust_twins import worker_loads
from tests.routing.test_gather import cases, cells_of

from nearcast.routing.balance import Counts
from nearcast.routing.base import Sample
from nearcast.routing.grid.live import Period
from nearcast.routing.grid.survey import RegionSurvey, take
from nearcast.routing.grid.table import GridTable, place_rows, sealed
from nearcast.routing.ps2stream.adjust.decisions import MIGRATE, Decision
from nearcast.routing.ps2stream.adjust.gather import gather_cells
from nearcast.routing.ps2stream.adjust.situation import Settings, Situation, follow, loads_in
from nearcast.routing.ps2stream.adjust.stats import (
    CellStats,
    Costs,
    cell_objects,
)
from nearcast.routing.ps2stream.adjust.touched import copies_at, touched_by, touched_of
from nearcast.routing.ps2stream.live import as_counted, fitted, loads_by, shard_parts

SHARDS = 2
NOBODY = Sample(np.empty(0), np.empty(0), np.zeros(1, np.int64), np.empty(0, np.uint64))


def by_space(table: GridTable) -> GridTable:
    """Shards by column and row, without text."""
    line, column = np.indices(table.cells.shape)
    words: Any = np.empty(0, np.uint64)
    none: Any = np.empty(0, np.int64)
    first: Any = np.zeros(1, np.int64)
    return sealed(
        table._replace(
            cells=np.asarray((line + column // 2) % SHARDS, np.int32), map_offsets=first,
            map_words=words, map_shards=none, worker_offsets=first, workers=none,
        )
    )  # fmt: skip


def reported(table: GridTable, survey: RegionSurvey, shard: int) -> CellStats:
    none = take(survey, np.empty(0, np.int64))
    return gather_cells(table, shard, Period(NOBODY, survey, survey, none), 0)[0]


@settings(deadline=None)
@given(cases())
def test_who_hangs_together_counts_once(case: tuple[GridTable, RegionSurvey, Sample]) -> None:
    table, survey = by_space(case[0]), case[1]
    counts = np.sum([touched_by(table, shard, survey) for shard in range(SHARDS)], axis=0)
    for shard in range(SHARDS):
        right = 0
        for row in range(len(survey.conjunction)):
            mine = {c for c in cells_of(table, survey, row) if table.cells[c] == shard}
            pairs = sum(((i, j + 1) in mine) + ((i + 1, j) in mine) for i, j in mine)
            fours = sum({(i, j + 1), (i + 1, j), (i + 1, j + 1)} <= mine for i, j in mine)
            right += len(mine) - pairs + fours
        assert copies_at(table, reported(table, survey, shard), counts, shard) == right


def halves(side: int = 4) -> GridTable:
    """The left half is shard 0's, the right one shard 1's."""
    cells = np.repeat([[0] * (side // 2) + [1] * (side // 2)], side, axis=0)
    words: Any = np.empty(0, np.uint64)
    none: Any = np.empty(0, np.int64)
    return sealed(
        GridTable(np.array([0.0, 0.0, side, side]), cells, np.zeros(1, np.int64), words, none,
                  np.zeros(1, np.int64), none, words, none)
    )  # fmt: skip


def boxes(*wanted: tuple[float, float, float, float]) -> RegionSurvey:
    n = len(wanted)
    return RegionSurvey(
        np.arange(n).astype(np.uint64), np.arange(n + 1), np.array(wanted, np.float64),
        np.arange(n + 1), np.full(n, 4, np.uint64), np.ones(n, bool),
    )  # fmt: skip


WIDE = (0.5, 0.5, 2.5, 1.5)  # six cells: four of shard 0, two of shard 1
SMALL = (1.2, 2.2, 1.4, 2.4)  # one cell of shard 0


def test_a_migration_adds_the_copies_that_it_makes() -> None:
    table, survey = halves(), boxes(WIDE, SMALL)
    stats = [reported(table, survey, shard) for shard in range(2)]
    counts = np.sum([touched_by(table, shard, survey) for shard in range(2)], axis=0)
    costs = Costs(0.0, 0.0, 1.0, 1.0)  # seven touches cost 7; they are three copies
    touched = touched_of(table, stats, counts, costs)
    assert touched is not None
    assert touched.each == pytest.approx(7 / 3)
    none = cell_objects(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.uint64))
    situation = Situation(table, stats, none, touched=touched)
    its = Settings(costs)
    assert loads_in(situation, its) == pytest.approx(np.array([2, 1]) * 7 / 3)

    def moved(cells: list[int]) -> list[float]:
        d = Decision(MIGRATE, 0, 1, np.array(cells), np.empty(0, np.uint64),
                     np.zeros(2), np.zeros(2), 0, 0, "")  # fmt: skip
        return [float(load) * 3 / 7 for load in loads_in(follow(situation, d, its), its)]

    assert moved([2 * 4 + 1]) == pytest.approx([1, 2])  # the small one goes as a whole
    assert moved([0, 4]) == pytest.approx([2, 2])  # the wide one stays, and comes again in parts
    assert moved([1, 5]) == pytest.approx([2, 1])  # next to what shard 1 has of it already


def test_a_plan_that_doubles_copies_is_not_free() -> None:
    across = boxes(*[(0.5, y, 3.5, y + 0.1) for y in (0.2, 1.2, 2.2, 3.2)])
    objects = Sample(np.full(4, 0.1), np.linspace(0.1, 3.9, 4), np.zeros(5, np.int64),
                     np.empty(0, np.uint64))  # fmt: skip
    whole = sealed(halves()._replace(cells=np.zeros((4, 4), np.int32)))
    parts = [shard_parts(t, objects, across, 2) for t in (whole, halves())]
    assert [p[2].sum() for p in parts] == [4, 8] == [len(place_rows(t, across)[0])
                                                     for t in (whole, halves())]  # fmt: skip
    counts = [Counts(objects=4, controls=10), Counts()]
    now, then = loads_by(parts, counts)
    assert now.sum() == pytest.approx(counts[0].load)
    assert then.sum() == pytest.approx(counts[0].each + 2 * counts[0].updates)


def test_shards_have_the_checks_that_they_counted() -> None:
    none = np.empty(0, np.int64)
    one = CellStats(
        cells=np.arange(2), objects=np.array([10.0, 30.0]), held=np.array([1.0, 2.0]),
        inserted=np.array([4.0, 4.0]), deleted=np.zeros(2), size=np.array([1, 1]),
        word_offsets=np.zeros(3, np.int64), words=np.empty(0, np.uint64), word_held=none,
        word_size=none,
    )  # fmt: skip
    counts = [Counts(objects=40, controls=2, scanned=100), Counts(objects=40, scanned=300)]
    stats = as_counted([one, one], [c.checks for c in counts])
    loads = worker_loads(stats, fitted(stats, counts))
    updates = sum(c.updates for c in counts)  # known by touches alone, so shared alike
    right = [c.each + c.checks + updates / 2 for c in counts]
    assert loads == pytest.approx(right)
