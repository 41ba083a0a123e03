"""The QT-tree is what it says: cells tile the space, an object has one leaf, queries reach it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.grid_twins import Log, logs
from tests.routing.sstd.sstd_twins import PlainTree, leaves_of_box, town

from nearcast.kernels.hashing import hash_ids
from nearcast.model.standing import Seen
from nearcast.routing import ROUTERS
from nearcast.routing.base import Sample
from nearcast.routing.grid.survey import survey_of
from nearcast.routing.sstd.cells import WHOLE
from nearcast.routing.sstd.draft import draft_of, flattened
from nearcast.routing.sstd.object_routing import lists_of, route_objects
from nearcast.routing.sstd.qt_router import QtRouter
from nearcast.routing.sstd.qt_tree import (
    LEAF,
    SPATIAL,
    TEXTUAL,
    QtTree,
    cell_of,
    child_key,
    leaves_of,
    pack,
    sealed,
    unpack,
)
from nearcast.routing.sstd.query_routing import query_leaves
from nearcast.wire.tables import lists, numbers, object_columns, strings

NAMES = ("sstd", "sstd-quadtree", "sstd-text")
usual = settings(max_examples=20, deadline=None)
by_name = pytest.mark.parametrize("name", NAMES)


def make(name: str, shards: int) -> QtRouter:
    router = ROUTERS[name](shards)
    assert isinstance(router, QtRouter)
    return router


def planned(name: str, log: Log, shards: int, theta: float = 16.0) -> QtRouter:
    words = lists(log.objects["words"], np.uint64)
    sample = Sample(numbers(log.objects["x"]), numbers(log.objects["y"]), *words)
    offsets, data = strings(log.controls["id"])
    survey = survey_of(log.controls, hash_ids(data, offsets))
    router = make(name, shards)
    return router.with_table(router.plan(sample, survey, {"theta": theta}).data)


def town_tree(name: str, rng: np.random.Generator, **parameters: float) -> QtTree:
    router = make(name, 4)
    tree = router.with_table(router.plan(*town(rng), parameters).data).tree
    assert tree is not None
    return tree


def check_tree(tree: QtTree, theta: int) -> None:
    """Children tile their parent's cell, or share it; keys say where a node is; words ascend."""
    assert cell_of(tree, 0) == WHOLE
    met = [0]
    for n in range(len(tree.kind)):
        kind, first = int(tree.kind[n]), int(tree.child[n])
        assert (kind == LEAF) == (first < 0) == (tree.shard[n] >= 0)
        words = tree.words[tree.word_offsets[n] : tree.word_offsets[n + 1]]
        assert (words[1:] > words[:-1]).all()
        assert kind == TEXTUAL or not len(words)
        if kind == LEAF:
            continue
        cell = cell_of(tree, n)
        cells = [cell_of(tree, c) for c in range(first, first + 4)]
        assert cells == (cell.quarters() if kind == SPATIAL else [cell] * 4)
        keys = tree.key[first : first + 4].tolist()
        assert keys == [child_key(int(tree.key[n]), kind, c) for c in range(4)]
        met += range(first, first + 4)
    assert sorted(met) == list(range(len(tree.kind)))  # every node has one parent
    assert theta <= len(leaves_of(tree)) < theta + 3


@by_name
def test_a_tree_of_a_town(name: str, rng: np.random.Generator) -> None:
    tree = town_tree(name, rng, theta=40.0)
    check_tree(tree, 40)
    kinds = set(tree.kind.tolist())
    wanted = {"sstd": {SPATIAL, TEXTUAL}, "sstd-quadtree": {SPATIAL}, "sstd-text": {TEXTUAL}}
    assert kinds == wanted[name] | {LEAF}
    assert set(tree.shard[leaves_of(tree)].tolist()) == {0, 1, 2, 3}


