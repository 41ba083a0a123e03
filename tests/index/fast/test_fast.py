"""FAST's structure: lists, tries and levels as its plain twin makes them, and its upkeep."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.fast.twin import Entry, Path, Twin, twin_of

from nearcast.index import Fast
from nearcast.index.arena import Memory
from nearcast.index.fast import nodes as nd
from nearcast.index.regions import lazy_deletion as lz
from nearcast.kernels import postings as pl
from nearcast.kernels import shared_lists as ls
from nearcast.kernels.bits import is_set
from nearcast.kernels.cells import key_in
from nearcast.kernels.hashing import word_hash
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.testing.cases import assert_same_story, publish, subscribe, unsubscribe, wanted
from nearcast.testing.drive import notifications, plan, step

RANGE = KINDS["range"]

Json = dict[str, Any]
LAST = 1_000_000


def small(x: float, y: float, where: str, size: float = 1.0) -> Json:
    return {"kind": "range", "region": {"bbox": [x, y, x + size, y + size]}, "where": where}


def loaded(queries: list[Json]) -> Fast:
    index = Fast(Space.PLANAR, Memory())
    for batch in plan(
        [subscribe(f"s{n}", 0, q) for n, q in enumerate(queries)], RANGE, Space.PLANAR
    ):
        step(index, batch)
        index.close()
    return index


def key_of(path: Path) -> np.uint64:
    (depth, column, row), words = path
    key = np.uint64(nd.cell_of(depth, column, row))
    for word in words:
        key = np.uint64(key_in(key, np.uint64(word)))
    return key


def listed(index: Fast, number: int) -> list[Entry]:
    s = index._fast.lists
    if number < 0:
        return []
    first, count = s.heads[number, [ls.FIRST, ls.COUNT]].tolist()
    return [
        (int(s.pool[e, 0]), tuple(s.boxes[e, 1:].tolist())) for e in range(first, first + count)
    ]


def uses(index: Fast, row: int) -> int:
    """How many entries count on the keyword of a node being frequent."""
    return int(index._fast.nodes[row, nd.MORE]) >> 32


def assert_same_structure(index: Fast, twin: Twin) -> None:
    f = index._fast
    numbers: dict[int, int] = {}
    for path, node in twin.nodes.items():
        row = pl.find(f.nodes, key_of(path))
        assert row >= 0
        number = nd.list_of(f, row)
        assert sorted(listed(index, number)) == sorted(node.entries or [])
        assert sorted(listed(index, nd.finals_of(f, row))) == sorted(node.finals)
        assert bool(nd.is_frequent(f, row)) == node.frequent
        assert uses(index, row) == node.uses
        if node.entries:
            assert numbers.setdefault(id(node.entries), number) == number
    assert np.count_nonzero(f.nodes[:, nd.KEY]) == f.meta[nd.NODES] == len(twin.nodes)
    lists = {id(n.entries): n.entries for n in twin.nodes.values() if n.entries}
    finals = sum(len(n.finals) for n in twin.nodes.values())
    assert f.lists.meta[ls.ENTRIES] == finals + sum(map(len, lists.values()))


# -- against the twin ----------------------------------------------------------------------------

wheres = st.sampled_from(
    ["a", "a", "b", "a AND b", "a AND b AND c", "b AND c", "a OR b", "NOT a", "a AND d", "",
     "a AND b AND c AND d AND e AND f AND g AND h AND i AND j"]
)  # fmt: skip
sizes = st.sampled_from([0.0, 0.5, 1.0, 3.0, 40.0])
corners = st.integers(-30, 30).map(float)
queries = st.builds(small, corners, corners, wheres, sizes)


@settings(max_examples=25)
@given(queried=st.lists(queries, min_size=1, max_size=150))
def test_the_structure_is_that_of_the_twin(queried: list[Json]) -> None:
    index = loaded(queried)
    assert_same_structure(index, twin_of(index, int(index._fast.meta[nd.SIDE])))


def test_the_structure_of_many(rng: np.random.Generator) -> None:
    source = Random(int(rng.integers(2**32)))
    words = "abcdefgh"
    queried = [
        small(
            source.uniform(0, 60),
            source.uniform(0, 60),
            " AND ".join(source.sample(words, source.choice((1, 1, 2, 3)))),
            source.choice((0.5, 2.0, 6.0)),
        )
        for _ in range(1500)
    ]
    index = loaded(queried)
    meta = index._fast.meta
    assert_same_structure(index, twin_of(index, int(meta[nd.SIDE])))
    assert meta[nd.DEEPEST] >= 2
    assert min(meta[[nd.SPLITS, nd.SHARED, nd.PUSHED]]) > 0


# -- by hand -------------------------------------------------------------------------------------


def node(index: Fast, *words: str) -> int:
    path = tuple(sorted(word_hash(w) for w in words))
    return int(pl.find(index._fast.nodes, key_of(((0, 0, 0), path))))


def test_a_keyword_becomes_frequent_when_its_list_outgrows_the_threshold() -> None:
    few = loaded([small(n, 0, "a") for n in range(nd.THRESHOLD)])
    assert not nd.is_frequent(few._fast, node(few, "a"))
    more = loaded([small(n, 0, "a") for n in range(nd.THRESHOLD + 1)])
    assert nd.is_frequent(more._fast, node(more, "a"))
    assert more._fast.meta[nd.SPLITS] == 1
    assert uses(more, node(more, "a")) == nd.THRESHOLD + 1


def test_with_a_full_list_a_subscription_moves_on_to_its_second_keyword() -> None:
    queried = [small(n, 0, "a") for n in range(nd.THRESHOLD)]
    queried += [small(n, 9, "b") for n in range(nd.THRESHOLD + 2)]  # b: more used than a
    queried += [small(0, 0, "a AND b"), small(0, 0, "a AND c")]
    index = loaded(queried)
    last = len(queried) - 1
    assert [slot for slot, _ in listed(index, nd.list_of(index._fast, node(index, "c")))] == [last]
    assert nd.is_frequent(index._fast, node(index, "a"))  # by a AND b, which had no list left
    both = listed(index, nd.list_of(index._fast, node(index, "a", "b")))
    assert [slot for slot, _ in both] == [last - 1]


def test_what_crowds_a_node_goes_down_and_neighbours_share_its_list() -> None:
    queried = [small(n - 0.5, -0.5, "a") for n in range(-20, nd.CROWDED - 19)]
    index = loaded(queried)
    meta = index._fast.meta
    assert meta[nd.PUSHED] == nd.CROWDED - nd.CROWDED // 2
    assert meta[nd.DEEPEST] == 1
    assert meta[nd.SHARED] > 0  # they lie on both sides of y = 0
    referred = index._fast.lists.heads[: index._fast.lists.meta[ls.HEADS], ls.REFERENCES]
    assert referred.max() > 1


def test_large_regions_stay_where_they_are() -> None:
    index = loaded([small(0, 0, "a", 50.0) for _ in range(5 * nd.CROWDED)] + [small(70, 70, "b")])
    assert index._fast.meta[nd.PUSHED] == 0
    finals = listed(index, nd.finals_of(index._fast, node(index, "a")))
    assert len(finals) == 5 * nd.CROWDED


def test_a_list_longer_than_the_scratch_is_read_once() -> None:
    log = [subscribe(f"s{n}", 0, small(0, 0, "a", 9.0)) for n in range(lz.HITS + 1)]
    log += [publish(f"o{n}", 1, 0.75, 0.5, "a") for n in range(3)]
    index = Fast(Space.PLANAR, Memory())
    (batch,) = plan(log, RANGE, Space.PLANAR)
    changes = step(index, batch)
    assert len(changes) == changes.work.scanned == changes.work.examined == 3 * (lz.HITS + 1)
    assert changes.work.lookups == 9  # the word that every object has is looked for as well


# -- upkeep --------------------------------------------------------------------------------------


def churned(count: int, later: int) -> tuple[Fast, list[Json], list[Json]]:
    """(index, log, reported): `count` subscriptions end, then `later` others come."""
    log = [subscribe(f"s{n}", 0, small(n % 7, 0, "a")) for n in range(count)]
    log += [publish("o", 1, 0.5, 0.5, "a")]
    log += [unsubscribe(f"s{n}", 2) for n in range(count)]
    log += [publish("p", 3, 0.5, 0.5, "a")]
    log += [subscribe(f"t{n}", 4, small(n % 7, 0, f"w{n}")) for n in range(later)]
    log += [publish("q", 5, 0.5, 0.5, "a")]
    index = Fast(Space.PLANAR, Memory())
    reported = []
    for batch in plan(log, RANGE, Space.PLANAR, cuts=(count + 1, 2 * count + 1, 2 * count + 2)):
        reported += notifications(index, step(index, batch), RANGE)
        index.close()
    return index, log, reported


def test_cleaning_takes_ended_ones_off_and_keywords_become_infrequent() -> None:
    index, log, reported = churned(20, 400)
    f = index._fast
    assert_same_story(reported, wanted(log, RANGE, Space.PLANAR))
    assert f.meta[nd.CLEANED] == index._lazy.meta[lz.REMOVED] == 20
    assert index._lazy.meta[lz.LEFT] == 20
    assert f.meta[nd.MERGED] == 1
    row = node(index, "a")
    assert row < 0 or not nd.is_frequent(f, row)
    assert f.lists.meta[ls.ENTRIES] == 400


def test_nothing_is_cleaned_before_an_object_came_after_the_end() -> None:
    log = [subscribe(f"s{n}", 0, small(n, 0, "a")) for n in range(20)]
    log += [publish("o", 1, 0.5, 0.5, "a")]
    log += [unsubscribe(f"s{n}", 2) for n in range(20)]
    log += [subscribe(f"t{n}", 4, small(n, 0, "b")) for n in range(200)]
    index = Fast(Space.PLANAR, Memory())
    for batch in plan(log, RANGE, Space.PLANAR, cuts=(21, 41)):
        step(index, batch)
        index.close()
    assert index._lazy.meta[lz.NOTED] == 20
    assert index._fast.meta[nd.CLEANED] == 0


def test_when_most_has_left_all_is_posted_anew() -> None:
    index, log, reported = churned(300, 600)
    assert_same_story(reported, wanted(log, RANGE, Space.PLANAR))
    (more,) = plan([subscribe("x", 9, small(0, 0, "x"))], RANGE, Space.PLANAR)
    assert index._fast.meta[nd.CLEANED] >= 300
    index._fast.meta[nd.CLEANED] = LAST
    step(index, more)
    index.close()
    assert index._fast.meta[nd.CLEANED] == 0
    assert_same_structure_of_living(index)


def assert_same_structure_of_living(index: Fast) -> None:
    """After a new beginning there are entries of what has not left, and of nothing else."""
    f = index._fast
    rows = np.flatnonzero(f.nodes[:, nd.KEY]).tolist()
    held = {s for r in rows for s, _ in listed(index, nd.list_of(f, r))}
    held |= {s for r in rows for s, _ in listed(index, nd.finals_of(f, r))}
    left = {s for s in range(len(index)) if is_set(index._lazy.left, s)}
    assert held == set(range(len(index))) - left


def test_late_objects_still_find_what_was_cleaned() -> None:
    log = [subscribe(f"s{n}", 0, small(0, 0, "a AND b")) for n in range(12)]
    log += [unsubscribe(f"s{n}", 20) for n in range(12)]
    log += [publish("after", 25, 0.5, 0.5, "a", "b")]
    log += [subscribe(f"t{n}", 30, small(9, 9, "z")) for n in range(100)]
    log += [publish("late", 10, 0.5, 0.5, "a", "b")]
    index = Fast(Space.PLANAR, Memory())
    reported = []
    for batch in plan(log, RANGE, Space.PLANAR, "arrival", cuts=range(12, len(log), 5)):
        reported += notifications(index, step(index, batch), RANGE)
        index.close()
    assert index._lazy.meta[lz.LEFT] == 12
    assert [n["object"] for n in reported] == ["late"] * 12
