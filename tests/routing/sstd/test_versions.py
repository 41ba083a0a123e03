"""Versions of tree and mapping table: the three cases of SSTD 5.3, and one more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.sstd.sstd_twins import town
from tests.routing.sstd.test_balance import workloads_of

from nearcast.routing.sstd.adjustment import Settings, split_leaf
from nearcast.routing.sstd.draft import Node, flattened
from nearcast.routing.sstd.object_routing import lists_of, route_objects
from nearcast.routing.sstd.partitioning import Workloads
from nearcast.routing.sstd.qt_tree import QtTree
from nearcast.routing.sstd.versions import Versions

SPATIALLY, TEXTUALLY = Settings(epsilon=1.0), Settings(epsilon=0.0)
LOWER_LEFT = np.array([[0.1, 0.1, 0.2, 0.2]])  # of the unit square
EVERYWHERE = np.array([[0.0, 0.0, 1.0, 1.0]])


@pytest.fixture
def workloads(rng: np.random.Generator) -> Workloads:
    return workloads_of(rng, 200)


def made(root: Node, workloads: Workloads, *workers: int) -> QtTree:
    """The tree with these workers of its leaves."""
    for leaf, worker in zip(list(root.leaves()), workers, strict=True):
        leaf.shard = worker
    return flattened(root, workloads.j.bounds, workloads.j.lengths)


def quartered(workloads: Workloads, how: Settings = SPATIALLY) -> Node:
    root = workloads.root()
    assert split_leaf(workloads, root, how)
    return root


def test_the_leaf_was_a_leaf_of_another_worker(workloads: Workloads) -> None:
    root = quartered(workloads)
    versions = Versions(
        [0, 10], [made(root, workloads, 2, 0, 0, 0), made(root, workloads, 1, 0, 0, 0)]
    )
    assert versions.shards_for(LOWER_LEFT, 12, 15) == [1]
    assert versions.shards_for(LOWER_LEFT, 5, 15) == [1, 2]
    assert versions.shards_for(LOWER_LEFT, 5, 9) == [2]


def test_an_ancestor_was_a_leaf(workloads: Workloads) -> None:
    root = quartered(workloads)
    old = made(root, workloads, 3, 0, 0, 0)
    assert split_leaf(workloads, root.children[0], SPATIALLY)
    assert split_leaf(workloads, root.children[0].children[0], SPATIALLY)
    new = made(root, workloads, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0)
    versions = Versions([0, 10], [old, new])
    assert versions.shards_for(LOWER_LEFT, 5, 15) == [1, 2, 3]
    assert versions.shards_for(LOWER_LEFT, 10, 15) == [1, 2]


@pytest.mark.parametrize("how", [SPATIALLY, TEXTUALLY])
def test_descendants_were_leaves(workloads: Workloads, how: Settings) -> None:
    root = quartered(workloads)
    new = made(root, workloads, 5, 0, 0, 0)
    assert split_leaf(workloads, root.children[0], how)
    old = made(root, workloads, 1, 2, 3, 4, 0, 0, 0)
    versions = Versions([0, 10], [old, new])
    every = [1, 2, 3, 4, 5]
    whole = np.array([[0.1, 0.1, 0.4, 0.4]])
    assert versions.shards_for(whole, 5, 15) == every
    # Of spatial descendants only those that the ask overlaps can have its objects.
    assert versions.shards_for(LOWER_LEFT, 5, 15) == ([1, 5] if how is SPATIALLY else every)


def test_neither_was_a_leaf(workloads: Workloads) -> None:
    """Split by place, merged, split by words: the leaf has neither an ancestor nor a descendant
    among the old leaves, which the three cases leave open."""
    old = made(quartered(workloads, SPATIALLY), workloads, 1, 2, 3, 4)
    new = made(quartered(workloads, TEXTUALLY), workloads, 5, 6, 7, 8)
    versions = Versions([0, 10], [old, new])
    assert versions.shards_for(LOWER_LEFT, 5, 15) == [1, 5, 6, 7, 8]


def test_versions_in_order(workloads: Workloads) -> None:
    root = quartered(workloads)
    versions = Versions()
    for n in range(4):
        versions.add(made(root, workloads, n, n, n, n), 10 * n)
    with pytest.raises(ValueError, match="comes after"):
        versions.add(versions.trees[0], 30)
    assert versions.shards_for(EVERYWHERE, 9, 9) == [0]
    assert versions.shards_for(EVERYWHERE, 10, 10) == [1]
    assert versions.shards_for(EVERYWHERE, 15, 1000) == [1, 2, 3]
    assert versions.shards_for(EVERYWHERE, -5, 0) == [0]
    again = Versions.from_bytes(versions.to_bytes())
    versions.forget(20)
    assert versions.since == [20, 30]
    assert again.shards_for(EVERYWHERE, 0, 40) == [0, 1, 2, 3]
    again.forget(-3)
    assert again.since == [0, 10, 20, 30]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.booleans(), min_size=1, max_size=6))
def test_every_object_of_the_period_is_at_a_shard_that_is_named(
    seed: int, splits: list[bool]
) -> None:
    """Objects handled at any time of a changing tree; asks for any place and period."""
    rng = np.random.default_rng(seed)
    workloads = workloads_of(rng, 60)
    root, versions = workloads.root(), Versions()
    for n, by_place in enumerate(splits):
        leaves = list(root.leaves())
        split_leaf(
            workloads, leaves[rng.integers(len(leaves))], SPATIALLY if by_place else TEXTUALLY
        )
        workers = rng.integers(0, 5, len(list(root.leaves()))).tolist()
        versions.add(made(root, workloads, *workers), 10 * n)
    sample, _ = town(rng, 50)
    time = rng.integers(0, 10 * len(splits), 50)
    at = np.empty(50, np.int64)
    for n, tree in enumerate(versions.trees):
        mine = time // 10 == n
        at[mine] = tree.shard[route_objects(tree, lists_of(tree), *sample)][mine]
    for _ in range(20):
        x, y = rng.random(2)
        boxes = np.array([[x - 0.2, y - 0.2, x + 0.2, y + 0.2]])
        first, last = sorted(rng.integers(0, 10 * len(splits), 2).tolist())
        inside = (abs(sample.x - x) <= 0.2) & (abs(sample.y - y) <= 0.2)
        meant = inside & (first <= time) & (time <= last)
        assert set(at[meant].tolist()) <= set(versions.shards_for(boxes, first, last))
