"""`groups` of `terms`: who is in a group, what its tables hold, and that nothing depends on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.contract import as_text

from nearcast.engine.options.settings import Settings
from nearcast.engine.spark.warm import load_kernels
from nearcast.index.arena import Memory
from nearcast.kernels.hashing import word_hash
from nearcast.kinds import KINDS
from nearcast.kinds.terms import alike, moments
from nearcast.kinds.terms import shared_tables as tables
from nearcast.kinds.terms.alike import bunches, keys_of, shareable
from nearcast.kinds.terms.groups import Groups
from nearcast.model.expression import evaluate
from nearcast.model.predicate import contains
from nearcast.model.space import Space
from nearcast.objects.base import Queries, Regions
from nearcast.testing.cases import publish, subscribe
from nearcast.testing.drive import Batch, keep, notifications, plan, run_index
from nearcast.testing.oracle import Order, replay

Json = dict[str, Any]
TERMS = KINDS["terms"]
PLANE, EARTH = Space.PLANAR, Space.GEOGRAPHIC
WORDS = [f"w{n}" for n in range(40)]


def query(region: Json, **fields: Any) -> Json:
    return {"kind": "terms", "region": region, "k": 3, "window": 20, "every": 7, **fields}


def box(x: float, y: float, half: float = 4.0) -> Json:
    return {"bbox": [x - half, y - half, x + half, y + half]}


def crowd(rng: Random, subscriptions: int, objects: int, circles: bool = False) -> list[Json]:
    """Like subscriptions around the origin, some others, and objects there for a long time."""
    log: list[Json] = []
    for n in range(subscriptions):
        x, y = rng.uniform(-0.9, 0.9), rng.uniform(-0.9, 0.9)
        region = box(x, y)
        if circles and n % 3 == 0:
            region = {"circle": {"at": [x, y], "radius": 4.0}}
        elif circles and n % 3 == 1:
            corners = [[x - 4, y - 4], [x + 4, y - 4], [x + 4, y + 4], [x - 4, y + 4]]
            region = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
        more: Json = {"where": "w1 OR w2 OR NOT w3"} if n % 5 == 0 else {}
        if n % 4 == 0:
            more["exclude"] = ["w0", "w7"]
        log.append(subscribe(f"s{n}", rng.randint(0, 5), query(region, **more)))
    for n in range(objects):
        words = rng.sample(WORDS, rng.randint(0, 6)) + ["w0"] * rng.randint(0, 1)
        x, y = rng.uniform(-7, 7), rng.uniform(-7, 7)
        log.append(publish(f"o{n}", 10 + n // 4, x, y, *words))
    return log


def run(index: Groups, batches: list[Batch]) -> Iterator[list[Json]]:
    """What each batch reports; the index is looked at in between, before the batch is closed."""
    for batch in batches:
        index.apply(batch.controls, batch.at)
        index.carry(batch.carried)
        keep(index, batch)
        found = []
        for piece in index.matching(batch.objects, batch.clock, batch.now):
            found += notifications(index, piece, TERMS)
        yield found
        index.close()


def held(index: Groups, group: int) -> tuple[Counter[int], list[Counter[int]]]:
    """The tables of a group, by the definition: of all regions, and of the rest of each."""
    g = index._groups
    row = g.rows[group]
    slots = g.members[group * tables.MOST : group * tables.MOST + int(row[tables.MEMBERS]), 0]
    controls, _ = index.rows(slots)
    made: list[Any] = [TERMS.standing(one, index.space) for one in controls.to_pylist()]
    common: Counter[int] = Counter()
    rests: list[Counter[int]] = [Counter() for _ in made]
    objects = index.past.rows(every_handle(index))
    for n in range(len(objects.x)):
        if not row[tables.AGED] < objects.time[n]:
            continue
        words = objects.words[objects.word_offsets[n] : objects.word_offsets[n + 1]].tolist()
        x, y = float(objects.x[n]), float(objects.y[n])
        inside = [
            contains(index.space, m.region, x, y) and evaluate(m.where, dict.fromkeys(words, 1))
            for m in made
        ]
        if all(inside):
            common.update(words)
        else:
            for rest, is_in in zip(rests, inside, strict=True):
                rest.update(words if is_in else [])
    return common, rests


def every_handle(index: Groups) -> Any:
    far, none = np.array([2**60]), (np.zeros(2, np.int64), np.empty(0, np.uint64))
    world = np.array([-1e300, -1e300, 1e300, 1e300])
    if index.space is EARTH:
        world = np.array([-180.0, -90.0, 180.0, 90.0])
    regions = Regions(np.zeros(1, np.int64), np.array([0, 4]), world, none[0], np.empty(0))
    queries = Queries(-far, far, far, *none, *none, np.array([True]))
    return index.past.within(queries, regions, np.zeros(1, np.int64)).handles


def check_tables(index: Groups) -> int:
    """Compare all tables with the definition; how many groups there are."""
    g = index._groups
    alive = np.flatnonzero(g.rows[:, tables.ALIVE]).tolist()
    for group in alive:
        common, rests = held(index, group)
        first = group * (tables.MOST + 1)
        assert counted(g, first) == common
        for member, rest in enumerate(rests):
            if g.members[group * tables.MOST + member, 1]:
                assert counted(g, first + 1 + member) == rest
    return len(alive)


def counted(g: tables.Groups, table: int) -> Counter[int]:
    words, counts = tables.words_in(g, table)
    return Counter(dict(zip(words.tolist(), counts.tolist(), strict=True)))


@pytest.mark.parametrize("circles", [False, True])
@pytest.mark.parametrize("space", [PLANE, EARTH])
def test_tables_hold_what_all_regions_have_in_common_and_the_rest_of_each(
    space: Space, circles: bool
) -> None:
    """After every batch, on real hashes; objects have come and grown too old by then."""
    log = crowd(Random(3), 24, 300, circles and space is PLANE)
    assert min(word_hash(word) for word in WORDS) > 2**33  # not small numbers
    batches = plan(log, TERMS, space, cuts=range(24, len(log), 30))
    index = Groups(space, Memory())
    groups = [check_tables(index) for _ in run(index, batches)]
    assert groups[-1] > 0
    figures = index.figures()
    assert figures["groups"] == groups[-1]
    assert figures["in_groups"] > 20  # some may wait for others
    assert figures["groups"] < figures["in_groups"] / 2


def test_an_object_in_the_common_part_is_counted_once() -> None:
    log = [subscribe(f"s{n}", 0, query(box(n / 100, 0.0), window=5)) for n in range(10)]
    log += [publish("o", 30, 0, 0, "a", "b"), publish("edge", 31, -3.955, 0, "c")]
    log += [publish("later", 33, 99, 99, "d")]
    index = Groups(PLANE, Memory())
    for _ in run(index, plan(log, TERMS, PLANE, cuts=(10,))):
        pass
    g = index._groups
    assert np.count_nonzero(g.rows[:, tables.ALIVE]) == 1
    own = {word_hash(w): 1 for w in ("a", "b", "any")}
    assert counted(g, 0) == own
    rest = [set(counted(g, 1 + member)) for member in range(10)]
    assert [word_hash("c") in r for r in rest] == [n <= 4 for n in range(10)]
    assert check_tables(index) == 1


def test_who_ends_leaves_and_who_comes_joins() -> None:
    log = [subscribe(f"s{n}", 0, query(box(0.1 * n / 16, 0.0))) for n in range(16)]
    log += [publish(f"o{n}", 30 + n, 0, 0, "a") for n in range(40)]
    log += [subscribe(f"t{n}", 75, query(box(0.05, 0.0))) for n in range(3)]
    log += [publish(f"p{n}", 76 + n, 0, 0, "b") for n in range(40)]
    log += [subscribe(f"u{n}", 120, query(box(0.05, 0.0))) for n in range(8)]
    log += [publish(f"q{n}", 121 + n, 0, 0, "c") for n in range(40)]
    log += [{"op": "unsubscribe", "id": f"s{n}", "time": 165} for n in range(16)]
    log += [publish(f"r{n}", 166 + n, 0, 0, "d") for n in range(40)]
    index = Groups(PLANE, Memory())
    sizes = []
    for _ in run(index, plan(log, TERMS, PLANE, cuts=range(16, len(log), 5))):
        check_tables(index)
        sizes.append((index.figures()["groups"], index.figures()["in_groups"]))
    assert (1, 16) in sizes
    assert (1, 19) not in sizes  # three wait: they are less than half of sixteen
    assert (1, 27) in sizes
    assert sizes[-1] == (1, 11)


def test_a_full_group_stays_and_the_next_one_is_opened() -> None:
    log = [subscribe(f"s{n}", 0, query(box(0.0, 0.0))) for n in range(tables.MOST + 9)]
    log += [publish(f"o{n}", 30 + n, 0, 0, "a") for n in range(20)]
    index = Groups(PLANE, Memory())
    for _ in run(index, plan(log, TERMS, PLANE, cuts=(len(log) - 20, len(log) - 10))):
        check_tables(index)
    alive = index._groups.rows[:, tables.ALIVE] == 1
    assert sorted(index._groups.rows[alive, tables.MEMBERS].tolist()) == [9, tables.MOST]


def test_alike_are_those_of_one_window_where_size_and_place() -> None:
    boxes = np.array(
        [[0, 0, 8, 8], [0.1, 0.1, 8.1, 8.1], [0, 0, 80, 80], [30, 0, 38, 8], [5, 5, 5, 5.0]]
    )
    ones = np.ones(5, np.int64)
    keys = keys_of(ones, ones, boxes)
    assert keys[0].tolist() == keys[1].tolist()
    assert len({tuple(key) for key in keys.tolist()}) == 4
    assert keys_of(2 * ones, ones, boxes)[0].tolist() != keys[0].tolist()
    assert keys_of(ones, 2 * ones, boxes)[0].tolist() != keys[0].tolist()
    crossing = np.array([[170.0, 0, 180.0, 1], [-1e308, 0, 1e308, 1], [0, 0, 1, 1]])
    one = np.ones(3, np.int64)
    assert shareable(EARTH, crossing, one).tolist() == [False, False, True]
    assert shareable(PLANE, crossing, one).tolist() == [True, False, True]
    assert shareable(PLANE, crossing, 2 * one).tolist() == [False] * 3


def test_the_smallest_regions_there_are_have_keys() -> None:
    """A quarter of their width is no number."""
    least = 5e-324
    boxes = np.array([[0, -1e18, least, -1], [0, -1e18, least, -1], [1, 2, 1 + 2.0**-52, 2]])
    ones = np.ones(3, np.int64)
    keys = keys_of(ones, ones, boxes)
    assert keys[0].tolist() == keys[1].tolist() != keys[2].tolist()


def test_those_who_wait_join_when_they_are_half_as_many() -> None:
    waiting, there = np.array([[1, 1], [1, 1], [2, 2]]), np.array([[1, 1], [2, 2], [3, 3]])
    mine, made, theirs = bunches(waiting, there, np.array([4, 3, 1]))
    assert made[mine].tolist() == [True, True, False]
    assert made[theirs].tolist() == [True, False, False]


@pytest.mark.parametrize("index", ["groups", "cheapest"])
@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from(["time", "arrival"]),
    st.integers(1, 12),
    st.booleans(),
)
def test_groups_report_what_the_definition_says(
    index: str, seed: int, order: Order, step: int, late: bool
) -> None:
    """Any cuts; late objects; windows of which moments hit the edges."""
    rng = Random(seed)
    log = crowd(rng, 8, 60, circles=True)
    for event in log:
        if event["op"] == "subscribe" and rng.random() < 0.5:
            event["query"] |= {"window": rng.choice([1, 3, 8]), "every": rng.choice([1, 2, 3])}
        if event["op"] == "subscribe" and rng.random() < 0.3:
            event["expires"] = rng.randint(0, 40)
        if late and event["op"] == "publish" and rng.random() < 0.3:
            event["time"] -= rng.choice([1, 5, 15])
    if order == "time":
        log.sort(key=lambda e: (e["time"], e["op"] == "publish"))
    cuts = range(1, len(log), step)
    right = replay(log, PLANE, order).notifications
    found = run_index(index, log, TERMS, PLANE, cuts, order)
    assert sorted(map(as_text, found)) == sorted(map(as_text, right))
    for n in range(8):  # each in its order
        told, true = ([e["time"] for e in some if e["id"] == f"s{n}"] for some in (found, right))
        assert told == true


def test_the_warm_up_loads_all_that_groups_need() -> None:
    load_kernels(Settings(strategies={"terms": "hash+groups"}), "terms")
    kernels: list[Any] = [
        tables.advance, tables.dissolve, alike.program_keys, moments.take_due, tables.shares_of
    ]  # fmt: skip
    before = [set(kernel.signatures) for kernel in kernels]
    log = crowd(Random(2), 12, 60) + [publish("late", 99, 0, 0, "a")]
    run_index("groups", log, TERMS, EARTH, range(12, len(log), 10))
    assert [set(kernel.signatures) for kernel in kernels] == before
    assert all(before[:4])


@pytest.mark.parametrize("lost", [False, True])
def test_groups_live_on_in_an_arena_or_are_made_anew(lost: bool) -> None:
    """Another index takes over after each batch, with the storage or with what a state holds."""
    log = crowd(Random(8), 12, 160)
    batches = plan(log, TERMS, PLANE, cuts=range(12, len(log), 16))
    right = replay(log, PLANE).notifications
    storage = Memory()
    index = Groups(PLANE, storage)
    found: list[Json] = []
    grouped = 0
    for batch in batches:
        found += next(run(index, [batch]))
        index.close()
        grouped += index.figures()["in_groups"]
        past = index.past
        if lost:
            slots = np.arange(len(index))
            controls, results = index.rows(slots)
            index = Groups(PLANE, Memory())
            index.apply(controls, np.zeros(controls.num_rows, np.int32))
            index.restore(results)
            index.close()
        else:
            index = Groups(PLANE, storage)
        index.past = past
    assert grouped > 12
    assert [as_text(n) for n in found] == [as_text(n) for n in right]
