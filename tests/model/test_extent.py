"""The boxes around a region hold all of it."""

import math

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from nearcast.model.extent import outer_boxes
from nearcast.model.predicate import contains
from nearcast.model.region import Bbox, Circle, Polygon, Region
from nearcast.model.space import EARTH_RADIUS_M, Space, euclidean, haversine_m

GEO, PLANE = Space.GEOGRAPHIC, Space.PLANAR
LON = st.sampled_from([-180.0, 180.0, 0.0, 179.999999, -179.999999]) | st.floats(-180, 180)
LAT = st.sampled_from([-90.0, 90.0, 0.0, 89.999999, -89.999999]) | st.floats(-90, 90)
HALF_EARTH = math.pi * EARTH_RADIUS_M
RADIUS = (
    st.sampled_from([0.0, 1e-9, 1.0, HALF_EARTH / 2, HALF_EARTH, 3 * HALF_EARTH])
    | st.floats(0, 1000)
    | st.floats(0, 1.1 * HALF_EARTH)
)


def boxed(space: Space, region: Region, x: float, y: float) -> bool:
    boxes = outer_boxes(space, region)
    assert 1 <= len(boxes) <= 2
    assert all(minx <= maxx and miny <= maxy for minx, miny, maxx, maxy in boxes)
    return any(b[0] <= x <= b[2] and b[1] <= y <= b[3] for b in boxes)


def walk(x: float, y: float, metres: float, bearing: float) -> tuple[float, float]:
    """Where one comes to on the sphere."""
    phi, angle = math.radians(y), metres / EARTH_RADIUS_M
    sine = math.sin(phi) * math.cos(angle) + math.cos(phi) * math.sin(angle) * math.cos(bearing)
    turn = math.atan2(
        math.sin(bearing) * math.sin(angle) * math.cos(phi), math.cos(angle) - math.sin(phi) * sine
    )
    lon = (x + math.degrees(turn) + 540.0) % 360.0 - 180.0
    return lon, math.degrees(math.asin(max(-1.0, min(1.0, sine))))


@given(LON, LAT, RADIUS, st.floats(0, 2 * math.pi), st.floats(0.9, 1.0) | st.just(1.0))
def test_circle_on_the_sphere(
    x: float, y: float, radius: float, bearing: float, share: float
) -> None:
    circle = Circle(x, y, radius)
    lon, lat = walk(x, y, radius * share, bearing)
    for there in ((lon, lat), (lon, 90.0), (lon, -90.0), (180.0, lat), (-180.0, lat), (-x, y)):
        if contains(GEO, circle, *there):
            event("inside")
            assert boxed(GEO, circle, *there)


TINY = st.sampled_from([-1.0, 1.0]).flatmap(
    lambda sign: st.floats(-15, -3).map(lambda power: sign * 10.0**power)
)


# The examples were found by search: each needs one of the guards of the extent.
@given(LON, LAT, LON, LAT)
@example(0.0, 0.0, 89.99999924439248, 0.0)
@example(0.0, 1.3927631373127574e-11, 89.99999924789378, 0.0)
@example(0.0, 89.99999916229167, 134.3135353592197, -89.99999945636219)
@example(0.0, 89.99999999863154, -149.07585767757365, -89.99999783695428)
def test_circle_through_any_place(x: float, y: float, lon: float, lat: float) -> None:
    # Its radius is the distance as computed, so that the place is inside by definition.
    circle = Circle(x, y, haversine_m(x, y, lon, lat))
    assert contains(GEO, circle, lon, lat)
    assert boxed(GEO, circle, lon, lat)


@given(LON, LAT, TINY, TINY)
def test_circle_through_the_antipode(x: float, y: float, right: float, up: float) -> None:
    lon = max(-180.0, min(180.0, (x - 180.0 if x > 0 else x + 180.0) + right))
    lat = max(-90.0, min(90.0, -y + up))
    circle = Circle(x, y, haversine_m(x, y, lon, lat))
    assert boxed(GEO, circle, lon, lat)


@given(st.floats(-90, 89), TINY, TINY, TINY)
def test_circle_of_a_quarter_of_the_earth(x: float, right: float, up: float, off: float) -> None:
    circle = Circle(x, off, haversine_m(x, off, x + 90.0 + right, up))
    assert boxed(GEO, circle, x + 90.0 + right, up)


