"""`skype-location`: Algorithm 3, the tree it makes, and who is where by it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.routing import Sample
from nearcast.routing.skype.kd_tree import BY_X, BY_Y, leaf_of, leaves_of, pack, shard_of, unpack
from nearcast.routing.skype.skype_location import SkypeLocation
from nearcast.routing.skype.spatial_partition import best_cut, points, spatial_partition
from nearcast.wire.tables import TOPS

places = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), max_size=30)


def reals(values: list[int]) -> np.ndarray:
    return np.array(values, np.float64)


def test_a_cut_divides_the_cost_of_equation_15_evenly() -> None:
    """Four of five objects are on the right: so are few of the subscriptions."""
    x = reals([0, 1, 2, 3, 4, 5, 6, 7])
    cut = best_cut(points(x, np.zeros(8), reals([0, 7, 7, 6, 6]), np.zeros(5)), BY_X, 5)
    assert cut is not None
    assert (cut.value, cut.lower, cut.upper) == (5, 6 * 1 / 5, 2 * 4 / 5)


def test_without_objects_subscriptions_are_halved() -> None:
    of = points(reals([5, 1, 3, 2]), np.zeros(4), np.empty(0), np.empty(0))
    cut = best_cut(of, BY_X, 0)
    assert cut is not None
    assert cut.value == 2


@given(places, places, st.integers(-6, 6))
@settings(max_examples=40)
def test_no_other_line_is_better(subs: list[tuple[int, int]], objects: list[tuple[int, int]],
                                 other: int) -> None:  # fmt: skip
    x, y = (reals([p[n] for p in subs]) for n in (0, 1))
    ox, oy = (reals([p[n] for p in objects]) for n in (0, 1))
    cut = best_cut(points(x, y, ox, oy), BY_Y, len(objects))
    if cut is None:
        assert len(set(y.tolist())) <= 1
        return
    assert cut.value in y
    lower, upper = (y <= cut.value).sum(), (y > cut.value).sum()
    every = max(len(objects), 1)
    assert cut.lower == pytest.approx(lower * (oy <= cut.value).sum() / every)
    assert cut.upper == pytest.approx(upper * (oy > cut.value).sum() / every)
    assert lower
    assert upper
    if other in y and (y > other).any():
        low = (y <= other).sum() * (oy <= other).sum() / every
        high = (y > other).sum() * (oy > other).sum() / every
        assert abs(cut.lower - cut.upper) <= abs(low - high) + 1e-9


@given(places, places, st.integers(1, 9), places)
@settings(max_examples=40)
def test_leaves_are_a_partition_of_the_space(
    subs: list[tuple[int, int]],
    objects: list[tuple[int, int]],
    shards: int,
    anywhere: list[tuple[int, int]],
) -> None:
    x, y = (reals([p[n] for p in subs]) for n in (0, 1))
    ox, oy = (reals([p[n] for p in objects]) for n in (0, 1))
    tree = unpack(pack(spatial_partition(points(x, y, ox, oy), shards)))
    own = tree.shard[leaves_of(tree)]
    assert len(set(own.tolist())) == len(own) <= shards
    assert len(tree.axis) == 2 * len(own) - 1
    inner = tree.axis >= 0
    assert (tree.shard[inner] == -1).all()
    if len({*subs}) >= 2**9:
        assert len(own) == shards
    found = leaf_of(tree, x, y)
    for leaf in leaves_of(tree):  # Algorithm 3 leaves no leaf empty, if there is anybody
        assert not len(x) or (found == leaf).any()
    ax, ay = (reals([p[n] * 100 for p in anywhere]) for n in (0, 1))
    assert (tree.axis[leaf_of(tree, ax, ay)] == -1).all()


def test_axes_take_turns_and_shards_that_are_no_power_of_two_cost_the_same() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(0, 1, 3000), rng.normal(0, 1, 3000)
    for shards in (4, 6):
        tree = spatial_partition(points(x, y, x, y), shards)
        assert tree.axis[0] == BY_X
        assert tree.axis[tree.lower[0]] == tree.axis[tree.upper[0]] == BY_Y
        held = np.bincount(shard_of(tree, x, y), minlength=shards)
        cost = held * held / 3000
        assert cost.max() < 2.5 * cost.mean()


def controls(x: np.ndarray, y: np.ndarray) -> pa.RecordBatch:
    """Rows of TOPS with places alone."""
    table = pa.table({"x": x, "y": y}).to_batches()[0]
    assert set(table.schema.names) < set(TOPS.names)
    return table


def test_each_subscription_has_one_copy_and_each_object_goes_everywhere() -> None:
    """Table 2 of the paper: replication 1, and as many copies of an object as there are shards."""
    rng = np.random.default_rng(6)
    x, y = rng.normal(0, 1, 400), rng.normal(0, 1, 400)
    router = SkypeLocation(4)
    sample = Sample(x, y, np.zeros(401, np.int64), np.empty(0, np.uint64))
    survey = router.join([{"x": x[:100], "y": y[:100]}, {"x": x[100:], "y": y[100:]}], sample)
    planned = router.with_table(router.table_at(router.plan(sample, survey, {}), "anywhere"))
    placed = planned.place(controls(x, y), np.arange(400).astype(np.uint64))
    assert placed.rows.tolist() == list(range(400))
    assert placed.reports.all()
    assert set(placed.shards.tolist()) == {0, 1, 2, 3}
    assert planned.tree is not None
    assert placed.shards.tolist() == shard_of(planned.tree, x, y).tolist()
    # Neighbours share a shard: that is what it is for.
    order = np.lexsort((y, x))
    assert (np.diff(placed.shards[order]) == 0).mean() > 0.4
    assert planned.route(pa.record_batch({"x": x})) is None
