"""What is looked at for an object, and a sample drawn by it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.routing import Sample
from nearcast.routing.grid.survey import RegionSurvey
from nearcast.routing.ps2stream.hybrid import Ps2Stream
from nearcast.routing.ps2stream.nodes import root
from nearcast.routing.ps2stream.pairs import drawn, pairs_of, weights_of
from nearcast.routing.ps2stream.workload import lay_out

places = st.integers(0, 6)
objects = st.lists(st.tuples(places, places, st.sets(st.integers(0, 5))), max_size=12)
posted = st.lists(st.tuples(places, places, places, places, st.integers(0, 5)), max_size=20)


@given(objects, posted)
def test_pairs_are_boxes_around_an_object_under_its_terms(
    some: list[tuple[int, int, set[int]]], boxes: list[tuple[int, int, int, int, int]]
) -> None:
    found = pairs_of(
        np.array([o[0] for o in some], float),
        np.array([o[1] for o in some], float),
        (
            np.cumsum([0, *(len(o[2]) for o in some)], dtype=np.int64),
            np.array([t for o in some for t in sorted(o[2])], np.int64),
        ),
        np.array([b[:4] for b in boxes], float).reshape(-1, 4),
        np.array([b[4] for b in boxes], np.int64),
    )
    right = [
        sum(b[4] in words and b[0] <= x <= b[2] and b[1] <= y <= b[3] for b in boxes)
        for x, y, words in some
    ]
    assert found.tolist() == right


@given(st.lists(st.floats(0.01, 100.0), max_size=40))
def test_rows_are_drawn_as_often_as_their_weight_says(weights: list[float]) -> None:
    w = np.array(weights)
    rows = drawn(w)
    assert len(rows) == len(w)
    counts = np.bincount(rows, minlength=len(w))
    assert np.all(np.abs(counts - len(w) * w / max(w.sum(), 1e-9)) <= 2.0)


def test_no_object_stands_for_all_others() -> None:
    costs = np.zeros(1_000)
    costs[500:] = 1.0
    weights = weights_of(costs)
    rows = drawn(weights)
    assert (weights.mean() / weights[rows]).max() < 25.0
    assert 0 not in rows  # the first is drawn no more often than any other
    assert np.mean(rows < 500) == pytest.approx(0.025, abs=0.002)  # 0.05 of the mean, 0.5
    assert weights_of(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_a_crowded_place_weighs_more_than_an_empty_one() -> None:
    n = 400
    x = np.where(np.arange(n) % 2, 0.25, 0.75) + np.linspace(0.0, 0.1, n)
    sample = Sample(x, np.linspace(0.0, 1.0, n), np.arange(n + 1), np.full(n, 4, np.uint64))
    # All queries lie in the left half.
    boxes = np.tile([0.0, 0.0, 0.5, 1.0], (100, 1))
    survey = RegionSurvey(
        np.arange(100).astype(np.uint64),
        np.arange(101),
        boxes,
        np.arange(101),
        np.full(100, 4, np.uint64),
        np.ones(100, bool),
    )
    usual = Ps2Stream.parameters | {"c1": 0.01, "c2": 1.0, "side": 8.0}
    weighed, counted = (lay_out(sample, survey, usual | {"pairs": p}) for p in (1.0, 0.0))
    left = [np.count_nonzero(w.column < 4) / n for w in (weighed, counted)]
    assert left[1] == 0.5
    # An object costs c2, and in the left half twice the mean of c1 · |Q| besides: 3 to 1.
    assert abs(left[0] - 0.75) < 0.02
    assert root(weighed).load == pytest.approx(root(counted).load)
