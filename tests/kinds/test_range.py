"""`range`: its rows, and its definition."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.kernels.hashing import word_hash
from nearcast.kernels.slots import REGION_CODE
from nearcast.kinds import KINDS
from nearcast.kinds.range import RangeQuery
from nearcast.kinds.range.definition import InRegion
from nearcast.model.errors import Invalid
from nearcast.model.expression import TRUE, parse
from nearcast.model.geometry import region_contains
from nearcast.model.region import (
    BBOX,
    CIRCLE,
    POLYGON,
    Bbox,
    Circle,
    Polygon,
    Region,
    encode,
    outer_boxes,
    region_from_json,
)
from nearcast.model.space import Space
from nearcast.model.standing import Change, Seen
from nearcast.wire.jsonl import decode_jsonl

quick = settings(max_examples=30)

Json = dict[str, Any]
GEO, PLANE = Space.GEOGRAPHIC, Space.PLANAR
RANGE = KINDS["range"]


def row_of(region: Json, space: Space = PLANE, where: str = "") -> Json:
    query = {"kind": "range", "region": region, "where": where}
    event = {"op": "subscribe", "id": "s", "time": 1, "query": query}
    decoded = decode_jsonl(json.dumps(event).encode(), space, KINDS)
    assert decoded.rejects.to_pylist() == []
    assert decoded.ends.num_rows == 0
    [row] = decoded.subscribes["range"].to_pylist()
    return dict(row)


# -- rows ----------------------------------------------------------------------------------------

corners = st.one_of(
    st.sampled_from([-180, 180, -180.0, 180.0, -90, 90, 0, -0.0, 1, 179.5, 10**30]),
    st.floats(-200, 200),
    st.integers(-200, 200),
)
booleans_too: st.SearchStrategy[Any] = st.one_of(corners, st.sampled_from([True, None, "1"]))
boxes = st.lists(booleans_too, min_size=4, max_size=4)


def compiled(space: Space, region: Json) -> tuple[int, list[float], list[float]]:
    code, (data, around) = RANGE.compile(RangeQuery(region), space)
    return code, data, around


def slow(space: Space, region: Json) -> tuple[int, list[float], list[float]]:
    shape = region_from_json(space, region)
    code, data = encode(shape)
    around = [v for box in outer_boxes(space, shape) for v in box]
    return code, data, [] if code == BBOX and around == data else around


@quick
@given(st.sampled_from([GEO, PLANE]), boxes)
@example(GEO, [-180, -90, 180, 90])
@example(GEO, [-180, 0, 10, 1])
@example(GEO, [10, 0, 180.0, 1])
@example(GEO, [170, 0, -170, 1])
@example(GEO, [1, 2, 1, 2])
@example(PLANE, [0, 0, 10**400, 1])
@example(PLANE, [-1.7976931348623157e308, 0, 1.7976931348623157e308, 1])
@example(PLANE, [2, 0, 1, 1])
def test_plain_boxes_take_a_short_cut_to_the_same_row(space: Space, box: list[Any]) -> None:
    try:
        right = slow(space, {"bbox": box})
    except Invalid as error:
        with pytest.raises(Invalid) as caught:
            compiled(space, {"bbox": box})
        assert str(caught.value) == str(error)
        return
    found = compiled(space, {"bbox": box})
    assert found == right
    assert [type(v) for v in found[1]] == [float] * 4


@quick
@given(corners, corners, corners, corners)
def test_other_keys_change_nothing(a: float, b: float, c: float, d: float) -> None:
    box = [min(a, c), min(b, d), max(a, c), max(b, d)]
    right = slow(PLANE, {"bbox": box})
    assert compiled(PLANE, {"bbox": box, "name": "home", "circle": None}) == right


@pytest.mark.parametrize("west", [-180, 180.0, 179, -179.5])
@pytest.mark.parametrize("east", [-180.0, 180, 179.5, -179])
def test_boxes_around_the_antimeridian_cover_the_region(west: float, east: float) -> None:
    row = row_of({"bbox": [west, -1, east, 1]}, GEO)
    numbers = row["boxes"] or row["region"]
    around = [numbers[n : n + 4] for n in range(0, len(numbers), 4)]
    data = np.array(row["region"])
    for x in (-180.0, -179.5, -179.0, -10.0, 10.0, 179.0, 179.5, 180.0):
        if region_contains(GEO.code, BBOX, data, x, 0.0):
            assert any(a <= x <= c for a, _, c, _ in around)


def test_shapes_have_their_code_and_boxes_around_them() -> None:
    circle = row_of({"circle": {"at": [1, 2], "radius": 3}})
    assert circle["flags"] & REGION_CODE == CIRCLE
    assert circle["region"] == [1.0, 2.0, 3.0]
    assert len(circle["boxes"]) == 4
    assert circle["boxes"][0] <= -2.0
    assert circle["boxes"][3] >= 5.0
    ring = [[0, 0], [4, 0], [0, 4], [0, 0]]
    shape = row_of({"type": "Polygon", "coordinates": [ring]})
    assert shape["flags"] & REGION_CODE == POLYGON
    assert shape["region"] == [1.0, 4.0, *map(float, chain.from_iterable(ring))]
    assert shape["boxes"] == [0.0, 0.0, 4.0, 4.0]


# -- the definition ------------------------------------------------------------------------------

REGIONS: list[Region] = [
    Bbox(139.0, 35.0, 140.0, 36.0),
    Circle(139.5, 35.5, 20_000.0),
    Polygon((((139.0, 35.0), (140.0, 35.0), (139.5, 36.0), (139.0, 35.0)),)),
]
WRITTEN: list[Json] = [
    {"bbox": [139.0, 35.0, 140.0, 36.0]},
    {"circle": {"at": [139.5, 35.5], "radius": 20_000}},
    {"type": "Polygon", "coordinates": [[[139, 35], [140, 35], [139.5, 36], [139, 35]]]},
]


def seen(x: float, y: float, *words: str) -> Seen:
    return Seen("o", 7, x, y, dict.fromkeys(words, 1), 9)


@pytest.mark.parametrize("region", REGIONS, ids=lambda region: type(region).__name__)
def test_range_wants_both_place_and_words(region: Region) -> None:
    standing = InRegion(GEO, region, parse("ramen AND (late OR night)"))
    assert standing.matches(seen(139.5, 35.5, "ramen", "late"))
    assert not standing.matches(seen(139.5, 35.5, "ramen"))
    assert not standing.matches(seen(141.0, 35.5, "ramen", "late"))


def test_the_space_decides_what_a_region_means() -> None:
    region = Circle(0.0, 0.0, 2.0)
    assert InRegion(PLANE, region, TRUE).matches(seen(1.0, 1.0))
    assert not InRegion(GEO, region, TRUE).matches(seen(1.0, 1.0))


def test_each_object_is_a_match_and_nothing_is_kept() -> None:
    standing = InRegion(PLANE, Bbox(0.0, 0.0, 1.0, 1.0), TRUE)
    for _ in range(2):
        assert [*standing.offer(seen(0.0, 0.0))] == [Change("match", "o", 7)]
    assert standing.held() is None


@pytest.mark.parametrize("space", [GEO, PLANE])
@pytest.mark.parametrize("region", REGIONS, ids=lambda region: type(region).__name__)
def test_a_row_stands_for_what_was_written(space: Space, region: Region) -> None:
    """Read from JSON with words as text, and from its row with hashes, the region is the same."""
    written = WRITTEN[REGIONS.index(region)]
    read = RANGE.read({"kind": "range", "region": written, "where": "a OR NOT b"}, space)
    assert read == InRegion(space, region, parse("a OR NOT b"))
    back = RANGE.standing(row_of(written, space, "a OR NOT b"), space)
    assert isinstance(back, InRegion)
    assert (back.space, back.region) == (space, region)
    for words, right in (((), True), (("a",), True), (("b",), False), (("a", "b"), True)):
        hashes = {word_hash(word): 1 for word in words}
        assert back.matches(seen(139.5, 35.5)._replace(words=hashes)) == right
