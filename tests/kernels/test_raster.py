"""Pictures of polygons: what they say of a position is what the definition says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearcast.index.arena import Memory
from nearcast.kernels.raster import INSIDE, OUTSIDE, UNSURE, draw, look, raster_words
from nearcast.kinds import KINDS
from nearcast.model.geometry import region_contains
from nearcast.model.shapes import POLYGON, Polygon, encode
from nearcast.model.space import Space
from nearcast.testing.cases import assert_same_story, publish, subscribe, wanted
from nearcast.testing.drive import notifications, plan, step

RANGE = KINDS["range"]
Ring = list[tuple[float, float]]


def star(rng: np.random.Generator, vertices: int, middle: tuple[float, float], size: float) -> Ring:
    """A simple polygon around a place; some edges are upright or level."""
    turns = np.sort(rng.uniform(0, 2 * math.pi, vertices))
    reach = size * rng.uniform(0.2, 1.0, vertices)
    ring = [
        (middle[0] + r * math.cos(t), middle[1] + r * math.sin(t))
        for t, r in zip(turns.tolist(), reach.tolist(), strict=True)
    ]
    return [*ring, ring[0]]


def picture(rings: list[Ring]) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """(the numbers of a polygon; the heap with it, its box and its picture; where the box is)."""
    _, data = encode(Polygon(tuple(tuple(r) for r in rings)))
    xs, ys = [x for r in rings for x, _ in r], [y for r in rings for _, y in r]
    words = raster_words(POLYGON, len(data))
    heap = np.array([*data, min(xs), min(ys), max(xs), max(ys), *[0.0] * words])
    draw(heap.view(np.uint64), heap, 0, len(data), len(data))
    return np.array(data), heap, len(data)


sizes = st.sampled_from([1.0, 1e-7, 1e200, 1e-290, 300.0])
middles = st.tuples(st.sampled_from([0.0, 139.7, -1e6, 1e-3]), st.floats(-80, 80))


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([32, 60, 600]), middles, sizes, st.booleans())
@example(1, 5000, (0.0, 0.0), 1.0, True)
def test_it_never_contradicts_the_definition(
    seed: int, vertices: int, middle: tuple[float, float], size: float, hole: bool
) -> None:
    rng = np.random.default_rng(seed)
    rings = [star(rng, vertices, middle, size)]
    if hole:
        rings.append(star(rng, 32, middle, 0.15 * size))
    data, heap, at = picture(rings)
    box = heap[at : at + 4]
    x = rng.uniform(box[0] - 0.1 * size, box[2] + 0.1 * size, 300)
    y = rng.uniform(box[1] - 0.1 * size, box[3] + 0.1 * size, 300)
    corners = np.array([p for ring in rings for p in ring])
    share = rng.uniform(0, 1, len(corners) - 1)[:, None]
    on_edges = corners[:-1] * share + corners[1:] * (1 - share)  # nearly
    lines = np.linspace(box[0], box[2], 33)
    some = np.concatenate(
        [
            np.column_stack([x, y]),
            corners[:200],
            on_edges[:200],
            np.nextafter(on_edges[:200], np.inf),
            np.column_stack([lines, rng.choice(y, 33)]),
            np.column_stack([np.nextafter(lines, -np.inf), rng.choice(y, 33)]),
        ]
    )
    says = [look(heap.view(np.uint64), heap, at, len(data), *p) for p in some.tolist()]
    for state, p in zip(says, some.tolist(), strict=True):
        if state != UNSURE:
            assert region_contains(0, POLYGON, data, *p) == (state == INSIDE)
    if 1e-3 <= size <= 1e3:  # else a cell is not wider than rounding
        decided = [s != UNSURE for s in says[:300]]
        assert np.mean(decided) > (0.5 if vertices < 600 else 0.3)
        assert OUTSIDE in says


def test_few_vertices_have_none() -> None:
    assert raster_words(POLYGON, 63) == 0
    assert [raster_words(POLYGON, n) for n in (64, 1024, 8192)] == [32, 128, 512]


@pytest.mark.parametrize("index", ["pyramid", "fast", "gi2"])
def test_subscriptions_of_large_polygons(index: str, rng: np.random.Generator) -> None:
    """Also after their slots were numbered anew, and where the heap had to grow."""
    log = []
    for n in range(40):
        vertices = [4, 31, 40, 700][n % 4]
        ring = star(rng, vertices, tuple(rng.uniform(0, 3, 2).tolist()), 1.0)
        region = {"type": "Polygon", "coordinates": [ring]}
        end = {"expires": 1} if n % 5 == 0 else {}
        log.append(subscribe(f"s{n}", 0, {"kind": "range", "region": region}, **end))
    for n in range(200):
        log.append(publish(f"o{n}", 1 + n, *rng.uniform(0, 3, 2).tolist()))
    right = wanted(log, RANGE, Space.PLANAR)
    assert len(right) > 500
    made = RANGE.index(index)(Space.PLANAR, Memory())
    got = []
    for batch in plan(log, RANGE, Space.PLANAR, "time", [20, 40, 140]):
        got += notifications(made, step(made, batch), RANGE)
        made.close()
        made.compact(2)
    assert_same_story(got, right)
