"""Regions from JSON, and as flat numbers."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.model.errors import Invalid
from nearcast.model.geometry import region_contains
from nearcast.model.region import (
    BBOX,
    CIRCLE,
    POLYGON,
    Bbox,
    Circle,
    Polygon,
    Region,
    decode,
    encode,
    region_from_json,
)
from nearcast.model.space import Space

GEO, PLANE = Space.GEOGRAPHIC, Space.PLANAR
SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
HOLE = [[1, 1], [1, 2], [2, 2], [2, 1], [1, 1]]
FAR = [[10, 10], [14, 10], [14, 14], [10, 10]]


def points(ring: list[list[int]]) -> tuple[tuple[float, float], ...]:
    return tuple((float(x), float(y)) for x, y in ring)


def polygon(*rings: object) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": list(rings)}


def multi(*polygons: object) -> dict[str, object]:
    return {"type": "MultiPolygon", "coordinates": list(polygons)}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({"bbox": [139, 35, 140, 36.5]}, Bbox(139.0, 35.0, 140.0, 36.5)),
        ({"bbox": [1, 1, 1, 1], "note": "a point"}, Bbox(1.0, 1.0, 1.0, 1.0)),
        ({"bbox": None, "circle": {"at": [1, 2], "radius": 0}}, Circle(1.0, 2.0, 0.0)),
        ({"circle": {"at": (1.5, 2), "radius": 5000}}, Circle(1.5, 2.0, 5000.0)),
        (polygon(SQUARE), Polygon((points(SQUARE),))),
        (polygon(SQUARE, HOLE), Polygon((points(SQUARE), points(HOLE)))),
        (multi([SQUARE, HOLE], [FAR]), Polygon((points(SQUARE), points(HOLE), points(FAR)))),
    ],
)
def test_good_regions(obj: object, expected: Region) -> None:
    for space in Space:
        region = region_from_json(space, obj)
        assert region == expected
        assert all(type(number) is float for number in encode(region)[1])


def test_antimeridian_only_on_the_sphere() -> None:
    assert region_from_json(GEO, {"bbox": [170, 0, -170, 1]}) == Bbox(170.0, 0.0, -170.0, 1.0)
    with pytest.raises(Invalid, match="minx 170 is greater than maxx -170"):
        region_from_json(PLANE, {"bbox": [170, 0, -170, 1]})


def test_a_geometry_may_carry_its_bounding_box() -> None:
    assert region_from_json(GEO, {"bbox": [0, 0, 9, 9], **polygon(SQUARE)}) == region_from_json(
        GEO, polygon(SQUARE)
    )


def test_polygons_may_share_an_edge_but_no_area() -> None:
    def box(x: float, wide: float) -> list[list[float]]:
        return [[x, 0], [x + wide, 0], [x + wide, 4], [x, 4], [x, 0]]

    region = region_from_json(GEO, multi([box(0, 2)], [box(2, 2)], [box(8, 2)]))
    code, data = encode(region)
    flat = np.array(data)
    places = (-1, 0, 1, 2, 3, 4, 5, 8, 9)
    inside = [x for x in places if region_contains(GEO.code, code, flat, float(x), 2.0)]
    assert inside == [0, 1, 2, 3, 4, 8, 9]
    for parts in ([[box(0, 3)], [box(2, 2)]], [[box(0, 2)], [box(2, 2)], [box(3, 4)]]):
        with pytest.raises(Invalid, match="not a valid polygon"):
            region_from_json(GEO, multi(*parts))


BAD: list[tuple[object, str]] = [
    (None, "region: None is not an object"),
    ([1, 2, 3, 4], "is not an object"),
    ({}, "holds no shape"),
    ({"type": "Polygon"}, "holds no shape"),
    ({"bbox": [0, 0, 1, 1], "circle": {"at": [0, 0], "radius": 1}}, "keep exactly one"),
    ({"bbox": [0, 0, 1, 1], "coordinates": [SQUARE]}, "keep exactly one"),
    ({"bbox": [0, 0, 1]}, "region.bbox: [0, 0, 1] is not 4 numbers"),
    ({"bbox": "0,0,1,1"}, "is not 4 numbers"),
    ({"bbox": [0, 0, 1, True]}, "region.bbox: True is not a number"),
    ({"bbox": [0, 0, 1, "1"]}, "'1' is not a number"),
    ({"bbox": [0, 0, 1, math.nan]}, "nan is not a finite number"),
    ({"bbox": [0, 0, 1, 10**400]}, "is not a finite number"),
    ({"bbox": [0, 0, 1, 10**9999]}, "is not a finite number"),
    (
        {"bbox": [0, 36, 1, 35]},
        "region.bbox: south 36 is greater than north 35; write [west, south, east, north]",
    ),
    ({"bbox": [0, 0, 181, 1]}, "region.bbox: longitude 181 is outside [-180, 180]"),
    ({"bbox": [35, 139, 36, 140]}, "region.bbox: latitude 139 is outside [-90, 90]"),
    ({"circle": [0, 0, 1]}, "region.circle: [0, 0, 1] is not an object"),
    ({"circle": {"at": [0, 0]}}, "is not an object"),
    ({"circle": {"at": [0], "radius": 1}}, "region.circle.at: [0] is not a position"),
    ({"circle": {"at": {"x": 0}, "radius": 1}}, "is not a position"),
    ({"circle": {"at": [0, 91], "radius": 1}}, "region.circle.at: latitude 91"),
    ({"circle": {"at": [0, 0], "radius": -1}}, "region.circle.radius: -1 is less than 0"),
    ({"circle": {"at": [0, 0], "radius": math.inf}}, "radius: inf is not a finite number"),
    ({"circle": {"at": [0, 0], "radius": None}}, "radius: None is not a number"),
    ({"type": "Point", "coordinates": [0, 0]}, "region.type: 'Point' is not Polygon"),
    ({"coordinates": [SQUARE]}, "region.type: None is not Polygon"),
    (polygon(), "region.coordinates: is empty"),
    (multi(), "region.coordinates: is empty"),
    (multi([]), "region.coordinates[0]: is empty"),
    (polygon([]), "region.coordinates[0]: is empty"),
    (polygon(7), "region.coordinates[0]: 7 is not a list"),
    (polygon(SQUARE[:2] + SQUARE[:1]), "needs at least 4 positions, this one has 3"),
    (polygon(SQUARE[:4]), "region.coordinates[0]: the ring is not closed"),
    (multi([SQUARE], [SQUARE[:4]]), "region.coordinates[1][0]: the ring is not closed"),
    (polygon([[0, 0, 5], *SQUARE[1:]]), "[0, 0, 5] is not a position"),
    (polygon([[0, None], *SQUARE[1:]]), "None is not a number"),
    (polygon([[0, 0], [200, 0], [200, 5], [0, 0]]), "longitude 200"),
    (polygon([[0, 0], [4, 4], [4, 0], [0, 4], [0, 0]]), "edges cross or overlap near [2, 2]"),
    (polygon([[0, 0], [1, 1], [2, 2], [0, 0]]), "not a valid polygon"),
    (polygon([[1, 1]] * 4), "a ring has no area"),
    (polygon(SQUARE, FAR), "a hole lies outside its outer ring"),
    (polygon(SQUARE, HOLE, HOLE), "not a valid polygon"),
    (multi([SQUARE], [SQUARE]), "not a valid polygon"),
    (multi([SQUARE], [HOLE]), "a polygon lies inside another polygon"),
]


@pytest.mark.parametrize(("obj", "part"), BAD, ids=[part for _, part in BAD])
def test_bad_regions(obj: object, part: str) -> None:
    with pytest.raises(Invalid) as refused:
        region_from_json(GEO, obj)
    message = str(refused.value)
    assert part in message
    assert "\n" not in message
    assert len(message) < 250


def test_planar_regions_may_be_anywhere() -> None:
    assert region_from_json(PLANE, {"bbox": [-500, 400, 500, 401]}) == Bbox(-500, 400, 500, 401)
    with pytest.raises(Invalid, match="miny 2 is greater than maxy 1"):
        region_from_json(PLANE, {"bbox": [0, 2, 1, 1]})
    huge = [[0, 0], [1e308, 0], [1e308, 1e308], [0, 0]]
    try:
        region_from_json(PLANE, polygon(huge))
    except Invalid as refused:
        assert "\n" not in str(refused)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=10,
)


@given(st.sampled_from(Space), st.sampled_from(["bbox", "circle", "coordinates"]), JSON)
def test_anything_else_is_refused_and_never_breaks(space: Space, form: str, value: Any) -> None:
    for kind in ("Polygon", "MultiPolygon", value):
        try:
            region = region_from_json(space, {"type": kind, form: value})
        except Invalid as refused:
            assert "\n" not in str(refused)
        else:
            assert decode(*encode(region)) == region


def test_a_large_polygon_is_read() -> None:
    angles = np.linspace(0.0, 2 * math.pi, 10_001)
    ring = np.column_stack((10 * np.cos(angles), 10 * np.sin(angles))).tolist()
    ring[-1] = ring[0]
    region = region_from_json(GEO, polygon(ring))
    assert isinstance(region, Polygon)
    assert len(region.rings[0]) == 10_001


def test_flat_forms() -> None:
    assert encode(Bbox(1.0, 2.0, 3.0, 4.0)) == (BBOX, [1, 2, 3, 4])
    assert encode(Circle(1.0, 2.0, 3.0)) == (CIRCLE, [1, 2, 3])
    triangle = ((0.0, 1.0), (2.0, 3.0), (4.0, 5.0), (0.0, 1.0))
    code, data = encode(Polygon((triangle, triangle)))
    assert (code, data) == (POLYGON, [2, 4, 4, *[0, 1, 2, 3, 4, 5, 0, 1] * 2])
    assert decode(code, np.array(data)) == Polygon((triangle, triangle))
    with pytest.raises(Invalid, match="code of a shape"):
        decode(7, [])


def test_values_refuse_nonsense() -> None:
    with pytest.raises(Invalid):
        Bbox(0, 0, math.inf, 1)
    with pytest.raises(Invalid):
        Bbox(0, 2, 1, 1)
    with pytest.raises(Invalid):
        Circle(0, 0, -1)
    with pytest.raises(Invalid):
        Circle(0, math.nan, 1)
    with pytest.raises(Invalid):
        Polygon(())
    with pytest.raises(Invalid):
        Polygon((((0, 0), (1, 0), (1, 1), (0, 1)),))
