"""Whether a position lies in a region, against exact fractions and against shapely."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import shapely
from hypothesis import assume, example, given
from hypothesis import strategies as st

from nearcast.model.geometry import orientation, region_contains
from nearcast.model.predicate import contains
from nearcast.model.region import Bbox, Circle, Polygon, Region, Ring, encode
from nearcast.model.space import Space

GEO, PLANE = Space.GEOGRAPHIC, Space.PLANAR
ANY = st.floats(allow_nan=False, allow_infinity=False)
SMALL = st.integers(-8, 8).map(float)
TENTHS = st.integers(-50, 50).map(lambda n: n / 10)


def orientation_by_definition(
    ax: float, ay: float, bx: float, by: float, cx: float, cy: float
) -> int:
    fax, fay, fbx, fby, fcx, fcy = map(Fraction, (ax, ay, bx, by, cx, cy))
    det = (fax - fcx) * (fby - fcy) - (fay - fcy) * (fbx - fcx)
    return (det > 0) - (det < 0)


@given(ANY, ANY, ANY, ANY, ANY, ANY)
@example(1e308, -1e308, -1e308, 1e308, 0.0, 5e-324)
@example(5e-324, 0.0, 0.0, 5e-324, 5e-324, 5e-324)
@example(1e-200, 1e-200, 2e-200, 2e-200, 3e-200, 3e-200)
@example(1e200, 1e200, 1e-200, 1e-200, 0.0, 0.0)
@example(1e200, 1e200, 1e-200, 1.0000000000000002e-200, 0.0, 0.0)
@example(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
def test_orientation_of_any_floats(
    ax: float, ay: float, bx: float, by: float, cx: float, cy: float
) -> None:
    expected = orientation_by_definition(ax, ay, bx, by, cx, cy)
    assert orientation(ax, ay, bx, by, cx, cy) == expected


@given(TENTHS, TENTHS, TENTHS, TENTHS, st.floats(-0.5, 1.5), st.integers(-3, 3), st.integers(-3, 3))
def test_orientation_next_to_the_line(
    ax: float, ay: float, bx: float, by: float, t: float, up: int, right: int
) -> None:
    # A rounded point of the line, pushed by a few of the smallest possible steps.
    cx, cy = ax + t * (bx - ax), ay + t * (by - ay)
    for _ in range(abs(right)):
        cx = math.nextafter(cx, math.copysign(math.inf, right))
    for _ in range(abs(up)):
        cy = math.nextafter(cy, math.copysign(math.inf, up))
    expected = orientation_by_definition(ax, ay, bx, by, cx, cy)
    assert orientation(ax, ay, bx, by, cx, cy) == expected


def test_orientation_where_products_lose_digits_to_underflow() -> None:
    # Found by search: the rounded determinant is far from 0 by the error bound, and has the wrong
    # sign.
    unit = 2.0**-540
    cases = [
        "0x1.54ee3ef946620p3 0x1.1dfac0c7b2f90p3 0x1.71e6bc58ab818p1 0x1.2c318724bbbb0p0 "
        "-0x1.6becb2b1f3547p-4 -0x1.ce5abcb7ba7d4p0",
        "0x1.34e082a6e2111p3 0x1.13468529a1763p3 0x1.761d4462bf118p1 0x1.df6a9cdb794c3p0 "
        "-0x1.2d6c493cc65ccp-2 -0x1.582afe39366dfp0",
    ]
    for case in cases:
        ax, ay, bx, by, cx, cy = (float.fromhex(number) * unit for number in case.split())
        expected = orientation_by_definition(ax, ay, bx, by, cx, cy)
        assert orientation(ax, ay, bx, by, cx, cy) == expected


def test_orientation_where_a_rounded_determinant_is_wrong() -> None:
    # Kettner et al., "Classroom examples of robustness problems": a grid of the smallest steps.
    step = 2.0**-53
    for i in range(32):
        for j in range(32):
            point = (0.5 + i * step, 0.5 + j * step)
            corners = (12.0, 12.0, 24.0, 24.0)
            assert orientation(*point, *corners) == orientation_by_definition(*point, *corners)


def polygon_by_definition(rings: tuple[Ring, ...], x: float, y: float) -> bool:
    """Parity of crossings in fractions, edges inside."""
    px, py = Fraction(x), Fraction(y)
    inside = False
    for ring in rings:
        for (ax, ay), (bx, by) in pairwise(ring):
            fax, fay, fbx, fby = map(Fraction, (ax, ay, bx, by))
            turn = (fbx - fax) * (py - fay) - (fby - fay) * (px - fax)
            in_box = min(fax, fbx) <= px <= max(fax, fbx) and min(fay, fby) <= py <= max(fay, fby)
            if turn == 0 and in_box:
                return True
            if (fay > py) != (fby > py) and px < fax + (fbx - fax) * (py - fay) / (fby - fay):
                inside = not inside
    return inside


def closed(points: list[tuple[float, float]]) -> Ring:
    return (*points, points[0])


@st.composite
def rings_and_point(
    draw: st.DrawFn, coordinate: st.SearchStrategy[float]
) -> tuple[tuple[Ring, ...], float, float]:
    """Any rings, valid or not, and a point that likes vertices and edges."""
    point = st.tuples(coordinate, coordinate)
    ring = st.lists(point, min_size=3, max_size=7).map(closed)
    rings = tuple(draw(st.lists(ring, min_size=1, max_size=3)))
    chosen = draw(st.sampled_from(rings))
    number = draw(st.integers(0, len(chosen) - 2))
    (ax, ay), (bx, by) = chosen[number], chosen[number + 1]
    t = draw(st.sampled_from([0.0, 0.25, 0.5, 1 / 3, 1.0]))
    x, y = draw(st.one_of(point, st.just((ax + t * (bx - ax), ay + t * (by - ay)))))
    return rings, x, y


@given(rings_and_point(SMALL))
def test_polygon_of_whole_numbers(case: tuple[tuple[Ring, ...], float, float]) -> None:
    rings, x, y = case
    assert contains(PLANE, Polygon(rings), x, y) == polygon_by_definition(rings, x, y)


@given(rings_and_point(TENTHS | st.floats(-5, 5)))
def test_polygon_of_any_numbers(case: tuple[tuple[Ring, ...], float, float]) -> None:
    rings, x, y = case
    assert contains(GEO, Polygon(rings), x, y) == polygon_by_definition(rings, x, y)


def star(rng: np.random.Generator, n: int, low: float, high: float) -> list[tuple[float, float]]:
    """A ring that sees all of itself from the origin, so that it cannot cross itself."""
    angles = (np.arange(n) + rng.uniform(0.0, 0.9, n)) * (2 * math.pi / n)
    radii = rng.uniform(low, high, n)
    ring = [
        (float(r * math.cos(a)), float(r * math.sin(a))) for r, a in zip(radii, angles, strict=True)
    ]
    return [*ring, ring[0]]


@given(st.integers(0, 2**32 - 1), st.integers(7, 30), st.integers(7, 30))
def test_polygon_with_a_hole_agrees_with_shapely(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    outer, hole = star(rng, n, 5.0, 10.0), star(rng, m, 1.0, 3.0)
    shape = shapely.Polygon(outer, [hole])
    assume(shape.is_valid)
    code, data = encode(Polygon((tuple(outer), tuple(hole))))
    array = np.array(data)
    points = [*outer, *hole, *(tuple(point) for point in rng.uniform(-10.0, 10.0, (50, 2)))]
    points += [((a + c) / 2, (b + d) / 2) for (a, b), (c, d) in pairwise(outer)]
    for x, y in points:
        mine = region_contains(PLANE.code, code, array, float(x), float(y))
        assert mine == shape.covers(shapely.Point(x, y))


def test_polygon_edges_holes_and_parts() -> None:
    outer: Ring = ((0, 0), (9, 0), (9, 9), (0, 9), (0, 0))
    hole: Ring = ((3, 3), (3, 6), (6, 6), (6, 3), (3, 3))
    island: Ring = ((20, 0), (23, 0), (20, 3), (20, 0))
    region = Polygon((outer, hole, island))
    inside = [(0, 0), (9, 4), (1, 1), (3, 4), (6, 6), (21, 1), (21.5, 1.5), (23, 0)]
    outside = [(4, 4), (-1, 0), (10, 9), (15, 1), (22, 2), (24, 0), (19, 3)]
    assert [p for p in inside if not contains(PLANE, region, *p)] == []
    assert [p for p in outside if contains(PLANE, region, *p)] == []


def test_bbox_with_its_edges() -> None:
    region = Bbox(1, 2, 3, 4)
    for space in Space:
        assert all(contains(space, region, x, y) for x in (1, 2, 3) for y in (2, 3, 4))
        assert not any(contains(space, region, x, 3) for x in (math.nextafter(1, 0), 3.1, -2))
        assert not any(contains(space, region, 2, y) for y in (1.9, math.nextafter(4, 5)))


def test_bbox_across_the_antimeridian() -> None:
    region = Bbox(170, -10, -160, 10)
    assert all(contains(GEO, region, x, 0) for x in (170, 175, 180, -180, -161, -160))
    assert not any(contains(GEO, region, x, 0) for x in (169.9, 0, -159.9))


def test_bbox_at_the_antimeridian_holds_both_names_of_it() -> None:
    for region in (Bbox(-180, 0, -170, 1), Bbox(170, 0, 180, 1), Bbox(180, 0, -180, 1)):
        assert contains(GEO, region, 180, 0.5)
        assert contains(GEO, region, -180, 0.5)
        assert not contains(GEO, region, 0, 0.5)
    assert not contains(PLANE, Bbox(-180, 0, -170, 1), 180, 0.5)


def test_polygon_at_the_antimeridian_is_as_given() -> None:
    region = Polygon((((170, 0), (180, 0), (180, 5), (170, 0)),))
    assert contains(GEO, region, 180, 2)
    assert not contains(GEO, region, -180, 2)


def test_circle_is_the_distance() -> None:
    region: Region = Circle(0, 0, 5)
    assert contains(PLANE, region, 3, 4)
    assert not contains(PLANE, region, 3, math.nextafter(4, 5))
    assert contains(GEO, Circle(179.9999, 0, 100), -179.9999, 0)
    assert contains(GEO, Circle(10, 90, 1), -170, 90)
    assert contains(PLANE, Circle(7, 7, 0), 7, 7)
