"""DP, GR, SI and RA against their plain twins and against every possible choice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.routing import ps2stream_adjust_twins as twins

from nearcast.routing.ps2stream.adjust.dp import dp
from nearcast.routing.ps2stream.adjust.gr import gr
from nearcast.routing.ps2stream.adjust.phase2 import SELECTORS, load_to_move
from nearcast.routing.ps2stream.adjust.ra import ra
from nearcast.routing.ps2stream.adjust.selection import Selection
from nearcast.routing.ps2stream.adjust.si import si

quick = settings(max_examples=150)
loads = st.integers(0, 12).map(float)
few_cells = st.lists(st.tuples(loads, st.integers(0, 9)), max_size=9)
cells = st.lists(st.tuples(loads, st.integers(0, 10**9)), max_size=60)
amounts = st.integers(0, 60).map(float)


def run(name: str, of: list[tuple[float, int]], tau: float, seed: int = 0) -> Selection:
    found = SELECTORS[name](np.array([g[0] for g in of]), sizes(of), tau, seed)
    assert found.load == sum(of[g][0] for g in found.cells)
    assert found.size == sum(of[g][1] for g in found.cells)
    assert sorted(set(found.cells.tolist())) == found.cells.tolist()
    return found


def sizes(of: list[tuple[float, int]]) -> np.ndarray:
    return np.array([g[1] for g in of], np.int64)


@quick
@given(few_cells, amounts)
@example([(5.0, 3), (5.0, 3)], 5.0)
@example([(1.0, 0), (2.0, 0)], 3.0)
def test_dp_is_optimal(of: list[tuple[float, int]], tau: float) -> None:
    found = run("DP", of, tau)
    best = twins.definition_4([g[0] for g in of], [g[1] for g in of], tau)
    assert best == twins.dynamic_programming([g[0] for g in of], [g[1] for g in of], tau)
    assert found.exact
    assert found.reached == (best is not None)
    assert found.size == (best or 0)


@quick
@given(few_cells, st.integers(1, 60).map(float))
def test_gr_follows_the_paper_and_is_within_twice_the_best(
    of: list[tuple[float, int]], tau: float
) -> None:
    found = run("GR", of, tau)
    if found.reached:
        plain = twins.greedy([g[0] for g in of], [g[1] for g in of], tau)
        assert found.cells.tolist() == plain
        best = twins.definition_4([g[0] for g in of], [g[1] for g in of], tau)
        assert best is not None
        assert best <= found.size <= 2 * best


@quick
@given(cells, st.integers(1, 500).map(float), st.integers(0, 2**63))
def test_si_and_ra_take_cells_in_order(of: list[tuple[float, int]], tau: float, seed: int) -> None:
    its_loads, its_sizes = [g[0] for g in of], [g[1] for g in of]
    if sum(its_loads) >= tau:
        assert run("SI", of, tau).cells.tolist() == twins.size_based(its_loads, its_sizes, tau)
        chosen = run("RA", of, tau, seed).cells.tolist()
        assert chosen == twins.random_choice(its_loads, tau, seed)


@pytest.mark.parametrize("name", SELECTORS)
@quick
@given(cells, amounts)
def test_all_reach_tau_where_it_can_be(name: str, of: list[tuple[float, int]], tau: float) -> None:
    found = run(name, of, tau)
    assert found.reached == (sum(g[0] for g in of) >= tau)
    assert found.load >= tau if found.reached else len(found.cells) == 0
    assert found.steps <= len(of) or name == "DP"


@quick
@given(cells, amounts)
def test_none_is_smaller_than_dp(of: list[tuple[float, int]], tau: float) -> None:
    best = run("DP", of, tau)
    assert best.exact
    assert all(run(name, of, tau).size >= best.size for name in SELECTORS)


@pytest.mark.parametrize("name", SELECTORS)
@quick
@given(st.lists(st.tuples(st.floats(0, 1e9), st.integers(0, 10**6)), max_size=20), st.floats(0, 1))
def test_any_loads(name: str, of: list[tuple[float, int]], share: float) -> None:
    """Sums of fractions depend on their order; the choice must not fail over the last bit."""
    its_loads = np.array([g[0] for g in of])
    tau = float(its_loads.sum()) * share
    found = SELECTORS[name](its_loads, sizes(of), tau, 0)
    assert found.reached
    assert found.load >= tau * (1 - 1e-12) - 1e-300


@pytest.mark.parametrize("name", SELECTORS)
def test_no_cells(name: str) -> None:
    assert run(name, [], 0.0).reached
    assert not run(name, [], 1.0).reached


@pytest.mark.parametrize("name", SELECTORS)
def test_one_cell_larger_than_tau(name: str) -> None:
    assert run(name, [(100.0, 7)], 3.0).cells.tolist() == [0]


def test_ties_go_to_the_cell_that_comes_first() -> None:
    alike = [(2.0, 4)] * 5
    assert run("GR", alike, 4.0).cells.tolist() == [0, 1]
    assert run("SI", alike, 4.0).cells.tolist() == [0, 1]
    assert run("DP", alike, 4.0).cells.tolist() == [0, 1]


def test_a_cell_that_tops_up_may_come_later_in_the_scan() -> None:
    # By S/L: g0 (1/10) is GS, g1 (5/30) and g2 (3/15) are GL: {g0, g2} is smaller than {g0, g1}.
    of = [(10.0, 1), (30.0, 5), (15.0, 3)]
    found = run("GR", of, 20.0)
    assert found.cells.tolist() == [0, 2]
    assert found.steps == 3


def test_si_takes_the_largest_and_ra_depends_on_the_seed_alone() -> None:
    of = [(1.0, g) for g in range(40)]
    assert run("SI", of, 3.0).cells.tolist() == [37, 38, 39]
    choices = {tuple(run("RA", of, 3.0, seed).cells) for seed in range(20)}
    assert len(choices) > 15
    assert run("RA", of, 3.0, 7).cells.tolist() == run("RA", of, 3.0, 7).cells.tolist()


def test_dp_gives_gr_where_it_would_grow_too_large() -> None:
    rng = np.random.default_rng(4)
    its_loads, its_sizes = rng.random(200), rng.integers(1, 10**12, 200)
    tau = its_loads.sum() / 3
    large = dp(its_loads, its_sizes, tau, limit=50)
    assert not large.exact
    assert large.cells.tolist() == gr(its_loads, its_sizes, tau).cells.tolist()


@pytest.mark.parametrize("n", [60, 1000])
def test_dp_needs_no_small_sizes(n: int) -> None:
    rng = np.random.default_rng(5)
    its_loads, its_sizes = rng.integers(1, 1000, n).astype(float), rng.integers(1, 10**12, n)
    tau = float(its_loads.sum() // 4)
    best = dp(its_loads, its_sizes, tau)
    assert best.exact
    for other in (gr, si, ra):
        assert other(its_loads, its_sizes, tau).size >= best.size


def test_tau_is_the_least_that_keeps_the_constraint() -> None:
    assert load_to_move(100.0, 20.0, 1.5) == pytest.approx(28.0)  # 72 = 1.5 · 48
    assert load_to_move(100.0, 20.0, 1.0) == 40.0
    assert load_to_move(100.0, 90.0, 1.5) == 0.0
    assert load_to_move(100.0, 0.0, 1.5) == 40.0