def test_without_asks_words_gain_nothing(rng: np.random.Generator) -> None:
    """Only SRQ and SKQ look at keywords: equation 2 then always splits by place."""
    assert set(town_tree("sstd", rng, asks=0.0).kind.tolist()) == {LEAF, SPATIAL}


def test_a_tree_as_bytes_and_as_nodes(rng: np.random.Generator) -> None:
    tree = town_tree("sstd", rng)
    for again in (
        unpack(pack(tree)),
        flattened(draft_of(tree)[0], tree.bounds, tree.lengths),
    ):
        for name, array in tree._asdict().items():
            assert getattr(again, name).dtype == array.dtype
            assert np.array_equal(getattr(again, name), array)


@pytest.mark.parametrize("wrong", [np.float64, np.int64])
def test_words_that_lost_bits_are_refused(wrong: type, rng: np.random.Generator) -> None:
    tree = town_tree("sstd", rng)
    with pytest.raises(TypeError, match="words of a QT-tree must be uint64"):
        sealed(tree._replace(words=tree.words.astype(wrong)))


@by_name
@pytest.mark.parametrize("learn", [False, True])
def test_objects_go_where_the_paper_says(name: str, learn: bool, rng: np.random.Generator) -> None:
    """Against plain Python, on real hashes, with objects that the plan has not seen."""
    tree = town_tree(name, rng)
    sample, _ = town(rng, 200)
    changing, plain = lists_of(tree), PlainTree(tree)
    found = route_objects(tree, changing, *sample, learn=learn)
    for i, leaf in enumerate(found.tolist()):
        words = sample.words[sample.word_offsets[i] : sample.word_offsets[i + 1]].tolist()
        assert plain.route(float(sample.x[i]), float(sample.y[i]), words, learn) == leaf
    assert set(found.tolist()) <= set(leaves_of(tree).tolist())
    assert changing.objects.tolist() == plain.count
    before = lists_of(tree)._asdict()
    same = all(np.array_equal(before[name], a) for name, a in changing._asdict().items())
    assert same == (not learn or name == "sstd-quadtree")


@by_name
def test_queries_reach_all_leaves_that_they_overlap(name: str, rng: np.random.Generator) -> None:
    tree = town_tree(name, rng)
    _, survey = town(rng, 100, 0.1)
    two = np.arange(0, 101, 2)  # of two boxes each
    survey = survey._replace(box_offsets=two, conjunction=survey.conjunction[:50])
    rows, leaves = query_leaves(tree, survey)
    for row in range(50):
        found = leaves[rows == row].tolist()
        boxes = survey.boxes[2 * row : 2 * row + 2].tolist()
        assert sorted(found) == sorted(set().union(*(leaves_of_box(tree, b) for b in boxes)))


@by_name
@usual
@given(log=logs(), later=logs(), shards=st.sampled_from((1, 2, 3, 5)))
def test_no_match_is_missed_or_reported_twice(name: str, log: Log, later: Log, shards: int) -> None:
    """Every object is at one shard, and that shard has every subscription it may match."""
    router = planned(name, log, shards)
    assert router.tree is not None
    check_tree(router.tree, 16)
    for events in (log, later):  # also for words and places that the plan has not seen
        offsets, data = strings(events.controls["id"])
        placed = router.place(events.controls, hash_ids(data, offsets))
        copies = set(zip(placed.rows.tolist(), placed.shards.tolist(), strict=True))
        assert len(copies) == len(placed.rows)
        routes = router.route(events.objects)
        assert routes is not None
        assert routes.rows.tolist() == list(range(len(events.published)))
        columns = object_columns(events.objects)
        seen = [router.sees(shard, columns) for shard in range(shards)]
        for o, event in enumerate(events.published):
            at = int(routes.shards[o])
            assert [s for s in range(shards) if seen[s][o]] == [at]  # type: ignore[index]
            as_seen = Seen(event.id, event.time, event.x, event.y, event.keywords, event.time)
            for s, queried in enumerate(events.queried):
                if queried.query.matches(as_seen):
                    assert (s, at) in copies
