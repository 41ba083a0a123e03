"""Every router: one copy reports, nothing is missed, the same table gives the same answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import nearcast.engine
from nearcast.kernels.hashing import hash_ids
from nearcast.kinds import KINDS, Kind
from nearcast.model.space import Space
from nearcast.routing import ROUTERS, Load, Random, Router
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.tables import replaced, strings

quick = settings(max_examples=30)

Hashes = NDArray[np.uint64]
SHARDS = (1, 2, 3, 7)
PAIRS = [(ROUTERS[name], kind) for kind in KINDS.values() for name in kind.routers]
MOVERS = [(r, kind) for r, kind in PAIRS if r.keeps_ids]

hash_lists = st.lists(st.integers(1, 2**64 - 1), unique=True, max_size=20)


QUERIES: dict[str, list[Any]] = {
    "range": [
        {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}, "where": "a OR b"},
        {"kind": "range", "region": {"circle": {"at": [5, 5], "radius": 1000}}},
        {"kind": "range", "region": {"bbox": [3, 3, 4, 4]}, "where": "NOT a"},
    ],
    "knn": [
        {"kind": "knn", "at": [3, 3], "k": 2, "where": "NOT a"},
        {"kind": "knn", "at": [0, 1], "k": 1, "where": "a OR b"},
        {"kind": "knn", "at": [5, 5], "k": 3, "where": "a AND b", "window": 10},
    ],
    "topk": [
        {"kind": "topk", "at": [3, 3], "k": 2, "keywords": ["a"], "alpha": 0.5, "maxdist": 9},
        {"kind": "topk", "at": [0, 1], "k": 1, "keywords": ["a", "b"], "alpha": 1, "maxdist": 9},
        {"kind": "topk", "at": [5, 5], "k": 3, "keywords": ["b"], "alpha": 0, "maxdist": 1},
    ],
    "terms": [
        {"kind": "terms", "region": {"bbox": [0, 0, 1, 1]}, "k": 1, "window": 9, "every": 3},
        {"kind": "terms", "region": {"bbox": [3, 3, 4, 4]}, "k": 2, "window": 1, "every": 9},
        {"kind": "terms", "region": {"bbox": [0, 0, 9, 9]}, "k": 3, "window": 5, "every": 5},
    ],
}


def subscriptions(kind: Kind, n: int = 60) -> tuple[pa.RecordBatch, Hashes]:
    queries = QUERIES[kind.name]
    lines = [
        json.dumps({"op": "subscribe", "id": f"s{i}", "time": 1, "query": queries[i % 3]})
        for i in range(n)
    ]
    decoded = decode_jsonl("\n".join(lines).encode(), Space.PLANAR, KINDS)
    table = decoded.subscribes[kind.name]
    assert table.num_rows == n
    offsets, data = strings(table["id"])
    return table, hash_ids(data, offsets)


def objects(n: int = 20) -> pa.RecordBatch:
    lines = [
        json.dumps({"op": "publish", "id": f"o{i}", "time": 1, "at": [i, i], "text": "a"})
        for i in range(n)
    ]
    return decode_jsonl("\n".join(lines).encode(), Space.PLANAR, KINDS).objects


@pytest.fixture(params=ROUTERS.values(), ids=lambda r: r.name)
def router_class(request: pytest.FixtureRequest) -> type[Router]:
    chosen: type[Router] = request.param
    return chosen


@pytest.fixture(params=PAIRS, ids=lambda p: f"{p[0].name}-{p[1].name}")
def pair(request: pytest.FixtureRequest) -> tuple[type[Router], Kind]:
    """A router and a kind that it can place."""
    chosen: tuple[type[Router], Kind] = request.param
    return chosen


@pytest.mark.parametrize("shards", SHARDS)
def test_exactly_one_copy_reports(pair: tuple[type[Router], Kind], shards: int) -> None:
    router_class, kind = pair
    table, hashes = subscriptions(kind)
    placed = router_class(shards).place(table, hashes)
    assert len(placed.rows) == len(placed.shards) == len(placed.reports)
    assert np.bincount(placed.rows[placed.reports], minlength=len(hashes)).tolist() == [1] * 60
    assert placed.shards.min() >= 0
    assert placed.shards.max() < shards
    pairs = set(zip(placed.rows.tolist(), placed.shards.tolist(), strict=True))
    assert len(pairs) == len(placed.rows)  # at most one copy a shard


@pytest.mark.parametrize("shards", SHARDS)
def test_every_object_reaches_every_copy_that_may_need_it(
    router_class: type[Router], shards: int
) -> None:
    table = objects()
    routes = router_class(shards).route(table)
    if routes is None:  # to every shard: nothing can be missed
        return
    assert set(routes.rows.tolist()) <= set(range(table.num_rows))
    assert set(routes.shards.tolist()) <= set(range(shards))


def test_the_same_table_gives_the_same_answer(pair: tuple[type[Router], Kind]) -> None:
    router_class, kind = pair
    table, hashes = subscriptions(kind)
    first = router_class(3)
    again = router_class(3, first.table)
    for a, b in ((first.place(table, hashes), again.place(table, hashes)),):
        assert a.rows.tolist() == b.rows.tolist()
        assert a.shards.tolist() == b.shards.tolist()
        assert a.reports.tolist() == b.reports.tolist()


def test_a_subscription_is_placed_the_same_alone(pair: tuple[type[Router], Kind]) -> None:
    router_class, kind = pair
    table, hashes = subscriptions(kind, 12)
    router = router_class(3)
    whole = router.place(table, hashes)
    for row in range(table.num_rows):
        alone = router.place(table.slice(row, 1), hashes[row : row + 1])
        mine = whole.rows == row
        assert alone.shards.tolist() == whole.shards[mine].tolist()
        assert alone.reports.tolist() == whole.reports[mine].tolist()


def test_an_id_with_one_home_has_it_whatever_it_asks(router_class: type[Router]) -> None:
    if not router_class.by_id:
        return
    router = router_class(4)
    homes = set()
    for kind in KINDS.values():
        assert router.name in kind.routers
        table, hashes = subscriptions(kind, 6)
        for whole in (table, replaced(table)):  # the engine places ends of ids, too
            for row in range(table.num_rows):
                alone = router.place(whole.slice(row, 1), hashes[:1])
                homes.add(tuple(alone.shards.tolist()))
    assert len(homes) == 1


def test_work_is_spread(pair: tuple[type[Router], Kind]) -> None:
    router_class, kind = pair
    table, hashes = subscriptions(kind, 400)
    placed = router_class(4).place(table, hashes)
    share = np.bincount(placed.shards[placed.reports], minlength=4)
    assert share.min() > 50


# -- moves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mover", dict.fromkeys(r for r, _ in MOVERS), ids=lambda r: r.name)
def test_orders_are_a_function_of_their_arguments(mover: type[Any]) -> None:
    loads = [Load(0, 5, 5, 100, 0.1), Load(1, 5, 5, 1, 0.1)]
    for batch in range(6):
        orders = [mover(2).order(batch, loads) for _ in range(2)]
        assert orders[0] == orders[1]
        assert json.loads(json.dumps(orders[0])) == orders[0]  # it travels in a file
    assert all(mover(1).order(batch, loads[:1]) is None for batch in range(6))


@pytest.mark.parametrize(("mover", "kind"), MOVERS, ids=lambda p: p.name)
def test_shards_select_what_the_new_table_then_says(mover: type[Any], kind: Kind) -> None:
    table, hashes = subscriptions(kind, 300)
    router = mover(3)
    for batch in range(8):
        order = router.order(batch, [])
        if order is None:
            continue
        homes = router.home(hashes)
        targets = np.empty(len(hashes), np.int64)
        for shard in range(3):
            mine = np.flatnonzero(homes == shard)
            targets[mine] = router.homes(order, shard, hashes[mine])
        gone = np.flatnonzero(targets != homes)
        assert 0 < len(gone) < len(hashes)
        # Exports of one shard after the other make the table.
        following = router
        for shard in range(3):
            of_shard = gone[homes[gone] == shard]
            following = mover(3, following.moved(hashes[of_shard], targets[of_shard]))
        assert following.home(hashes).tolist() == targets.tolist()
        placed = following.place(table, hashes)
        assert placed.shards.tolist() == targets.tolist()
        router = following


@quick
@given(st.lists(st.tuples(hash_lists, st.integers(0, 4)), max_size=4), hash_lists)
def test_random_remembers_the_last_move_of_each_id(
    moves: list[tuple[list[int], int]], others: list[int]
) -> None:
    router = Random(5)
    right: dict[int, int] = {}
    for ids, shard in moves:
        hashes = np.array(ids, np.uint64)
        router = Random(5, router.moved(hashes, np.full(len(ids), shard)))
        right |= dict.fromkeys(ids, shard)
    everyone = sorted({*right, *others})
    found = router.home(np.array(everyone, np.uint64)).tolist()
    assert found == [right.get(i, i % 5) for i in everyone]
    assert Random(5, router.table).table == router.table
    # Sorted, an id at most once: homes are searched by halves.
    kept = np.frombuffer(router.table, np.uint64).reshape(-1, 2)[:, 0].tolist()
    assert kept == sorted(right)


@quick
@given(hash_lists, st.integers(0, 2), st.integers(0, 100))
def test_random_selects_each_id_by_itself(ids: list[int], shard: int, seed: int) -> None:
    router, order = Random(3), {"seed": seed}
    hashes = np.array(ids, np.uint64)
    found = router.homes(order, shard, hashes)
    assert set(found.tolist()) <= {0, 1, 2}
    alone = [int(router.homes(order, shard, hashes[n : n + 1])[0]) for n in range(len(ids))]
    assert found.tolist() == alone


def test_random_moves_about_a_third() -> None:
    _, hashes = subscriptions(KINDS["range"], 3000)
    drawn = Random(1000).homes({"seed": 1}, 0, hashes)
    assert 0.25 < np.mean(drawn != 0) < 0.35


# -- who asks routers ----------------------------------------------------------------------------


def test_an_id_has_one_home_only_with_equal_routers() -> None:
    by_id = [r for r in ROUTERS.values() if r.by_id]
    assert by_id
    for router in ROUTERS.values():
        for other in by_id:
            wanted = router is other
            assert router(4).shares_homes(other(4)) is wanted
    one = by_id[0](4)
    assert not one.shares_homes(one.with_table(b"another"))


CLASS = re.compile(r"(isinstance|issubclass)\([^)]*[Rr]outer|type\([^)]*\)\s*(is|==|!=)|__class__")


def test_the_engine_looks_at_no_class_of_a_router() -> None:
    """It calls verbs of `Router`; what a router is stays its own affair."""
    engine = Path(nearcast.engine.__file__).parent
    files = sorted(engine.rglob("*.py"))
    assert len(files) > 30
    found = [f"{path}: {m[0]}" for path in files for m in CLASS.finditer(path.read_text())]
    assert found == []
    assert CLASS.search("all(type(r) is type(first) for r in routers)")
    assert CLASS.search("if isinstance(router, Random):")
