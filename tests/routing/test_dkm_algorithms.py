"""Algorithms and equations of DkM-SKS against the paper's examples and their plain twins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.routing import dkm_twins as twins
from tests.routing.dkm_twins import EVERYWHERE, Obj, Sub, sample_of, survey_of

from nearcast.kernels.hashing import word_hash
from nearcast.kernels.ragged import frozen
from nearcast.routing.dealing import deal
from nearcast.routing.dkm.assignment import subscription_assignment, subset_assignment
from nearcast.routing.dkm.costs import (
    begin_box,
    hybrid_cost,
    hybrid_subset_cost,
    keyword_costs,
    new_memo,
    space_cost,
)
from nearcast.routing.dkm.counting import count_inside
from nearcast.routing.dkm.dkm_sks import subsets_wanted
from nearcast.routing.dkm.nearest import reach
from nearcast.routing.dkm.partitioning import subscription_partitioning
from nearcast.routing.dkm.places import FEW
from nearcast.routing.dkm.prepared import lay_out
from nearcast.routing.dkm.rectangles import most_overlapped, rectangles_of
from nearcast.routing.dkm.space import Subsets, space_oriented_partition, subset_of

quick = settings(max_examples=60)

# Few different values: ties, points on lines and equal words are what goes wrong.
coordinates = st.one_of(st.integers(0, 8).map(float), st.sampled_from([0.1, 3.999, 1e-300, -7.5]))
word_sets = st.frozensets(st.sampled_from([4, 8, 12, 2**63, 2**64 - 4]), max_size=3)
objects = st.lists(st.builds(Obj, coordinates, coordinates, word_sets), max_size=25)


@st.composite
def subscriptions(draw: st.DrawFn) -> Sub:
    x, y = draw(coordinates), draw(coordinates)
    radius = draw(st.sampled_from([0.0, 0.5, 1.0, 3.0, math.inf]))
    box = (x - radius, y - radius, x + radius, y + radius)
    return Sub(x, y, draw(word_sets), box)


many = st.lists(subscriptions(), min_size=1, max_size=25)
boxes = st.builds(
    lambda a, b, c, d: (min(a, c), min(b, d), max(a, c), max(b, d)), *[coordinates] * 4
) | st.just(EVERYWHERE)
whole_costs = st.lists(st.integers(1, 9).map(float), max_size=40)


def members_of(c: Subsets) -> list[list[int]]:
    return [c.order[a:b].tolist() for a, b in zip(c.first, c.last, strict=True)]


# -- the paper's examples ------------------------------------------------------------------------

FIGURE_2_OBJECTS = ["a b", "c", "d", "a e", "f", "b g h", "c e", "i", "i j"]
FIGURE_2_SUBSCRIPTIONS = ["a b c", "a c d", "a d", "b d", "c", "b", "b e", "a", "c e", "h"]


def words(text: str) -> frozenset[int]:
    return frozenset(word_hash(w) for w in text.split())


def test_figure_3_costs() -> None:
    made = lay_out(
        sample_of([Obj(0, 0, words(t)) for t in FIGURE_2_OBJECTS]),
        survey_of([Sub(0, 0, words(t), EVERYWHERE) for t in FIGURE_2_SUBSCRIPTIONS]),
    )
    costs = keyword_costs(made.vocabulary, made.subscriptions.wanted) / 9
    # Figure 3 says 0.56 for s3, which asks for a and d: 2/9 + 1/9.
    figure = [0.67, 0.56, 0.33, 0.33, 0.22, 0.22, 0.44, 0.22, 0.44, 0.11]
    assert costs.round(2).tolist() == figure


def test_example_3_assignment() -> None:
    # In ninths, with the figure's cost of s3.
    costs = np.array([6, 5, 5, 3, 2, 2, 4, 2, 4, 1], float)
    workers, loads = subscription_assignment(costs, 2)
    assert (np.flatnonzero(workers == 0) + 1).tolist() == [1, 6, 7, 9, 10]
    assert (np.flatnonzero(workers == 1) + 1).tolist() == [2, 3, 4, 5, 8]
    assert loads.tolist() == [17, 17]


def test_example_4_assignment() -> None:
    # Subsets in place of subscriptions; in hundredths.
    workers, loads = subscription_assignment(np.array([36, 11, 20, 28], float), 2)
    assert workers.tolist() == [0, 0, 1, 1]
    assert loads.tolist() == [47, 48]


FIGURE_6 = [12, 9, 10, 8, 8, 6, 16, 10, 8, 7]  # hundredths


def test_example_6_assignment() -> None:
    # The subsets of Figure 6 are a drawing. Of all ways to cut s1..s10 into five runs, this is the
    # only one that leads to the assignment of the example.
    subset = np.array([0, 0, 1, 1, 2, 2, 3, 4, 4, 4])
    workers, loads = subset_assignment(np.array(FIGURE_6, float), subset, 2)
    assert (np.flatnonzero(workers == 0) + 1).tolist() == [1, 3, 7, 8]
    assert (np.flatnonzero(workers == 1) + 1).tolist() == [2, 4, 5, 6, 9, 10]
    assert loads.tolist() == [48, 46]


# -- assignment ----------------------------------------------------------------------------------


@quick
@given(whole_costs, st.integers(1, 7))
def test_algorithm_1(costs: list[float], m: int) -> None:
    workers, loads = subscription_assignment(np.array(costs), m)
    assert (workers.tolist(), loads.tolist()) == twins.algorithm_1(costs, m)
    assert loads.tolist() == np.bincount(workers, costs, minlength=m).tolist()
    # The last one given to the fullest worker found it the emptiest: Graham's bound.
    most = max(costs, default=0)
    assert loads.max() - loads.min() <= most
    assert m * loads.max() <= sum(costs) + (m - 1) * most


@quick
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), max_size=30), st.integers(1, 5))
def test_algorithm_3(dealt: list[tuple[int, int]], m: int) -> None:
    numbers = sorted({subset for _, subset in dealt})
    subset = np.array([numbers.index(s) for _, s in dealt], np.int64)
    costs = [float(cost) for cost, _ in dealt]
    workers, loads = subset_assignment(np.array(costs), subset, m)
    sets = [np.flatnonzero(subset == i).tolist() for i in range(len(numbers))]
    assert (workers.tolist(), loads.tolist()) == twins.algorithm_3(costs, sets, m)


@quick
@given(st.lists(st.floats(0, 10), min_size=1, max_size=6), st.lists(st.floats(0, 10), max_size=20))
def test_dealing_on_top_of_loads(loads: list[float], costs: list[float]) -> None:
    before = np.array(loads)
    workers, after = deal(np.arange(len(costs)), np.array(costs, float), before)
    assert before.tolist() == loads
    assert workers.tolist() == twins.greedy(costs, list(range(len(costs))), loads)
    assert after.tolist() == loads


# -- equations -----------------------------------------------------------------------------------


@quick
@given(objects, many, boxes)
def test_equations_1_to_6(found: list[Obj], subs: list[Sub], box: twins.Box) -> None:
    v, p, s = lay_out(sample_of(found), survey_of(subs))
    r, memo = np.array(box), new_memo(len(v.frequency))
    assert keyword_costs(v, s.wanted).tolist() == [
        twins.equation_1(found, sub.words) for sub in subs
    ]
    assert space_cost(p, r) == twins.equation_2(found, box)
    begin_box(memo)
    assert [hybrid_cost(p, memo, s.wanted, i, r) for i in range(len(subs))] == [
        twins.equation_5(found, sub.words, box) for sub in subs
    ]
    each, around = np.zeros(len(subs)), np.array(twins.around(subs))
    of_all = hybrid_subset_cost(p, memo, s.wanted, np.arange(len(subs)), around, each)
    assert each.sum() == of_all
    assert of_all == twins.equation_6(found, subs)


@pytest.mark.parametrize("n", [0, 1, FEW, FEW + 1, 2 * FEW - 1, 2 * FEW, 2 * FEW + 1, 3 * FEW])
def test_counting_in_long_lists(n: int, rng: np.random.Generator) -> None:
    x, y = rng.integers(0, 40, (2, n)).astype(float)
    found = [Obj(a, b, frozenset([4])) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    v, p, _ = lay_out(sample_of(found), survey_of([]))
    for _ in range(200):
        a, b, c, d = rng.integers(-2, 43, 4).tolist()
        box = np.array([min(a, c), min(b, d), max(a, c), max(b, d)], float)
        right = ((x >= box[0]) & (x <= box[2]) & (y >= box[1]) & (y <= box[3])).sum()
        for word in range(len(v.frequency)):
            assert count_inside(p, word, box) == right


@quick
@given(st.lists(boxes, max_size=30), boxes)
@example([EVERYWHERE, (0, 0, 4, 4), (1, 1, 3, 3), (2, 2, 6, 6)], (1.5, 1.5, 2.5, 2.5))
def test_equation_7(plan: list[twins.Box], box: twins.Box) -> None:
    space = np.array([-8.0, -8.0, 9.0, 9.0])
    tree = rectangles_of(np.array(plan, float).reshape(-1, 4), space)
    cut = [(max(a, -8), max(b, -8), min(c, 9), min(d, 9)) for a, b, c, d in [*plan, box]]
    shares = [twins.overlap(r, cut[-1]) for r in cut[:-1]]
    row = most_overlapped(tree, np.array(box))
    if max(shares, default=0) == 0:
        assert row == -1
        return
    chosen = tuple(tree.boxes[row].tolist())
    areas = [twins.overlap(r, r) for r, s in zip(cut, shares, strict=False) if s == max(shares)]
    assert twins.overlap(chosen, cut[-1]) == max(shares)
    assert twins.overlap(chosen, chosen) == min(areas)


def test_equation_7_with_many_rectangles(rng: np.random.Generator) -> None:
    corner = rng.random((3000, 2))
    size = 2.0 ** -rng.integers(1, 12, (3000, 1))
    plan = np.hstack([corner, corner + size])
    tree = rectangles_of(plan, np.array([0.0, 0.0, 1.0, 1.0]))
    cut = np.minimum(plan, 1.0)
    for a, b in rng.random((100, 2)).tolist():
        box = np.array([a, b, a + 0.02, b + 0.02])
        right = max(twins.overlap(tuple(r), tuple(np.minimum(box, 1))) for r in cut.tolist())
        row = most_overlapped(tree, box)
        assert twins.overlap(tuple(tree.boxes[row]), tuple(np.minimum(box, 1))) == right


@quick
@given(objects, word_sets, st.integers(1, 6), coordinates, coordinates)
def test_reach(found: list[Obj], queried: frozenset[int], k: int, x: float, y: float) -> None:
    _, p, s = lay_out(sample_of(found), survey_of([Sub(x, y, queried, EVERYWHERE)]))
    assert reach(p, frozen(s.wanted.words), k, x, y) == twins.reach(found, queried, k, x, y)


# -- partitions ----------------------------------------------------------------------------------


@quick
@given(objects, many, st.integers(1, 30))
def test_space_oriented_partition(found: list[Obj], subs: list[Sub], target: int) -> None:
    _, p, s = lay_out(sample_of(found), survey_of(subs))
    c = space_oriented_partition(s, p, target)
    right = twins.space_oriented(found, subs, target)
    assert members_of(c) == [subset.members for subset in right]
    assert c.costs.tolist() == [subset.cost for subset in right]
    assert c.cells.tolist() == [list(subset.cell) for subset in right]


@quick
@given(objects, many, st.integers(2, 30), st.integers(0, 30))
@example([], [Sub(1, 1, frozenset(), EVERYWHERE)] * 9, 9, 4)  # one spot, more than gamma2
@example([], [Sub(1, 1, frozenset(), EVERYWHERE)] * 9, 9, 20)
@example([], [Sub(0.0, 1, frozenset(), EVERYWHERE), Sub(5e-324, 1, frozenset(), EVERYWHERE)], 2, 1)
def test_algorithm_2(found: list[Obj], subs: list[Sub], target: int, gamma2: int) -> None:
    v, p, s = lay_out(sample_of(found), survey_of(subs))
    memo = new_memo(len(v.frequency))
    c, costs = subscription_partitioning(s, p, memo, target, gamma2)
    right = twins.algorithm_2(found, subs, target, gamma2)
    assert members_of(c) == [subset.members for subset in right]
    boxes = [twins.around([subs[i] for i in subset.members]) for subset in right]
    assert [tuple(box) for box in c.boxes.tolist()] == boxes
    of = subset_of(c)
    assert costs.tolist() == [
        twins.equation_5(found, sub.words, boxes[of[i]]) for i, sub in enumerate(subs)
    ]
    if len(c.first) > 1:
        assert np.bincount(of, costs).tolist() == c.costs.tolist()
    if gamma2 >= len(subs):
        assert len(c.first) >= min(target, len(subs))


def test_gamma1_scales_with_the_subscriptions() -> None:
    assert subsets_wanted(10_000_000, 20, 0) == 2_000_000 == 100_000 * 20
    assert subsets_wanted(10_000_000, 20, 50) == 1000
    assert subsets_wanted(1000, 20, 100_000) == 1000
    assert subsets_wanted(200, 20, 0) == 80
    assert subsets_wanted(0, 20, 0) == 1


def test_rectangles_whose_area_is_no_number() -> None:
    boxes = np.array([[0.0, 0.0, 1e200, 1e200], [-1e308, -1e308, 1e308, 1e308], [0, 0, 1, 1]])
    tree = rectangles_of(boxes, np.array([-1e308, -1e308, 1e308, 1e308]))
    assert len(tree.boxes) == 4  # three and their root
    row = most_overlapped(tree, np.array([0.25, 0.25, 0.5, 0.5]))
    assert tree.boxes[row].tolist() == [0, 0, 1, 1]
