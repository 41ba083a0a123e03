"""kNN by parts: asks in both ways, and continuous queries with a merger, beside the scan."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.objects.making import Post, Query, centres_of, objects_of, queries_of
from tests.routing.sstd.sstd_twins import town

from nearcast.index.arena import Memory
from nearcast.model.space import Space, distance
from nearcast.objects import STORES, ObjectStore, Scan
from nearcast.objects.base import Objects
from nearcast.objects.scan import Scan as Store
from nearcast.routing import ROUTERS, Sample
from nearcast.routing.sstd.nearest_by_parts import NearestLeaf, in_one_round, in_two_phases
from nearcast.routing.sstd.nearest_merge import OWN, RADII, Merger, Part
from nearcast.routing.sstd.object_routing import lists_of, route_objects
from nearcast.routing.sstd.qt_router import QtRouter
from nearcast.routing.sstd.qt_tree import QtTree
from nearcast.routing.sstd.versions import Versions

WORDS = [f"word{i}" for i in range(12)]
WHERES = ["", "word0", "word1 word2", "word3 OR word4", "NOT word0", "word5 AND NOT word1", "none"]
WORKERS = 4
PLANS = ["sstd", "sstd-quadtree", "sstd-text"]


def posts_of(rng: np.random.Generator, n: int = 300) -> list[Post]:
    """Posts in two heaps, some at one point, some at the edges of the world."""
    far = [(-180.0, 0.0), (180.0, 0.0), (179.9, 0.1), (-179.9, -0.1), (0.0, 89.9), (0.3, 0.3)]
    out = []
    for i in range(n):
        x, y = rng.normal(rng.choice([0.2, 0.7]), 0.1, 2).tolist()
        if i % 6 == 0:
            x, y = far[rng.integers(len(far))]
        held = {WORDS[w]: 1 for w in np.minimum(rng.zipf(1.4, 3) - 1, 11).tolist()}
        out.append(Post(x, y, i, held))
    return out


def tree_of(rng: np.random.Generator, router: str, theta: int) -> QtTree:
    """A tree by other objects than those that come."""
    sample, survey = town(rng, 300)
    made = ROUTERS[router](WORKERS)
    assert isinstance(made, QtRouter)
    tree = made.with_table(made.plan(sample, survey, {"theta": float(theta)}).data).tree
    assert tree is not None
    return tree


def some(o: Objects, rows: NDArray[np.int64]) -> Objects:
    """Some of the objects, in their order."""
    store = Store(Space.PLANAR, Memory())
    store.add(o)
    handles = np.array(store.nearest(
        queries_of([Query(k=len(o.x))]), centres_of([Query(k=len(o.x))])).handles)  # fmt: skip
    every = store.rows(handles)
    order = np.argsort(every.rank)
    return store.rows(handles[order[rows]])


def workers_of(tree: QtTree, o: Objects) -> NDArray[np.int64]:
    leaves = route_objects(tree, lists_of(tree), o.x, o.y, o.word_offsets, o.words)
    return tree.shard[leaves].astype(np.int64)


@pytest.mark.parametrize("router", PLANS)
@pytest.mark.parametrize("space", list(Space))
@pytest.mark.parametrize("name", STORES)
def test_asks_equal_the_scan(
    name: str, space: Space, router: str, rng: np.random.Generator
) -> None:
    """In two phases and in one round, over two versions of the tree."""
    whole, _ = objects_of(posts_of(rng))
    old, new = tree_of(rng, router, 8), tree_of(rng, router, 20)
    versions = Versions([0, 150], [old, new])
    at = np.where(whole.time < 150, workers_of(old, whole), workers_of(new, whole))
    stores: list[ObjectStore] = [STORES[name](space, Memory()) for _ in range(WORKERS)]
    for worker, store in enumerate(stores):
        store.add(some(whole, np.flatnonzero(at == worker)))
    scan = Scan(space, Memory())
    scan.add(whole)
    first = NearestLeaf(new)
    for _ in range(25):
        x, y = posts_of(rng, 1)[0][:2] if rng.random() < 0.3 else rng.random(2).tolist()
        ask = Query(
            int(rng.choice([-1, 20, 149, 150, 200])), int(rng.choice([100, 150, 299])),
            where=str(rng.choice(WHERES)), at=(x, y), k=int(rng.choice([1, 3, 10, 500])),
        )  # fmt: skip
        queries, centres = queries_of([ask]), centres_of([ask])
        right = scan.nearest(queries, centres)
        wanted = list(zip(right.value.tolist(), right.rank.tolist(), strict=True))
        phased = in_two_phases(first, versions, stores, queries, centres)
        assert [hit[:2] for hit in phased.near] == wanted
        assert len(set(phased.visited)) == len(phased.visited)
        round_ = in_one_round(stores, queries, centres, range(WORKERS))
        assert [hit[:2] for hit in round_.near] == wanted


def test_a_near_answer_spares_the_workers_far_away() -> None:
    """Hand-made: a quadtree over four heaps; one heap has all that is wanted."""
    x = np.repeat([0.1, 0.9, 0.1, 0.9], 25)
    y = np.repeat([0.1, 0.1, 0.9, 0.9], 25)
    posts = [Post(a, b, i, {"word0": 1}) for i, (a, b) in enumerate(zip(x, y, strict=True))]
    whole, _ = objects_of(posts)
    router = ROUTERS["sstd-quadtree"](WORKERS)
    assert isinstance(router, QtRouter)
    router.bounds = (0.0, 0.0, 1.0, 1.0)
    _, survey = town(np.random.default_rng(1), 200)
    sample = Sample(whole.x, whole.y, whole.word_offsets, whole.words)
    tree = router.with_table(router.plan(sample, survey, {"theta": 4.0}).data).tree
    assert tree is not None
    at = workers_of(tree, whole)
    stores: list[ObjectStore] = [STORES["curve"](Space.PLANAR, Memory()) for _ in range(WORKERS)]
    for worker, store in enumerate(stores):
        store.add(some(whole, np.flatnonzero(at == worker)))
    versions = Versions([0], [tree])

    def visited(where: str, k: int) -> tuple[list[int], float]:
        ask = Query(where=where, at=(0.1, 0.11), k=k)
        got = in_two_phases(
            NearestLeaf(tree), versions, stores, queries_of([ask]), centres_of([ask])
        )
        return got.visited, got.radius

    home = int(at[0])
    assert visited("word0", 10)[0] == [home]
    assert visited("word0", 10)[1] == pytest.approx(0.01)
    assert sorted(visited("word0", 60)[0]) == [0, 1, 2, 3]  # fewer than k there: all are visited
    assert visited("word0", 60)[1] == np.inf
    assert sorted(visited("none", 1)[0]) == [0, 1, 2, 3]


def definition(
    space: Space, posts: list[Post], ask: Query
) -> tuple[list[int], list[tuple[int, int]]]:
    """The result of a continuous query in plain Python, and (entered, left) in object order."""
    held: list[tuple[float, int]] = []
    changes = []
    for rank, post in enumerate(posts):
        if not ask.after < post.time <= ask.until or not _true(ask.where, set(post.words)):
            continue
        d = distance(space.code, *ask.at, post.x, post.y)
        if len(held) == ask.k and not d < held[-1][0]:
            continue
        out = held.pop()[1] if len(held) == ask.k else -1
        held = sorted([*held, (d, rank)])
        changes.append((rank, out))
    return [rank for _, rank in held], changes


def _true(where: str, words: set[str]) -> bool:
    return {
        "": True,
        "word0": "word0" in words,
        "word1 word2": {"word1", "word2"} <= words,
        "word3 OR word4": bool({"word3", "word4"} & words),
        "NOT word0": "word0" not in words,
        "word5 AND NOT word1": "word5" in words and "word1" not in words,
        "none": False,
    }[where]


@pytest.mark.parametrize("way", [RADII, OWN])
@pytest.mark.parametrize("space", list(Space))
@pytest.mark.parametrize("batch", [1, 7, 300])
def test_continuous_queries_equal_the_definition(
    space: Space, way: str, batch: int, rng: np.random.Generator
) -> None:
    posts = posts_of(rng)
    whole, _ = objects_of(posts)
    asks = [
        Query(
            int(rng.choice([-1, 40])), int(rng.choice([200, 1000])), where=str(rng.choice(WHERES)),
            at=tuple(rng.random(2).tolist()), k=int(rng.choice([1, 2, 5, 1000])),
        )
        for _ in range(40)
    ]  # fmt: skip
    queries, centres = queries_of(asks), centres_of(asks)
    parts = [Part(space, queries, centres, way) for _ in range(WORKERS)]
    merger = Merger(centres.k)
    at = workers_of(tree_of(rng, "sstd", 16), whole)
    reported: list[list[tuple[int, int]]] = [[] for _ in asks]
    sent = 0
    for first in range(0, len(posts), batch):
        rows = np.arange(first, min(first + batch, len(posts)))
        offers = [p.offers(some(whole, rows[at[rows] == w])) for w, p in enumerate(parts)]
        sent += sum(len(o.query) for o in offers)
        changes, back = merger.take(offers)
        for query, entered, left in zip(*(c.tolist() for c in changes), strict=True):
            reported[query].append((entered, left))
        if way == RADII:
            for part, (who, radius) in zip(parts, back, strict=True):
                part.within(who, radius)
    for i, ask in enumerate(asks):
        wanted, right = definition(space, posts, ask)
        assert [rank for _, rank in merger.result(i)] == wanted
        assert reported[i] == right
    assert sent >= sum(len(t) for t in reported)


def test_a_worker_that_was_told_sends_no_more() -> None:
    """Hand-made: of five objects ever farther away the merger wants one."""
    posts = [Post(float(i), 0.0, i, {"a": 1}) for i in range(6)]
    whole, _ = objects_of(posts)
    ask = Query(where="a", at=(0.0, 0.0), k=1)
    queries, centres = queries_of([ask]), centres_of([ask])
    part, merger = Part(Space.PLANAR, queries, centres), Merger(centres.k)
    sent = []
    for i in range(6):
        offers = part.offers(some(whole, np.array([i])))
        sent.append(len(offers.query))
        part.within(*merger.take([offers])[1][0])
    assert sent == [1, 1, 0, 0, 0, 0]  # the second one is left out, and the radius sent
    assert merger.result(0) == [(0.0, 0)]
