"""Chains of operations and new partitions: against plain Python, and on hot spots that jump."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.routing import tornado_twins as twins

from nearcast.kernels.ragged import frozen
from nearcast.routing.assignment import assigned
from nearcast.routing.grid.cells import summed
from nearcast.routing.tornado.a_grid import cells_of
from nearcast.routing.tornado.cell_loads import CellLoads, Plan, shard_costs
from nearcast.routing.tornado.chain import chain_of_pieces, chain_of_the_paper
from nearcast.routing.tornado.cuts import best_cuts
from nearcast.routing.tornado.decision import cells_after
from nearcast.routing.tornado.initialization import initial_partitions
from nearcast.routing.tornado.pieces import pieces_of
from nearcast.routing.tornado.rebalance import Settings
from nearcast.routing.tornado.repartition import repartition
from nearcast.routing.tornado.uniform import uniform_partitions

quick = settings(max_examples=60)
SIDE, SHARDS = 64, 4
Grid = NDArray[np.int64]
WAYS = (chain_of_the_paper, chain_of_pieces, repartition)


def grids(least: int, most: int) -> st.SearchStrategy[Grid]:
    def of(side: int) -> st.SearchStrategy[Grid]:
        row = st.lists(st.integers(least, most), min_size=side, max_size=side)
        return st.lists(row, min_size=side, max_size=side).map(np.array)

    return st.integers(1, 6).flatmap(of)


@quick
@given(grids(0, 2))
def test_rectangles_of_shards(cells: Grid) -> None:
    found = pieces_of(cells.astype(np.int32))
    wanted = twins.rectangles(cells.tolist())
    assert found.boxes.tolist() == [list(box) for box, _ in wanted]
    assert found.owners.tolist() == [owner for _, owner in wanted]


@quick
@given(grids(0, 9))
def test_the_best_assignment(worth: Grid) -> None:
    n = len(worth)
    found = assigned(worth)
    assert sorted(found.tolist()) == list(range(n))
    best = max(sum(worth[i, c] for i, c in enumerate(p)) for p in permutations(range(n)))
    assert worth[np.arange(n), found].sum() == best


@quick
@given(grids(0, 9), st.integers(0, 40), st.sampled_from([0.0, 0.5, 3.0]), st.data())
def test_the_best_part_to_hand_over(
    costs: Grid, cold: int, beta: float, data: st.DataObject
) -> None:
    side = len(costs)
    drawn = data.draw(st.lists(st.integers(0, 9), min_size=side * side, max_size=side * side))
    queries = np.array(drawn).reshape(side, side)
    box = (0, 0, side - 1, side - 1)
    hot = int(costs.sum()) + data.draw(st.integers(0, 20))
    found = best_cuts(
        frozen(np.array([box], np.int32)),
        frozen(summed(costs)),
        frozen(summed(queries)),
        hot,
        cold,
        2.0,
        beta,
    )
    table = costs.tolist(), queries.tolist()
    assert found.worth.max() == twins.best_part(*table, box, hot, cold, 2.0, beta)
    for part, worth in zip(found.boxes.tolist(), found.worth.tolist(), strict=True):
        cost, moved = (twins.equation_2(t, tuple(part)) for t in table)
        assert worth == 2.0 * (hot - max(hot - cost, cold + cost)) - beta * moved


# -- hot spots that jump -------------------------------------------------------------------------


def hot_spot(rng: np.random.Generator, at: tuple[float, float]) -> CellLoads:
    """Most costs around a place, queries everywhere."""
    costs, queries = np.zeros((2, SIDE, SIDE), np.int64)
    near = np.clip(rng.normal(at, 3, (9000, 2)).astype(int), 0, SIDE - 1)
    np.add.at(costs, (near[:, 1], near[:, 0]), 100)
    np.add.at(costs, tuple(rng.integers(0, SIDE, (2, 2000))), 100)
    np.add.at(queries, tuple(rng.integers(0, SIDE, (2, 20000))), 1)
    return CellLoads(costs, queries)


def worth_of(plan: Plan, cells: NDArray[np.int32], loads: CellLoads, s: Settings) -> float:
    before = shard_costs(cells, loads.costs, SHARDS).max()
    after = shard_costs(plan.cells, loads.costs, SHARDS).max()
    moved = loads.queries[plan.cells != cells].sum()
    return float(s.horizon * (before - after) - s.beta * moved)


@pytest.mark.parametrize("beta", [0.0, 5.0, 100.0])
@pytest.mark.parametrize("way", WAYS, ids=lambda w: w.__name__)
def test_plans_hold_what_they_say(way: object, beta: float, rng: np.random.Generator) -> None:
    assert callable(way)
    settings = Settings(beta, 1.2, horizon=10, rounds=32, rectangles=2)
    cells = cells_of(uniform_partitions(SIDE, SHARDS), SIDE)
    for at in ((50, 50), (20, 40), (40, 12)):
        loads = hot_spot(rng, at)
        plan = way(cells, SHARDS, loads, settings)
        if plan is None:
            assert beta == 100.0
            continue
        made = np.array(cells)
        for decision in plan.decisions:
            assert decision.before == tuple(shard_costs(made, loads.costs, SHARDS).tolist())
            made = cells_after(made, decision)
            assert decision.after == tuple(shard_costs(made, loads.costs, SHARDS).tolist())
            assert "C_r" in decision.reason
        assert np.array_equal(made, plan.cells)
        assert plan.worth == worth_of(plan, cells, loads, settings) > 0
        assert max(plan.after) < max(plan.before)
        assert len(pieces_of(plan.cells).boxes) <= SHARDS * settings.rectangles
        if way is not chain_of_pieces:
            assert len(pieces_of(plan.cells).boxes) == SHARDS
            cells = plan.cells
    assert way(cells, SHARDS, loads, Settings(beta, 7.0, 10, 32, 2)) is None


def test_pieces_move_little_and_leave_loads_even(rng: np.random.Generator) -> None:
    settings = Settings(50.0, 1.2, horizon=10, rounds=64, rectangles=8)
    cells = cells_of(uniform_partitions(SIDE, SHARDS), SIDE)
    shares, most = [], []
    for at in rng.uniform(5, 58, (12, 2)):
        loads = hot_spot(rng, (at[0], at[1]))
        plan = chain_of_pieces(cells, SHARDS, loads, settings)
        if plan is not None:
            cells = plan.cells
            shares.append(plan.moved / loads.queries.sum())
        after = shard_costs(cells, loads.costs, SHARDS)
        most.append(after.max() / after.mean())
        assert len(pieces_of(cells).boxes) <= SHARDS * settings.rectangles
    assert max(most) <= 1.2
    assert np.mean(shares) < 0.2


def test_a_move_that_costs_more_is_not_made(rng: np.random.Generator) -> None:
    """The same loads: with a dearer move fewer queries go, with a very dear one none."""
    loads = hot_spot(rng, (30.0, 12.0))
    cells = cells_of(initial_partitions(hot_spot(rng, (30.0, 50.0)).costs, SHARDS), SIDE)
    moved = []
    for beta in (0.0, 100.0, 300.0, 1e9):
        plan = chain_of_pieces(cells, SHARDS, loads, Settings(beta, 1.2, 10, 64, 8))
        moved.append(plan.moved if plan else 0)
    assert moved == sorted(moved, reverse=True)
    assert moved[0] > moved[-1] == 0
    long = chain_of_pieces(cells, SHARDS, loads, Settings(300.0, 1.2, 10**7, 64, 8))
    assert long is not None  # the same cost pays within a longer time


def test_new_partitions_stay_with_the_queries(rng: np.random.Generator) -> None:
    loads = hot_spot(rng, (50, 50))
    old = cells_of(uniform_partitions(SIDE, SHARDS), SIDE)
    plan = repartition(old, SHARDS, loads, Settings(0.0))
    assert plan is not None
    moved = []
    for order in permutations(range(SHARDS)):
        renamed = np.array(order, np.int32)[plan.cells]
        moved.append(int(loads.queries[renamed != old].sum()))
    assert plan.moved == min(moved)
    assert repartition(plan.cells, SHARDS, loads, Settings(0.0, 1.2)) is None
    assert repartition(old, SHARDS, loads, Settings(1e9)) is None