@given(LON, st.floats(-89, 89), st.floats(1e-3, 1.0), st.sampled_from([-1, 1]))
def test_circle_at_its_easternmost_and_westernmost_point(
    x: float, y: float, part: float, side: int
) -> None:
    # The meridian that touches the circle: not at the circle's own latitude.
    angle = part * (math.pi / 2 - abs(math.radians(y))) * 0.999999
    turn = math.asin(min(1.0, math.sin(angle) / math.cos(math.radians(y))))
    lat = math.degrees(math.asin(max(-1.0, min(1.0, math.sin(math.radians(y)) / math.cos(angle)))))
    lon = (x + side * math.degrees(turn) + 540.0) % 360.0 - 180.0
    circle = Circle(x, y, angle * EARTH_RADIUS_M)
    if contains(GEO, circle, lon, lat):
        event("inside")
        assert boxed(GEO, circle, lon, lat)


@given(LON, LAT, LON, LAT, LON, LAT)
def test_geographic_bbox(x1: float, y1: float, x2: float, y2: float, x: float, y: float) -> None:
    region = Bbox(x1, min(y1, y2), x2, max(y1, y2))
    for there in ((x, y), (x1, y1), (180.0, y1), (-180.0, y2)):
        assert boxed(GEO, region, *there) == contains(GEO, region, *there)


NUMBER = st.floats(allow_nan=False, allow_infinity=False)


@given(NUMBER, NUMBER, st.floats(0, 1e308), st.floats(-1, 1), st.floats(-1, 1))
def test_circle_in_the_plane(x: float, y: float, radius: float, right: float, up: float) -> None:
    circle = Circle(x, y, radius)
    for there in (
        (x + right * radius, y),
        (x - radius, y),
        (x, y + radius),
        (x + right * radius, y + up * radius),
        (x + 1e-170, y - 1e-170),
        (math.nextafter(x, math.inf), math.nextafter(y, -math.inf)),
    ):
        if all(map(math.isfinite, there)) and contains(PLANE, circle, *there):
            event("inside")
            assert boxed(PLANE, circle, *there)


@given(NUMBER, NUMBER, NUMBER, NUMBER)
def test_circle_in_the_plane_through_any_place(x1: float, y1: float, x2: float, y2: float) -> None:
    radius = euclidean(x1, y1, x2, y2)
    if math.isfinite(radius):
        assert boxed(PLANE, Circle(x1, y1, radius), x2, y2)


def test_a_circle_without_a_radius_is_a_point() -> None:
    # The squares of these distances are 0 as floats.
    for there in (1e-170, 1e-320):
        assert not contains(PLANE, Circle(0, 0, 0), there, 0)
        assert contains(PLANE, Circle(0, 0, there), there, 0)
        assert boxed(PLANE, Circle(0, 0, there), there, 0)


def test_boxes_are_not_much_larger_than_the_region() -> None:
    ((west, south, east, north),) = outer_boxes(GEO, Circle(139.7, 35.6, 1000))
    reach = math.degrees(1000 / EARTH_RADIUS_M)
    assert (south, north) == pytest.approx((35.6 - reach, 35.6 + reach), abs=1e-8)
    assert east - west == pytest.approx(2 * reach / math.cos(math.radians(35.6)), rel=1e-6)
    assert outer_boxes(PLANE, Bbox(1, 2, 3, 4)) == [(1, 2, 3, 4)]
    assert outer_boxes(GEO, Bbox(-10, 2, 3, 4)) == [(-10, 2, 3, 4)]


def test_boxes_at_the_antimeridian_and_the_poles() -> None:
    assert outer_boxes(GEO, Bbox(170, 0, -170, 1)) == [(170, 0, 180, 1), (-180, 0, -170, 1)]
    assert outer_boxes(GEO, Bbox(170, 0, 180, 1)) == [(170, 0, 180, 1), (-180, 0, -180, 1)]
    assert outer_boxes(GEO, Bbox(-180, 0, -170, 1)) == [(-180, 0, -170, 1), (180, 0, 180, 1)]
    assert outer_boxes(GEO, Bbox(-180, 0, 180, 1)) == [(-180, 0, 180, 1)]
    assert outer_boxes(PLANE, Bbox(-180, 0, -170, 1)) == [(-180, 0, -170, 1)]
    assert len(outer_boxes(GEO, Circle(179.99, 0, 5000))) == 2
    assert len(outer_boxes(GEO, Circle(-180, 0, 0))) == 2
    ((west, south, east, north),) = outer_boxes(GEO, Circle(10, 89.99, 5000))
    assert (west, east, north) == (-180, 180, 90)
    assert 89.9 < south < 89.99
    assert outer_boxes(GEO, Circle(10, 20, 1.01 * HALF_EARTH)) == [(-180, -90, 180, 90)]


def test_box_of_a_polygon_is_exact() -> None:
    region = Polygon((((0, 1), (5, 2), (3, 9), (0, 1)), ((10, -3), (12, 0), (11, 1), (10, -3))))
    for space in Space:
        assert outer_boxes(space, region) == [(0, -3, 12, 9)]
