"""Positions and distances."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.model.errors import Invalid
from nearcast.model.space import (
    EARTH_RADIUS_M,
    Space,
    check_position,
    distance,
    euclidean,
    haversine_m,
)

LON = st.floats(-180, 180) | st.sampled_from([-180.0, 180.0])
LAT = st.floats(-90, 90)
PLAIN = st.floats(allow_nan=False, allow_infinity=False)


def haversine_by_definition(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    lon1, lon2 = (-180.0 if lon == 180.0 else lon for lon in (lon1, lon2))
    phi1, phi2 = (lat * (math.pi / 180) for lat in (lat1, lat2))
    d_lambda = lon2 * (math.pi / 180) - lon1 * (math.pi / 180)
    # Not ** 2: pow is off by the last bit now and then.
    s1, s2 = math.sin((phi2 - phi1) / 2), math.sin(d_lambda / 2)
    h = s1 * s1 + math.cos(phi1) * math.cos(phi2) * (s2 * s2)
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(h)))


@given(LON, LAT, LON, LAT)
def test_haversine(lon1: float, lat1: float, lon2: float, lat2: float) -> None:
    measured = haversine_m(lon1, lat1, lon2, lat2)
    expected = haversine_by_definition(lon1, lat1, lon2, lat2)
    assert measured == expected  # to the last bit: equal distances must stay equal
    assert measured == haversine_m(lon2, lat2, lon1, lat1)
    assert distance(Space.GEOGRAPHIC.code, lon1, lat1, lon2, lat2) == measured


def test_haversine_of_known_arcs() -> None:
    quarter = math.pi / 2 * EARTH_RADIUS_M
    assert haversine_m(0.0, 0.0, 90.0, 0.0) == pytest.approx(quarter, rel=1e-15)
    assert haversine_m(12.0, -90.0, -77.0, 90.0) == pytest.approx(2 * quarter, rel=1e-15)
    assert haversine_m(180.0, 10.0, -180.0, 10.0) == 0.0


@given(LON, LAT, LAT)
def test_the_two_ends_of_the_world_tie(lon: float, lat1: float, lat2: float) -> None:
    """Longitudes -180 and 180 are one meridian: either gives the same distance, to the last bit."""
    west = haversine_m(lon, lat1, -180.0, lat2)
    assert haversine_m(lon, lat1, 180.0, lat2) == west
    assert haversine_m(180.0, lat2, lon, lat1) == haversine_m(-180.0, lat2, lon, lat1)
    assert haversine_m(180.0, lat1, -180.0, lat2) == haversine_m(180.0, lat1, 180.0, lat2)


@given(PLAIN, PLAIN, PLAIN, PLAIN)
def test_euclidean_has_the_very_bits_of_the_formula(
    x1: float, y1: float, x2: float, y2: float
) -> None:
    # Also proves that the compiler does not fuse multiplication and addition.
    dx, dy = x2 - x1, y2 - y1
    square = dx * dx + dy * dy
    measured = euclidean(x1, y1, x2, y2)
    if 1e-280 < square < math.inf:
        assert measured == math.sqrt(square)
    else:  # squares say nothing any more
        assert measured == pytest.approx(math.hypot(dx, dy), rel=1e-15)
    assert distance(Space.PLANAR.code, x1, y1, x2, y2) == measured


def test_euclidean_of_the_very_far_and_the_very_near() -> None:
    for size in (1e-320, 1e-200, 1e160, 1e300):
        assert euclidean(0.0, 0.0, size, 0.0) == size
        assert euclidean(0.0, size, size, 0.0) == pytest.approx(math.sqrt(2) * size, rel=1e-3)
    assert euclidean(1.7e308, 0.0, -1.7e308, 0.0) == math.inf  # no float is so large


def test_codes_and_names() -> None:
    assert [(space.value, space.code) for space in Space] == [("geographic", 0), ("planar", 1)]
    assert Space("planar") is Space.PLANAR


@pytest.mark.parametrize("at", [(0, 0), (-180.0, 90.0), (180, -90)])
def test_good_positions(at: tuple[float, float]) -> None:
    check_position(Space.GEOGRAPHIC, *at)
    check_position(Space.PLANAR, *at)


@pytest.mark.parametrize(
    ("space", "x", "y", "part"),
    [
        (Space.GEOGRAPHIC, 180.5, 0.0, "longitude 180.5 is outside [-180, 180]"),
        (Space.GEOGRAPHIC, 35.6, 139.7, "latitude 139.7 is outside [-90, 90]; write [lon, lat]"),
        (Space.GEOGRAPHIC, math.nan, 0.0, "longitude nan"),
        (Space.GEOGRAPHIC, 0.0, math.nan, "latitude nan"),
        (Space.GEOGRAPHIC, 10**400, 0, "longitude"),
        (Space.PLANAR, math.inf, 0.0, "inf is not a finite number"),
        (Space.PLANAR, 0.0, math.nan, "nan is not a finite number"),
        (Space.PLANAR, 0, 10**400, "is not a finite number"),
        (Space.PLANAR, True, 0, "True is not a number"),
        (Space.PLANAR, 0, "1", "'1' is not a number"),
    ],
)
def test_bad_positions(space: Space, x: float, y: float, part: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_position(space, x, y)
    assert part in str(refused.value)


def test_planar_positions_may_lie_anywhere() -> None:
    check_position(Space.PLANAR, 1e308, -1e308)


def test_an_integer_too_long_to_print_is_refused_like_others() -> None:
    with pytest.raises(Invalid, match="longitude one huge int is outside"):
        check_position(Space.GEOGRAPHIC, 10**9999, 0)
    with pytest.raises(Invalid, match="one huge int is not a finite number"):
        check_position(Space.PLANAR, 0, 10**9999)
