"""The A-Grid of Tornado, its search and its partitions, against the paper and plain twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.routing import tornado_twins as twins
from tests.routing.tornado_twins import Rect

from nearcast.routing.grid.costs import cell_costs
from nearcast.routing.tornado.a_grid import Found, a_grid_of, cells_of, partitions_of
from nearcast.routing.tornado.grid_scan import grid_scan
from nearcast.routing.tornado.initialization import initial_partitions
from nearcast.routing.tornado.neighbour_search import neighbour_search
from nearcast.routing.tornado.r_tree import r_tree_of, r_tree_search
from nearcast.routing.tornado.split import COLUMNS, NONE, ROWS, best_split
from nearcast.routing.tornado.uniform import uniform_partitions

quick = settings(max_examples=60)
Grid = tuple[int, list[Rect]]


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """A grid and partitions that tile it, by random cuts."""
    side = draw(st.integers(1, 9))
    made: list[Rect] = [(0, 0, side - 1, side - 1)]
    for _ in range(draw(st.integers(0, 24))):
        at = draw(st.integers(0, len(made) - 1))
        cuts = twins.splits(made[at])
        if cuts:
            made[at], other = draw(st.sampled_from(cuts))
            made.append(other)
    return side, draw(st.permutations(made))


@st.composite
def grids_and_ranges(draw: st.DrawFn) -> tuple[Grid, list[Rect]]:
    grid = draw(grids())
    cell = st.integers(0, grid[0] - 1)
    one = st.tuples(cell, cell, cell, cell).map(
        lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3]))
    )
    return grid, draw(st.lists(one, max_size=6))


def boxes(rects: list[Rect]) -> NDArray[np.int32]:
    return np.array(rects, np.int32).reshape(-1, 4)


def rects(partitions: NDArray[np.int32]) -> list[Rect]:
    return [(a, b, c, d) for a, b, c, d in partitions.tolist()]


def lists_of(found: Found) -> list[list[int]]:
    return [found.partitions[a:b].tolist() for a, b in zip(found.offsets, found.offsets[1:])]


# -- search --------------------------------------------------------------------------------------

FIGURE_2 = {  # (b), as far as the text reports: cells that it names are in the partitions it names
    "A": (0, 2, 3, 6),
    "B": (4, 4, 6, 6),
    "C": (4, 0, 4, 3),
    "D": (5, 3, 6, 3),
    "E": (5, 0, 6, 2),
    "F": (0, 0, 3, 1),
}


def test_the_example_of_figure_2() -> None:
    names = list(FIGURE_2)
    grid = a_grid_of(boxes(list(FIGURE_2.values())), 7)
    for name, (x, y) in {"A": (2, 5), "B": (4, 5), "C": (4, 3), "D": (5, 3), "E": (5, 2)}.items():
        assert names[grid.cells[y, x]] == name
    assert names[grid.cells[1, 2]] == "F"
    assert names[grid.cells[1, 4]] == "C"  # right of (2, 1); the text calls it the bottom pointer
    found = neighbour_search(grid, boxes([(2, 1, 5, 5)]))
    assert sorted(found.partitions.tolist()) == [0, 1, 2, 3, 4, 5]
    assert found.steps[0] <= 1 + 2 * 6
    assert grid_scan(grid, boxes([(2, 1, 5, 5)])).steps[0] == 20


@quick
@given(grids_and_ranges())
@example(((1, [(0, 0, 0, 0)]), [(0, 0, 0, 0)]))
def test_searches_find_the_partitions_of_a_range(case: tuple[Grid, list[Rect]]) -> None:
    (side, partitions), some = case
    ranges = [*some, (0, 0, side - 1, side - 1), (0, side - 1, 0, side - 1)]
    grid = a_grid_of(boxes(partitions), side)
    near = neighbour_search(grid, boxes(ranges))
    scan = grid_scan(grid, boxes(ranges))
    tree = r_tree_search(r_tree_of(boxes(partitions)), boxes(ranges))
    wanted = [twins.routing_problem(partitions, r) for r in ranges]
    assert lists_of(near) == [twins.neighbor_search(partitions, r) for r in ranges]
    for found in (near, scan, tree):
        assert [sorted(one) for one in lists_of(found)] == wanted
    counts = np.diff(near.offsets)
    assert np.all(near.steps < 2 * counts)  # the corner, and two shortcuts of all but the last
    areas = [(r[2] - r[0] + 1) * (r[3] - r[1] + 1) for r in ranges]
    assert scan.steps.tolist() == areas
    assert np.all(counts <= areas)


def random_ranges(rng: np.random.Generator, n: int, side: int, length: int) -> NDArray[np.int32]:
    low = rng.integers(0, side - length, (n, 2))
    return np.hstack([low, low + rng.integers(0, length, (n, 2))]).astype(np.int32)


@pytest.mark.parametrize("evaluators", [4, 16, 64, 200])
def test_the_search_reads_fewer_cells_than_the_scan(
    evaluators: int, rng: np.random.Generator
) -> None:
    costs = np.zeros((100, 100), np.int64)
    np.add.at(costs, tuple(np.clip(rng.normal(50, 15, (2, 5000)).astype(int), 0, 99)), 1)
    grid = a_grid_of(initial_partitions(costs, evaluators), 100)
    ranges = random_ranges(rng, 500, 100, 20)
    near, scan = neighbour_search(grid, ranges), grid_scan(grid, ranges)
    assert [sorted(a) for a in lists_of(near)] == [sorted(a) for a in lists_of(scan)]
    assert near.steps.mean() * 4 < scan.steps.mean()


def test_steps_do_not_depend_on_the_side(rng: np.random.Generator) -> None:
    """Lemma 1."""
    ranges = random_ranges(rng, 200, 16, 9)
    partitions = uniform_partitions(16, 16)
    fine = partitions * 8 + np.array([0, 0, 7, 7], np.int32)
    wide = ranges * 8 + np.array([0, 0, 7, 7], np.int32)
    few = neighbour_search(a_grid_of(partitions, 16), ranges)
    many = neighbour_search(a_grid_of(fine, 128), wide)
    assert few.steps.tolist() == many.steps.tolist()
    assert grid_scan(a_grid_of(fine, 128), wide).steps.sum() > 60 * few.steps.sum()


def test_every_cell_a_partition() -> None:
    cells = [(x, y, x, y) for y in range(5) for x in range(5)]
    grid = a_grid_of(boxes(cells), 5)
    found = neighbour_search(grid, boxes([(1, 0, 3, 4)]))
    assert sorted(found.partitions.tolist()) == [5 * y + x for y in range(5) for x in (1, 2, 3)]


def test_no_ranges() -> None:
    grid = a_grid_of(boxes([(0, 0, 3, 3)]), 4)
    for found in (
        neighbour_search(grid, boxes([])),
        grid_scan(grid, boxes([])),
        r_tree_search(r_tree_of(grid.partitions), boxes([])),
    ):
        assert lists_of(found) == []


# -- partitions and cells ------------------------------------------------------------------------


@quick
@given(grids())
def test_cells_and_partitions_say_the_same(grid: Grid) -> None:
    side, partitions = grid
    made = boxes([*partitions, (0, 0, -1, -1)])  # the last evaluator has no cells
    cells = cells_of(made, side)
    for y in range(side):
        for x in range(side):
            assert [cells[y, x]] == twins.routing_problem(partitions, (x, y, x, y))
    assert partitions_of(cells, len(made)).tolist() == made.tolist()


@pytest.mark.parametrize(
    "partitions",
    [
        [(0, 0, 2, 1)],  # row 2 has none
        [(0, 0, 2, 2), (2, 2, 2, 2)],  # a cell twice
        [(0, 0, 2, 1), (0, 1, 2, 1)],  # nine cells, some twice
        [(0, 0, 3, 2)],
        [(-1, 0, 2, 2)],
        [],
    ],
)
def test_partitions_that_do_not_tile_are_refused(partitions: list[Rect]) -> None:
    with pytest.raises(ValueError, match="tile"):
        cells_of(boxes(partitions), 3)


def test_cells_that_are_no_rectangle_are_refused() -> None:
    with pytest.raises(ValueError, match="rectangle"):
        partitions_of(np.array([[0, 1], [1, 1]], np.int32), 2)


# -- costs and initialization --------------------------------------------------------------------

words = st.lists(st.sampled_from([3, 4, 8, 2**63]), max_size=3, unique=True)


@st.composite
def samples(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, list[int]]], list[Rect]]:
    side = draw(st.integers(1, 6))
    cell = st.integers(0, side - 1)
    objects = draw(st.lists(st.tuples(cell, cell, words), max_size=12))
    pairs = st.tuples(cell, cell).map(sorted)
    ranges = draw(st.lists(st.tuples(pairs, pairs), max_size=12))
    return side, objects, [(x[0], y[0], x[1], y[1]) for x, y in ranges]


def ragged(rows: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    offsets = np.append(0, np.cumsum([len(r) for r in rows])).astype(np.int64)
    return offsets, np.array([w for r in rows for w in r], np.uint64)


@quick
@given(samples(), st.data(), st.integers(0, 2), st.sampled_from([1, 30]))
def test_equation_1(
    sample: tuple[int, list[tuple[int, int, list[int]]], list[Rect]],
    data: st.DataObject,
    each: int,
    times: int,
) -> None:
    side, objects, ranges = sample
    objects, ranges = objects * times, ranges * times  # many: the way over the grid
    some = data.draw(words)
    queried = [some if i % 2 else [4] for i in range(len(ranges))]
    costs = cell_costs(
        side,
        np.array([o[0] for o in objects], np.int32),
        np.array([o[1] for o in objects], np.int32),
        ragged([o[2] for o in objects]),
        boxes(ranges),
        ragged(queried),
        each,
    )
    twin = twins.equation_1(side, objects, list(zip(ranges, queried, strict=True)), each)
    assert costs.tolist() == twin


small_costs = st.integers(1, 6).flatmap(
    lambda side: st.lists(
        st.lists(st.sampled_from([0, 0, 1, 2, 5, 100]), min_size=side, max_size=side),
        min_size=side,
        max_size=side,
    )
)


@quick
@given(small_costs, st.integers(1, 12))
def test_initial_partitions(costs: list[list[int]], evaluators: int) -> None:
    made = initial_partitions(np.array(costs, np.int64), evaluators)
    assert rects(made) == twins.initial_partitions(costs, evaluators)
    assert twins.is_tiling(rects(made), len(costs))


@quick
@given(small_costs)
def test_best_split(costs: list[list[int]]) -> None:
    side = len(costs)
    table = np.array(costs, np.int64)
    axis, at, difference = best_split(table.sum(axis=0), table.sum(axis=1), table.sum())
    cut = twins.best_split(costs, (0, 0, side - 1, side - 1))
    if cut is None:
        assert axis == NONE
        return
    a, b = (twins.equation_2(costs, part) for part in cut)
    assert difference == abs(a - b)
    assert (axis, at) == (
        (COLUMNS, cut[0][2] + 1) if cut[0][2] < side - 1 else (ROWS, cut[0][3] + 1)
    )


def test_without_a_sample_the_space_is_halved() -> None:
    made = initial_partitions(np.zeros((8, 8), np.int64), 4)
    assert sorted(rects(made)) == [(0, 0, 3, 3), (0, 4, 3, 7), (4, 0, 7, 3), (4, 4, 7, 7)]


def test_initial_partitions_are_better_than_uniform_ones(rng: np.random.Generator) -> None:
    costs = np.zeros((64, 64), np.int64)
    np.add.at(costs, tuple(np.clip(rng.normal(20, 8, (2, 20000)).astype(int), 0, 63)), 1)
    alpha = equation_3(costs, initial_partitions(costs, 16))
    assert alpha <= 1.3 * costs.sum() / 16
    assert alpha * 2 < equation_3(costs, uniform_partitions(64, 16))


def equation_3(costs: Any, partitions: Any) -> int:
    """Alpha: the cost of the costliest partition."""
    return max(twins.equation_2(costs.tolist(), p) for p in rects(partitions))


@pytest.mark.parametrize("side", [1, 2, 5, 16])
@pytest.mark.parametrize("evaluators", [1, 2, 3, 4, 6, 7, 12, 16, 23, 40])
def test_uniform_partitions(side: int, evaluators: int) -> None:
    made = rects(uniform_partitions(side, evaluators))
    assert len(made) == evaluators
    assert twins.is_tiling(made, side)
    assert sum(p[0] <= p[2] for p in made) == min(evaluators, side * side)


def test_uniform_partitions_are_equal() -> None:
    sizes = {(p[2] - p[0], p[3] - p[1]) for p in rects(uniform_partitions(12, 6))}
    assert sizes == {(3, 5)}
