"""Every store against the scan, on objects and queries that favour edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.objects.comparing import assert_equal
from tests.objects.making import FOREVER, Post, Query, objects_of

from nearcast.index.arena import Memory
from nearcast.kernels.hashing import word_hash
from nearcast.model.region import Bbox, Circle, Polygon, Region
from nearcast.model.space import Space
from nearcast.objects import STORES, ObjectStore, Scan
from nearcast.objects.base import NO_IDF, Idf, Slicing
from nearcast.objects.curve.store import MANY, Curve

FAST = [name for name in STORES if name != "scan"]
WORDS = ["a", "b", "c", "d", "e"]
WHERES = [
    "", "a", "b", "a b", "a OR b", "NOT a", "NOT (a OR b)", "a AND NOT b", "(a OR b) AND c",
    "NOT a OR b", "nowhere", "a nowhere", "c OR nowhere", "a OR (b AND NOT c)", "a OR b OR c OR d",
]  # fmt: skip
LONGITUDES = [-180.0, 180.0, 179.5, -179.5, 0.0, 0.25, 90.0, -90.0, 139.7]
LATITUDES = [-90.0, 90.0, 89.5, -89.9, 0.0, 0.25, 35.66, -0.25]
PLANE = [0.0, -0.0, 1.0, -1.0, 0.25, 3.0, 4.0, 5.0, 1e18, -1e200, 1e-310, 1.7e308]
TIMES = [0, 1, 9, 10, 11, 19, 20, 21, 100]
IDF = Idf(np.sort(np.array([word_hash("a"), word_hash("b")], np.uint64)), np.array([2.5, 1.1]), 3.7)


@st.composite
def positions(draw: st.DrawFn, space: Space) -> tuple[float, float]:
    if space is Space.PLANAR:
        return draw(st.sampled_from(PLANE)), draw(st.sampled_from(PLANE))
    return draw(st.sampled_from(LONGITUDES)), draw(st.sampled_from(LATITUDES))


@st.composite
def regions(draw: st.DrawFn, space: Space) -> Region:
    x, y = draw(positions(space))
    x2, y2 = draw(positions(space))
    match draw(st.sampled_from(["bbox", "circle", "polygon", "all"])):
        case "bbox":
            wide = (x, x2) if space is Space.GEOGRAPHIC else sorted((x, x2))
            return Bbox(wide[0], min(y, y2), wide[1], max(y, y2))
        case "circle":
            radius = draw(st.sampled_from([0.0, 5.0, 30_000.0, 1e6, 1.1e7, 2.1e7, 1e300]))
            return Circle(x, y, radius)
        case "polygon":
            x3, y3 = draw(positions(space))
            ring = ((x, y), (x2, y2), (x3, y3), (x, y))
            square = ((-9.0, -9.0), (9.0, -9.0), (9.0, 9.0), (-9.0, 9.0), (-9.0, -9.0))
            return Polygon((ring, square) if draw(st.booleans()) else (ring,))
    if space is Space.GEOGRAPHIC:
        return Bbox(-180, -90, 180, 90)
    return Bbox(-1.7e308, -1.7e308, 1.7e308, 1.7e308)


@st.composite
def posts(draw: st.DrawFn, space: Space) -> Post:
    x, y = draw(positions(space))
    words = draw(st.lists(st.sampled_from(WORDS), unique=True, max_size=4))
    counts = {w: draw(st.sampled_from([1, 1, 1, 2, 254, 255, 256, 70_000])) for w in words}
    return Post(x, y, draw(st.sampled_from(TIMES)), counts)


@st.composite
def query(draw: st.DrawFn, space: Space) -> Query:
    return Query(
        draw(st.sampled_from([-FOREVER, -1, 0, 9, 10, 20])),
        draw(st.sampled_from([-1, 0, 9, 10, 20, 100, FOREVER])),
        draw(st.sampled_from([0, 1, 5, 20, FOREVER])),
        draw(st.sampled_from(WHERES)),
        draw(regions(space)),
        draw(st.sampled_from([0, 0, 1, 2, 5])),
        draw(positions(space)),
        draw(st.sampled_from([1, 2, 3, 10, 100])),
        dict.fromkeys(draw(st.lists(st.sampled_from(WORDS), unique=True, max_size=3)), 1.5),
        draw(st.sampled_from([0.0, 0.3, 0.5, 1.0])),
        draw(st.sampled_from([1.0, 5.0, 20_000.0, 2e7])),
        tuple(draw(st.lists(st.sampled_from(WORDS), max_size=2))),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("space", list(Space))
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_searches_find_what_the_scan_finds(name: str, space: Space, data: st.DataObject) -> None:
    idf = data.draw(st.sampled_from([NO_IDF, IDF]))
    slicing = data.draw(st.sampled_from([Slicing(10, 1, 16), Slicing(10, 4, 8), Slicing(7)]))
    both: list[ObjectStore] = [s(space, Memory(), slicing, idf) for s in (STORES[name], Scan)]
    rank = 0
    for _ in range(data.draw(st.integers(1, 4))):
        batch = data.draw(st.lists(posts(space), max_size=14))
        border = data.draw(st.sampled_from([0, 10, 20]))
        for store in both:
            store.add(*objects_of(batch, rank))
            store.seal(border)
        rank += len(batch)
    few = data.draw(st.lists(query(space), min_size=1, max_size=4))
    times = data.draw(st.sampled_from([1, MANY]))  # many are searched in another way
    assert_equal(both[0], both[1], few * times)


def drawn(rng: np.random.Generator, n: int, space: Space, here: int) -> list[Post]:
    """Clustered objects with words of very different frequency; `here` of them at one place."""
    centres = rng.uniform(-80, 80, (12, 2))
    found = []
    for i in range(n):
        x, y = centres[rng.integers(12)] + rng.normal(0, 0.3, 2)
        if rng.random() < 0.1:
            x, y = rng.uniform(-180, 180), rng.uniform(-90, 90)
        if i < here:
            x, y = 1.0, 2.0
        if space is Space.GEOGRAPHIC and rng.random() < 0.02:
            x = rng.choice([-180.0, 180.0])
        held = np.unique((200 * rng.random(rng.integers(0, 9)) ** 4).astype(int))
        words = {f"w{w}": int(rng.integers(1, 4)) for w in rng.permutation(held)}
        found.append(Post(float(x), float(y), int(i // 4 + rng.integers(-30, 30)), words))
    return found


def queried(rng: np.random.Generator, space: Space, all_posts: list[Post]) -> Query:
    """Around an object, of any size, with frequent and rare words."""
    p = all_posts[rng.integers(len(all_posts))]
    size = float(10.0 ** rng.uniform(-3, 2))
    metres = size * (100_000 if space is Space.GEOGRAPHIC else 1)
    shapes: list[Any] = [
        Bbox(
            max(p.x - size, -180), max(p.y - size, -90), min(p.x + size, 180), min(p.y + size, 90)
        ),
        Bbox(170.0, -90.0, -170.0, 90.0) if space is Space.GEOGRAPHIC else Bbox(-1e9, -1, 1e9, 1),
        Circle(p.x, p.y, metres),
        _star(p.x, p.y, size),
    ]
    w = [f"w{int(200 * v**4)}" for v in rng.random(3)]
    wheres = ["", "", w[0], f"{w[0]} {w[1]}", f"{w[0]} OR {w[1]} OR {w[2]}", f"NOT {w[0]}"]
    last = all_posts[-1].time
    period = (-FOREVER, FOREVER) if rng.random() < 0.5 else (int(rng.integers(-9, last)), last)
    return Query(
        *period,
        FOREVER if rng.random() < 0.7 else int(rng.integers(len(all_posts))),
        wheres[rng.integers(len(wheres))],
        shapes[rng.choice(4, p=[0.4, 0.1, 0.3, 0.2])],
        int(rng.choice([0, 3])),
        (p.x, p.y) if rng.random() < 0.5 else (float(rng.uniform(-180, 180)), float(p.y)),
        int(rng.choice([1, 3, 10, 60])),
        dict.fromkeys(w, 1.0),
        float(rng.choice([0.0, 0.5, 1.0])),
        float(rng.choice([1.0, 50.0, 1e6])),
        (w[0],) if rng.random() < 0.3 else (),
    )


def _star(x: float, y: float, size: float) -> Polygon:
    """A ring with corners turned inwards."""
    points = [
        (x + size * (1 + i % 2) / 2 * math.cos(i), y + size * (1 + i % 2) / 2 * math.sin(i))
        for i in range(6)
    ]
    return Polygon(((*points, points[0]),))


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("space", list(Space))
@pytest.mark.parametrize("here", [0, 1000])
def test_larger_slices_find_what_the_scan_finds(
    name: str, space: Space, here: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several levels of nodes, tables of words, a thousand objects at one place."""
    by_tables = []
    most_held = Curve._most_held

    def counted(*given: Any) -> Any:
        by_tables.append(True)
        return most_held(*given)

    if here:  # some of a batch are counted by tables
        monkeypatch.setattr(Curve, "_most_held", counted)
        monkeypatch.setattr("nearcast.objects.curve.store._FEW", 16)
        monkeypatch.setattr("nearcast.objects.curve.store._MANY", 64)
    every = drawn(rng, 4000, space, here)
    both: list[ObjectStore] = [
        s(space, Memory(), Slicing(600, 100, 1 << 20), IDF) for s in (STORES[name], Scan)
    ]
    for first in range(0, len(every), 1000):
        for store in both:
            store.add(*objects_of(every[first : first + 1000], first))
            store.seal(every[first].time)
    assert len({s.sealed for s in both[0].slices()}) == 2
    for n in (25, MANY):
        assert_equal(both[0], both[1], [queried(rng, space, every) for _ in range(n)])
    assert bool(by_tables) == (here > 0 and name == "curve")
