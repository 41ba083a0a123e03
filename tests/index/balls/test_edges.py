"""knn where structures like to break: ties, crowds, one word, large k, a hot spot that wanders."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nearcast.index import INDEXES, LocalIndex
from nearcast.index.arena import Memory
from nearcast.index.balls.index import BallIndex
from nearcast.kinds import KINDS
from nearcast.model.space import Space, distance
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.tables import numbers, object_columns

Json = dict[str, Any]
Places = NDArray[np.float64]
NAMES = [n for n, i in INDEXES["balls"].items() if issubclass(i, BallIndex)]
spaces = pytest.mark.parametrize("space", list(Space))
indexes = pytest.mark.parametrize("name", NAMES)


def subscribe(n: int, at: list[float], k: int, where: str = "a") -> Json:
    query = {"kind": "knn", "at": at, "k": k, "where": where}
    return {"op": "subscribe", "id": f"s{n}", "time": 0, "query": query}


def run(name: str, space: Space, subscribes: list[Json], places: Places, batch: int) -> LocalIndex:
    """An index after all objects, each with the word a, in batches."""
    index = INDEXES["balls"][name](space, Memory())
    decoded = decode_jsonl("\n".join(map(json.dumps, subscribes)).encode(), space, KINDS)
    controls = decoded.of(KINDS["knn"])
    index.apply(controls, np.zeros(controls.num_rows, np.int32))
    for first in range(0, len(places), batch):
        lines = [
            json.dumps({"op": "publish", "id": f"o{i}", "time": i + 1, "at": at, "keywords": ["a"]})
            for i, at in enumerate(places[first : first + batch].tolist(), first)
        ]
        table = decode_jsonl("\n".join(lines).encode(), space, KINDS).objects
        objects = object_columns(table)
        index.match(objects, numbers(table["time"]).copy(), int(objects.time[-1]))
        index.close()
    return index


def nearest(space: Space, at: list[float], k: int, places: Places) -> list[str]:
    """The ids of the k nearest, those that came first where they are as near."""
    away = [distance(space.code, at[0], at[1], x, y) for x, y in places.tolist()]
    return [f"o{i}" for i in np.argsort(away, kind="stable")[:k]]


def agrees(index: LocalIndex, space: Space, subscribes: list[Json], places: Places) -> None:
    """Compare the results of some subscriptions with a look at all objects."""
    chosen = np.unique(np.linspace(0, len(subscribes) - 1, 60).astype(np.int64))
    _, results = index.rows(chosen)
    found = dict(zip(results["slot"].to_pylist(), results["object"].to_pylist(), strict=True))
    for n, slot in enumerate(chosen.tolist()):
        query = subscribes[slot]["query"]
        held = [name.decode() for name in found.get(n, [])]
        assert held == nearest(space, query["at"], query["k"], places), query


@indexes
@spaces
def test_ties_by_the_thousand(name: str, space: Space) -> None:
    rng = np.random.default_rng(1)
    places = rng.integers(-5, 5, (3000, 2)).astype(np.float64)
    subscribes = [
        subscribe(n, [x, y], int(k))
        for n, (x, y, k) in enumerate(
            np.column_stack([rng.integers(-5, 5, (200, 2)), rng.integers(1, 40, 200)]).tolist()
        )
    ]
    agrees(run(name, space, subscribes, places, 700), space, subscribes, places)


@indexes
def test_the_two_ends_of_the_world_tie(name: str) -> None:
    """An object at 180 and one at -180 of the same latitude are as near: the first one stays."""
    rng = np.random.default_rng(7)
    ends = rng.choice([-180.0, 180.0], 600)
    places = np.column_stack([ends, rng.integers(-30, 30, 600).astype(np.float64)])
    spots = [(179.3, 1.0), (-179.3, 1.0), (180.0, 0.0), (-180.0, 0.5), (0.1, 0.0), (33.7, 70.0)]
    subscribes = [
        subscribe(len(spots) * n + m, [x, y], k)
        for n, k in enumerate((1, 2, 3, 7, 40))
        for m, (x, y) in enumerate(spots)
    ]
    space = Space.GEOGRAPHIC
    index = run(name, space, subscribes, places, 250)
    agrees(index, space, subscribes, np.where(places == 180.0, -180.0, places))


@indexes
def test_a_crowd_on_one_spot(name: str) -> None:
    rng = np.random.default_rng(2)
    places = rng.normal(0.0, 3.0, (60, 2))
    subscribes = [subscribe(n, [0.25, -0.5], n % 7 + 1) for n in range(100_000)]
    space = Space.GEOGRAPHIC
    agrees(run(name, space, subscribes, places, 30), space, subscribes, places)


@indexes
@spaces
def test_a_thousand_nearest(name: str, space: Space) -> None:
    rng = np.random.default_rng(3)
    places = np.column_stack([rng.uniform(-180, 180, 4000), rng.uniform(-90, 90, 4000)])
    spots = [(179.9, 0.0), (-179.9, 60.0), (0.0, 90.0), (12.0, -89.9), (5.0, 5.0)]
    subscribes = [subscribe(n, [x, y], 1000) for n, (x, y) in enumerate(spots)]
    agrees(run(name, space, subscribes, places, 1500), space, subscribes, places)


@indexes
@spaces
def test_a_hot_spot_that_wanders(name: str, space: Space) -> None:
    rng = np.random.default_rng(4)
    along = np.linspace(-170.0, 170.0, 4000)
    places = np.column_stack([along, 50.0 * np.sin(along / 20.0)]) + rng.normal(0.0, 0.5, (4000, 2))
    subscribes = [
        subscribe(n, [x, y], int(k), "a OR b" if n % 2 else "NOT b")
        for n, (x, y, k) in enumerate(
            np.column_stack(
                [rng.uniform(-170, 170, 300), rng.uniform(-60, 60, 300), rng.integers(1, 10, 300)]
            ).tolist()
        )
    ]
    agrees(run(name, space, subscribes, places, 500), space, subscribes, places)


@indexes
def test_mass_insertion_and_deletion(name: str) -> None:
    """Whoever goes hears no more, whoever comes sees only what comes after."""
    rng = np.random.default_rng(5)
    space = Space.PLANAR
    first = [subscribe(n, rng.uniform(0, 10, 2).tolist(), 3) for n in range(5000)]
    places = rng.uniform(0, 10, (600, 2))
    index = run(name, space, first, places[:300], 300)
    ends = [{"op": "unsubscribe", "id": f"s{n}", "time": 301} for n in range(0, 5000, 2)]
    later = [{**subscribe(5000 + n, rng.uniform(0, 10, 2).tolist(), 3), "time": 301}
             for n in range(5000)]  # fmt: skip
    lines = "\n".join(map(json.dumps, [*ends, *later])).encode()
    controls = decode_jsonl(lines, space, KINDS).of(KINDS["knn"])
    index.apply(controls, np.zeros(controls.num_rows, np.int32))
    publishes = [
        {"op": "publish", "id": f"o{i}", "time": i + 2, "at": at, "keywords": ["a"]}
        for i, at in enumerate(places[300:].tolist(), 300)
    ]
    table = decode_jsonl("\n".join(map(json.dumps, publishes)).encode(), space, KINDS).objects
    objects = object_columns(table)
    changes = index.match(objects, numbers(table["time"]).copy(), int(objects.time[-1]))
    assert not set(changes.slot.tolist()) & set(range(0, 5000, 2))
    _, results = index.rows(np.arange(5000, 5050))
    for slot, held in zip(results["slot"].to_pylist(), results["object"].to_pylist(), strict=True):
        query = later[slot]["query"]
        ids = [f"o{300 + int(i[1:])}" for i in nearest(space, query["at"], 3, places[300:])]
        assert [name.decode() for name in held] == ids
