"""Cells as a whole: finer grids change no owner, and `changed` misses no subscription."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.routing.grid.cells import cells_at, changed, comes_to, refined, summed, touching
from nearcast.routing.grid.survey import RegionSurvey
from nearcast.routing.grid.table import GridTable, owner, place_rows, route_rows, sealed

SHARDS = 3
WORDS = np.array([10, 20, 30, 40], np.uint64)


def table(draw: st.DrawFn, side: int) -> GridTable:
    """Cells of shards and of two text maps."""
    cells = draw(st.lists(st.integers(-2, SHARDS - 1), min_size=side**2, max_size=side**2))
    shards = draw(st.lists(st.integers(0, SHARDS - 1), min_size=6, max_size=6))
    return sealed(
        GridTable(
            np.array([0.0, 0.0, 1.0, 1.0]),
            np.array(cells, np.int32).reshape(side, side),
            np.array([0, 2, 4]),
            WORDS[[0, 1, 1, 2]],
            np.array(shards[:4], np.int32),
            np.array([0, 1, 2]),
            np.array(shards[4:], np.int32),
            WORDS[:2],
            np.array([5, 3]),
        )
    )


def surveyed(draw: st.DrawFn) -> RegionSurvey:
    n = draw(st.integers(0, 12))
    side = st.floats(-0.2, 1.2)
    boxes = np.array([[draw(side) for _ in range(4)] for _ in range(n)]).reshape(n, 4)
    boxes = np.concatenate(
        [np.minimum(boxes[:, :2], boxes[:, 2:]), boxes.max(1)[:, None] * [1, 1]], 1
    )
    counts = np.array([draw(st.integers(0, 2)) for _ in range(n)], np.int64)
    words = np.array(
        [draw(st.sampled_from(WORDS.tolist())) for _ in range(counts.sum())], np.uint64
    )
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    both = np.array([draw(st.booleans()) for _ in range(n)], bool)
    return RegionSurvey(np.zeros(n, np.uint64), np.arange(n + 1), boxes, offsets, words, both)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[GridTable, GridTable, RegionSurvey]:
    side = draw(st.sampled_from((1, 2, 4)))
    old = table(draw, side)
    new = refined(old, side * draw(st.sampled_from((1, 2))))
    other = table(draw, len(new.cells))
    mask = np.array(
        draw(st.lists(st.booleans(), min_size=new.cells.size, max_size=new.cells.size))
    ).reshape(new.cells.shape)
    # Some cells of another table, whose maps come behind those of this one.
    cells = np.where(mask, np.where(other.cells < 0, other.cells - 2, other.cells), new.cells)
    return (
        old,
        sealed(
            new._replace(
                cells=cells,
                map_offsets=np.concatenate([new.map_offsets, other.map_offsets[1:] + 4]),
                map_words=np.concatenate([new.map_words, other.map_words]),
                map_shards=np.concatenate([new.map_shards, other.map_shards]),
                worker_offsets=np.concatenate([new.worker_offsets, other.worker_offsets[1:] + 2]),
                workers=np.concatenate([new.workers, other.workers]),
            )
        ),
        surveyed(draw),
    )


def copies(t: GridTable, s: RegionSurvey) -> list[set[int]]:
    rows, shards = place_rows(t, s)
    return [set(shards[rows == row].tolist()) for row in range(len(s.conjunction))]


@given(pairs())
def test_who_touches_no_changed_cell_stays(case: tuple[GridTable, GridTable, RegionSurvey]) -> None:
    old, new, survey = case
    cells = changed(old, new)
    assert cells is not None
    moving = touching(new, cells, survey.box_offsets, survey.boxes)
    before, after = copies(old, survey), copies(new, survey)
    for row in np.flatnonzero(~moving):
        assert before[row] == after[row]


@given(pairs(), st.lists(st.tuples(st.floats(-0.1, 1.1), st.floats(-0.1, 1.1)), max_size=20))
def test_finer_cells_have_the_same_owners(
    case: tuple[GridTable, GridTable, RegionSurvey], places: list[tuple[float, float]]
) -> None:
    old, _, survey = case
    fine = refined(old, 16)
    assert len(fine.cells) == 16
    for x, y in places:
        for word in (*WORDS, UNIVERSAL, np.uint64(99)):
            assert owner(old, x, y, word) == owner(fine, x, y, word)
    assert copies(old, survey) == copies(fine, survey)
    none = changed(old, fine)
    assert none is not None
    assert not none.any()


@given(pairs(), st.lists(st.tuples(st.floats(-0.1, 1.1), st.floats(-0.1, 1.1)), max_size=20))
def test_what_comes_to_a_shard_is_what_is_routed_there(
    case: tuple[GridTable, GridTable, RegionSurvey], places: list[tuple[float, float]]
) -> None:
    _, t, _ = case
    x, y = (np.array([p[i] for p in places], np.float64) for i in range(2))
    counts = np.arange(len(places)) % 3
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    words = np.resize(WORDS, offsets[-1])
    rows, shards = route_rows(t, x, y, offsets, words)
    for shard in range(SHARDS):
        mine: NDArray[np.bool_] = comes_to(t, shard, x, y, offsets, words)
        assert np.flatnonzero(mine).tolist() == rows[shards == shard].tolist()
    cells = cells_at(t, x, y)
    assert all(0 <= c < t.cells.size for c in cells)


@given(pairs())
def test_tables_that_differ_in_more_than_owners(
    case: tuple[GridTable, GridTable, RegionSurvey],
) -> None:
    t, *_ = case
    assert changed(t, t._replace(bounds=t.bounds + 1.0)) is None
    assert changed(t, t._replace(counts=t.counts + 1)) is None
    assert changed(t, t._replace(cells=np.zeros((3, 3), np.int32))) is None


def test_sums() -> None:
    assert summed(np.ones((2, 3))).tolist() == [[0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 4, 6]]
