"""Statistics of cells gathered by compiled code, against dealing everything in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.ps2stream_adjust_twins import Obj, Sub, gather, owner
from tests.routing.test_ps2stream_adjust_local import COSTS, U, objects, subs
from tests.routing.test_ps2stream_adjust_tables import SHARDS, SIDE, tables

from nearcast.routing.grid.survey import RangeSurvey
from nearcast.routing.grid.table import GridTable
from nearcast.routing.ps2stream.adjust.gather import Seen, cell_stats, object_cells
from nearcast.routing.ps2stream.adjust.stats import cell_loads


def survey_of(table: GridTable, held: list[Sub]) -> RangeSurvey:
    """A box within each cell that a subscription touches."""
    boxes = [middle(table, cell) for s in held for cell in sorted(s.cells)]
    words = [sorted(s.hooks) for s in held]
    return RangeSurvey(
        np.arange(len(held)).astype(np.uint64),
        np.cumsum([0, *(len(s.cells) for s in held)], dtype=np.int64),
        np.array([(x, y, x, y) for x, y in boxes], np.float64).reshape(-1, 4),
        np.cumsum([0, *map(len, words)], dtype=np.int64),
        np.array([w for some in words for w in some], np.uint64),
        np.zeros(len(held), bool),
    )


def middle(table: GridTable, cell: int) -> tuple[float, float]:
    low_x, low_y, high_x, high_y = table.bounds.tolist()
    line, column = divmod(cell, SIDE)
    return (
        low_x + (high_x - low_x) * (column + 0.5) / SIDE,
        low_y + (high_y - low_y) * (line + 0.5) / SIDE,
    )


def seen_by(table: GridTable, shard: int, seen: list[Obj]) -> list[int]:
    return [o.cell for o in seen if shard in {owner(table, o.cell, w) for w in [*o.words, U]}]


@settings(max_examples=40, deadline=None)
@given(tables(), subs(3), objects, st.lists(st.booleans(), min_size=25, max_size=25))
def test_as_dealt_in_plain_python(
    table: GridTable, held: list[Sub], seen: list[Obj], ended: list[bool]
) -> None:
    gone = [s for s, end in zip(held, ended, strict=False) if end]
    right = gather(table, held, seen, SHARDS, discard=False)
    ends = gather(table, gone, [], SHARDS, discard=False)
    for shard in range(SHARDS):
        period = Seen(
            survey_of(table, held),
            np.array([s.size for s in held], np.int64),
            np.ones(len(held), bool),
            survey_of(table, gone),
            np.array(seen_by(table, shard, seen), np.int64),
        )
        found = cell_stats(table, shard, period, COSTS, SIDE * SIDE)
        deleted = np.zeros(len(right[shard].cells))
        deleted[np.searchsorted(right[shard].cells, ends[shard].cells)] = ends[shard].held
        expected = right[shard]._replace(deleted=deleted)
        for name, values in found._asdict().items():
            assert values.tolist() == getattr(expected, name).tolist(), name
        at = np.array([middle(table, c) for c in expected.cells.tolist()]).reshape(-1, 2)
        assert object_cells(table, at[:, 0].copy(), at[:, 1].copy()).tolist() == (
            expected.cells.tolist()
        )
        few = cell_stats(table, shard, period, COSTS, 1)
        named = np.flatnonzero(np.diff(few.word_offsets))
        loads = cell_loads(few, COSTS)
        assert len(named) <= 1
        assert all(loads[n] == loads.max() for n in named)
