"""Skype's cost model against brute force: walks, sizes of skybands, minima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.index.tops.policies import CostSkyband
from nearcast.index.tops.policies import cost as model


def solved(start: int, barrier: int, rise: float) -> float:
    """Moves from `start` to 0: the linear equations of the walk, one for each place."""
    rows = np.eye(barrier)
    for at in range(1, barrier + 1):
        up = min(at + 1, barrier)
        rows[at - 1, up - 1] -= rise
        if at > 1:
            rows[at - 1, at - 2] -= 1.0 - rise
    return float(np.linalg.solve(rows, np.ones(barrier))[start - 1])


@pytest.mark.parametrize("rise", [0.5, 0.4, 0.62])
@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 4), (3, 3), (5, 12), (20, 33)])
def test_equation_12_solves_the_walk(k: int, n: int, rise: float) -> None:
    window = 1000
    moved = solved(n - k + 1, 2 * n - k + 1, rise)
    found = float(model.expected_updates(k, np.asarray(float(n)), window, rise))
    assert found == pytest.approx(moved * window / n, rel=1e-6)
    if rise == 0.5:
        prob = n / window
        printed = 2 * (n - k + 1) * n / prob + (n - k + 1) * (n - k + 2) / prob
        assert found == pytest.approx(printed)


def test_a_walk_is_as_long_as_the_equation_says(rng: np.random.Generator) -> None:
    k, n, window = 3, 6, 60
    up, down, _ = model.step_probabilities(n / window)
    assert (up, down) == (0.05, 0.05)
    size, steps, walks = np.full(2_000, n), np.zeros(2_000), np.ones(2_000, bool)
    while walks.any():
        drawn = rng.random(2_000)
        size += walks & (drawn < up) & (size < 2 * n)
        size -= walks & (drawn > 1 - down)
        steps += walks
        walks &= size >= k
    expected = float(model.expected_updates(k, np.asarray(float(n)), window))
    assert steps.mean() == pytest.approx(expected, rel=0.1)


def test_a_walk_that_can_only_fall_or_rise() -> None:
    four = np.asarray(4.0)
    assert model.moves(four, np.asarray(9.0), 0.0) == 4
    assert model.moves(four, np.asarray(9.0), 1.0) == np.inf


def dominated_by(scores: np.ndarray, at: int) -> int:
    """Definition 10: as good or better, and newer; objects came in the order of the array."""
    return int(np.sum(scores[at + 1 :] >= scores[at]))


def test_the_size_of_a_skyband_is_as_expected(rng: np.random.Generator) -> None:
    k, n = 4, 40
    sizes = []
    for _ in range(300):
        scores = rng.random(n)
        sizes.append(sum(dominated_by(scores, at) < k for at in range(n)))
    expected = model.expected_skyband(k, n)
    assert np.mean(sizes) == pytest.approx(expected, rel=0.03)
    # The printed formula forgets the k that are always there.
    assert float(model.skyband_size(k, n)) + k == pytest.approx(expected, rel=0.08)


def test_costs_add_up_as_printed() -> None:
    k, n, window, search = 20, np.arange(20.0, 90.0), 5000.0, 3000.0
    upkeep = n / window * k * np.log(n / k)
    assert model.maintenance_cost(k, n, window) == pytest.approx(upkeep)
    again = search / model.expected_updates(k, n, window)
    assert model.reevaluation_cost(k, n, window, search) == pytest.approx(again)
    assert model.total_cost(k, n, window, search) == pytest.approx(upkeep + again)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([1, 2, 5, 20, 100]),
    st.sampled_from([1, 30, 700]),
    st.sampled_from([1.0, 40.0, 3e3, 1e6]),
    st.sampled_from([0.5, 0.3, 0.45, 0.55, 0.9]),
)
def test_the_best_size_is_the_best_of_all(k: int, window: int, search: float, rise: float) -> None:
    sizes = np.arange(k, max(window, k) + 1, dtype=float)
    costs = model.total_cost(k, sizes, float(window), search, rise)
    found = model.best_size(k, window, search, rise)
    assert costs[found - k] == pytest.approx(costs.min(), rel=1e-9)


@pytest.fixture
def learned() -> CostSkyband:
    policy = CostSkyband(1.0)
    policy.attach(np.zeros(8))
    return policy


def test_searches_that_cost_more_make_deeper_buffers(learned: CostSkyband) -> None:
    learned.flow(1000, 1000, 0)
    sizes = []
    for examined in (10, 10_000, 10_000_000):
        learned.attach(np.zeros(8))
        learned.flow(10_000, 10_000, 0)
        learned.searched(99, 99, first=True)
        learned.searched(10, examined, first=False)
        sizes.append(int(learned.depth(np.array([20]))[0]))
        assert learned.search == examined / 10
        assert sizes[-1] == model.best_size(20, 10_000, examined / 10)
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_rates_follow_the_recent_past(learned: CostSkyband) -> None:
    learned.flow(1000, 1000, 0)
    assert learned.rise == 0.5  # nothing left yet
    for _ in range(20):
        learned.flow(1000, 100, 100)
    assert learned.rise == pytest.approx(0.5, abs=0.01)
    for n in range(20):
        learned.flow(1000 - 50 * n, 50, 100)
    assert learned.rise == pytest.approx(1 / 3, abs=0.01)
    # Of what comes seldom and leaves often, a deeper buffer is due.
    learned.searched(1, 1000, first=True)
    assert learned.size(20) > model.best_size(20, 1000, 1000.0)
