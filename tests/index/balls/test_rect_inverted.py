"""The subsets of `rect-inverted` and their rectangles, and what they spare."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearcast.index import RectInverted
from nearcast.index.arena import Memory
from nearcast.index.balls.groups import GROUPS, NODES, THETA, Groups
from nearcast.index.balls.post import make_scratch, tighten
from nearcast.index.posting import CHANGED, DIVIDED
from nearcast.kernels import results as rs
from nearcast.kernels.quarters import Quarters, divide, leaf_of
from nearcast.kinds import KINDS
from nearcast.model.extent import circle_boxes
from nearcast.model.space import Space
from nearcast.testing.cases import assert_same_story, publish, subscribe, wanted
from nearcast.testing.drive import notifications, plan, run_index, step
from nearcast.wire.changes import Work

KNN = KINDS["knn"]

Json = dict[str, Any]
Point = tuple[float, float]
LAST = 1_000_000


def divided(points: list[Point], theta: int = THETA) -> tuple[int, Quarters]:
    tree = Quarters(np.zeros((NODES, 2)), np.zeros((NODES, 4), np.int32))
    at = np.array(points, np.float64).reshape(-1, 2)
    return divide(tree, at[:, 0].copy(), at[:, 1].copy(), theta), tree


# -- the division into subsets ------------------------------------------------------------------

coordinates = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 5e-324, -1e300, 1e300, 180.0, -180.0]),
    st.floats(-1e300, 1e300),
)
places = st.tuples(coordinates, coordinates)


@settings(max_examples=25)
@given(points=st.lists(places, max_size=60), elsewhere=places)
def test_every_place_falls_into_one_subset(points: list[Point], elsewhere: Point) -> None:
    count, tree = divided(points)
    assert {leaf_of(tree, *p) for p in points} == set(range(count)) or not points
    assert 0 <= leaf_of(tree, *elsewhere) < count
    assert count >= min(THETA, len(set(points)))
    assert count <= max(1, min(GROUPS, len(set(points))))


def test_the_most_populous_subspace_is_split() -> None:
    corners = [(0.0, 0.0), (8.0, 0.0), (0.0, 8.0), (8.0, 8.0)]
    dense = [(5.0, 5.0), (5.0, 7.0), (7.0, 5.0)]
    count, tree = divided(corners + dense, 5)
    assert count == 7
    assert len({leaf_of(tree, *p) for p in dense}) == 3
    assert leaf_of(tree, 1.0, 1.0) == leaf_of(tree, 3.9, 3.9) == leaf_of(tree, 0.0, 0.0)


def test_a_quarter_without_subscriptions_belongs_to_the_one_beside_it() -> None:
    count, tree = divided([(0.0, 0.0), (8.0, 0.0), (0.0, 8.0)], 2)
    assert count == 3
    assert leaf_of(tree, 8.0, 8.0) == leaf_of(tree, 0.0, 8.0)


def test_what_is_at_one_spot_stays_whole() -> None:
    assert divided([(1.0, 2.0)] * 50)[0] == 1
    assert divided([])[0] == 1


# -- the rectangles -----------------------------------------------------------------------------


def random_log(
    source: np.random.Generator, space: Space, subscriptions: int, objects: int
) -> list[Json]:
    """Subscriptions everywhere, for one or two words, and objects of up to three."""
    rng = Random(int(source.integers(2**32)))
    wide, high = (180.0, 90.0) if space is Space.GEOGRAPHIC else (1000.0, 1000.0)

    def place() -> Point:
        x = rng.choice((rng.uniform(-wide, wide), wide, -wide, wide - 1e-3))
        return x, rng.choice((rng.uniform(-high, high), high, -high))

    log = []
    for i in range(subscriptions):
        query = {"kind": "knn", "at": place(), "k": rng.choice((1, 2)), "where": rng.choice("abc")}
        log.append(subscribe(f"s{i}", 0, query))
    for i in range(objects):
        log.append(publish(f"o{i}", 1 + i, *place(), *rng.sample("abc", rng.choice((1, 3)))))
    return log


def rectangles(index: RectInverted) -> Groups:
    return index._groups()


def balls(index: RectInverted, slot: int) -> NDArray[np.float64]:
    """The boxes of B(s), a row each."""
    x, y, reach = index._results.state.reals[slot, [rs.X, rs.Y, rs.REACH]]
    if not reach < np.inf:
        return np.array([[-np.inf, -np.inf, np.inf, np.inf]])
    out = np.empty((2, 4))
    return out[: circle_boxes(index.space.code, x, y, reach, out)]


def group_of(index: RectInverted, slot: int) -> int:
    return int(index._results.state.half[slot, rs.POSTED])


def around(index: RectInverted, group: int) -> list[float]:
    """R as its definition says."""
    members = [s for s in range(len(index)) if group_of(index, s) == group]
    if not members:
        return [np.inf, np.inf, -np.inf, -np.inf]
    boxes = np.concatenate([balls(index, s) for s in members])
    return [*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0)]


@pytest.mark.parametrize("space", list(Space))
def test_rectangles_enclose_all_balls(space: Space, rng: np.random.Generator) -> None:
    log = random_log(rng, space, 60, 400)
    index = RectInverted(space, Memory())
    for batch in plan(log, KNN, space, cuts=range(60, 460, 50)):
        step(index, batch)
        index.close()
        for group in range(GROUPS):
            box, right = rectangles(index).boxes[group], around(index, group)
            assert (box[:2] <= right[:2]).all()
            assert (box[2:] >= right[2:]).all()
    tighten(index._index, index._results.state, space.code, make_scratch(), rectangles(index))
    for group in range(GROUPS):
        assert rectangles(index).boxes[group].tolist() == around(index, group)


def test_rectangles_are_made_anew_after_as_many_changes_as_subscriptions() -> None:
    log = [subscribe(f"s{x}", 0, {"kind": "knn", "at": [x, 0], "k": 1}) for x in range(3)]
    log += [publish(f"o{i}", 1 + i, 0.0, 8.0 - i) for i in range(3)]
    index = RectInverted(Space.PLANAR, Memory())
    counted, finite = [], []
    for batch in plan(log, KNN, Space.PLANAR, cuts=(4, 5)):
        step(index, batch)
        index.close()
        counted.append(int(index._post_meta[CHANGED]))
        finite.append(bool(np.isfinite(rectangles(index).boxes[:3]).all()))
    assert counted == [3, 0, 3]
    assert finite == [False, True, True]


def test_four_times_as_many_subscriptions_are_divided_anew(rng: np.random.Generator) -> None:
    log = random_log(rng, Space.PLANAR, 50, 0)
    for i, event in enumerate(log):
        event["time"] = i
    index = RectInverted(Space.PLANAR, Memory())
    divisions = []
    for batch in plan(log, KNN, Space.PLANAR, cuts=(2, 7, 8, 31, 32)):
        step(index, batch)
        index.close()
        divisions.append(int(index._post_meta[DIVIDED]))
    assert divisions == [2, 2, 8, 8, 32, 32]
    assert len({group_of(index, s) for s in range(len(index))}) >= THETA


# -- what they spare ----------------------------------------------------------------------------


def far_apart() -> list[Json]:
    """Two by two subscriptions in two corners, and objects that make their balls small."""
    log: list[Json] = []
    for name, x in (("left", -500.0), ("right", 500.0)):
        for i in range(2):
            query = {"kind": "knn", "at": [x + i, x], "k": 1, "where": "a"}
            log.append(subscribe(f"{name}{i}", 0, query))
        log += [publish(f"near-{name}{i}", 1 + i, x, x + 3 - i, "a") for i in range(4)]
    return log


def work_of(more: list[Json]) -> Work:
    """Work for more objects, all of one batch."""
    log = far_apart() + more
    index = RectInverted(Space.PLANAR, Memory())
    first, second = plan(log, KNN, Space.PLANAR, cuts=(len(log) - len(more),))
    reported = notifications(index, step(index, first), KNN)
    index.close()
    changes = step(index, second)
    reported += notifications(index, changes, KNN)
    assert_same_story(reported, wanted(log, KNN, Space.PLANAR))
    return changes.work


def test_objects_outside_every_rectangle_cost_nothing() -> None:
    work = work_of([publish("far", LAST, 0.0, 0.0, "a")])
    assert work == Work(examined=0, lookups=0, scanned=0)


def test_objects_inside_meet_the_subscriptions_of_their_subset_with_a_word() -> None:
    assert work_of([publish("both", LAST, -500.0, -500.0, "a")]).examined == 2
    assert work_of([publish("one", LAST, -498.5, -500.0, "a")]).examined == 1
    assert work_of([publish("one", LAST, -498.5, -500.0, "a", "b")]).examined == 1
    assert work_of([publish("none", LAST, -498.5, -500.0, "b")]).examined == 0


def test_every_subscription_of_a_list_is_examined() -> None:
    """As published, an entry has no box: what is in R meets those with smaller balls, too."""
    log = []
    for i in range(100):
        query = {"kind": "knn", "at": [0, 0], "k": 1, "where": "a OR b" if i % 2 else "a"}
        log.append(subscribe(f"s{i}", 0, query))
    objects = [(1, 0, "a"), (0.5, 0, "b"), (2, 2, "a"), (0.9, 0, "a")]
    log += [publish(f"o{i}", 1 + i, *o) for i, o in enumerate(objects)]
    index = RectInverted(Space.PLANAR, Memory())
    examined, changes = [], []
    for batch in plan(log, KNN, Space.PLANAR, cuts=range(101, 104)):
        found = step(index, batch)
        examined.append(found.work.examined)
        changes.append(len(found))
        index.close()
    assert changes == [100, 100, 0, 100]
    assert examined[1:] == [50, 0, 100]


@pytest.mark.parametrize("space", list(Space))
def test_nothing_is_missed_at_edges(space: Space, rng: np.random.Generator) -> None:
    log = random_log(rng, space, 80, 300)
    reported = run_index("rect-inverted", log, KNN, space, range(0, 380, 90))
    assert_same_story(reported, wanted(log, KNN, space))
