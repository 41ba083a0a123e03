"""Subscriptions as rows: programs, covers, regions and what is echoed."""

from __future__ import annotations

import json
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.kernels.hashing import word_hash
from nearcast.kernels.program import satisfied
from nearcast.kernels.slots import CONJUNCTION, REGION_CODE, REPORTS
from nearcast.model.errors import Invalid
from nearcast.model.expression import evaluate, parse
from nearcast.model.geometry import region_contains
from nearcast.model.region import BBOX, CIRCLE, POLYGON, encode, outer_boxes, region_from_json
from nearcast.model.space import Space
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.subscriptions import ControlBuilder, compile_where, json_body
from nearcast.wire.tables import FOREVER, KINDS

quick = settings(max_examples=30)

Json = dict[str, Any]
GEO, PLANE = Space.GEOGRAPHIC, Space.PLANAR
BOX: Json = {"bbox": [0, 0, 1, 1]}


def control(query: Json, space: Space = PLANE, **fields: Any) -> Json:
    event = {"op": "subscribe", "id": "s", "time": 1, "query": query, **fields}
    decoded = decode_jsonl(json.dumps(event).encode(), space)
    assert decoded.rejects.to_pylist() == []
    [row] = decoded.controls.to_pylist()
    return dict(row)


def ranged(where: str | None = None, region: Json = BOX) -> Json:
    return {"kind": "range", "region": region, **({} if where is None else {"where": where})}


# -- where ---------------------------------------------------------------------------------------

WORDS = ("a", "b", "c")
SETS = [set(s) for s in chain.from_iterable(combinations(WORDS, n) for n in range(4))]


@pytest.mark.parametrize(
    "where",
    ["a", "a b", "a AND b AND c", "a OR b", "NOT a", "a AND NOT b", "a OR NOT b", "(a OR b) c"]
    + ["NOT (a b)", "NOT (a OR b)", "a AND NOT a", "", " ", "NOT NOT a", '"a"', "(a)"],
)
def test_programs_and_covers(where: str) -> None:
    row = control(ranged(where))
    program = np.array(row["program"], np.uint64)
    stack = np.zeros(len(program) + 1, np.uint8)
    cover = set(row["cover"])
    for words in SETS:
        held = np.array(sorted(map(word_hash, words)), np.uint64)
        right = evaluate(parse(where), words)
        assert satisfied(program, 0, len(program), held, 0, len(held), stack) == right
        if right and cover:
            assert cover & set(held.tolist())


@pytest.mark.parametrize(
    ("where", "conjunction", "covered"),
    [
        ("a b", True, []),  # the index chooses the rarest
        ("", True, []),
        ("a OR b", False, ["a", "b"]),
        ("NOT a", False, []),  # an object without any of the words may match
        ("(a OR b) AND c", False, ["c"]),
        ("a AND NOT b", False, ["a"]),
    ],
)
def test_which_words_a_match_holds(where: str, conjunction: bool, covered: list[str]) -> None:
    program, cover, plain = compile_where(where)
    assert (sorted(cover), plain) == (covered, conjunction)
    row = control(ranged(where))
    assert bool(row["flags"] & CONJUNCTION) == conjunction
    assert sorted(row["cover"]) == sorted(map(word_hash, covered))
    assert len(row["program"]) == len(program)


def test_programs_of_several_rows_do_not_mix() -> None:
    lines = [
        json.dumps({"op": "subscribe", "id": "s", "time": 1, "query": ranged(w)})
        for w in ("a", "a OR b", "", "c d")
    ]
    table = decode_jsonl("\n".join(lines).encode(), PLANE).controls
    apart = [decode_jsonl(line.encode(), PLANE).controls for line in lines]
    for name in ("program", "cover"):
        assert table[name].to_pylist() == [t[name].to_pylist()[0] for t in apart]


# -- regions -------------------------------------------------------------------------------------

corners = st.one_of(
    st.sampled_from([-180, 180, -180.0, 180.0, -90, 90, 0, -0.0, 1, 179.5, 10**30]),
    st.floats(-200, 200),
    st.integers(-200, 200),
)
booleans_too: st.SearchStrategy[Any] = st.one_of(corners, st.sampled_from([True, None, "1"]))
boxes = st.lists(booleans_too, min_size=4, max_size=4)


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
    quick = ControlBuilder(space)._region
    try:
        right = slow(space, {"bbox": box})
    except Invalid as error:
        with pytest.raises(Invalid) as caught:
            quick({"bbox": box})
        assert str(caught.value) == str(error)
        return
    found = quick({"bbox": box})
    assert found == right
    assert [type(v) for v in found[1]] == [float] * 4


@quick
@given(corners, corners, corners, corners)
def test_other_keys_change_nothing(a: float, b: float, c: float, d: float) -> None:
    box = [min(a, c), min(b, d), max(a, c), max(b, d)]
    right = slow(PLANE, {"bbox": box})
    assert ControlBuilder(PLANE)._region({"bbox": box, "name": "home", "circle": None}) == right


@pytest.mark.parametrize("west", [-180, 180.0, 179, -179.5])
@pytest.mark.parametrize("east", [-180.0, 180, 179.5, -179])
def test_boxes_around_the_antimeridian_cover_the_region(west: float, east: float) -> None:
    row = control(ranged(region={"bbox": [west, -1, east, 1]}), GEO)
    numbers = row["boxes"] or row["region"]
    around = [numbers[n : n + 4] for n in range(0, len(numbers), 4)]
    data = np.array(row["region"])
    for x in (-180.0, -179.5, -179.0, -10.0, 10.0, 179.0, 179.5, 180.0):
        if region_contains(GEO.code, BBOX, data, x, 0.0):
            assert any(a <= x <= c for a, _, c, _ in around)


def test_shapes_have_their_code_and_boxes_around_them() -> None:
    circle = control(ranged(region={"circle": {"at": [1, 2], "radius": 3}}))
    assert circle["flags"] & REGION_CODE == CIRCLE
    assert circle["region"] == [1.0, 2.0, 3.0]
    assert len(circle["boxes"]) == 4
    assert circle["boxes"][0] <= -2.0
    assert circle["boxes"][3] >= 5.0
    ring = [[0, 0], [4, 0], [0, 4], [0, 0]]
    shape = control(ranged(region={"type": "Polygon", "coordinates": [ring]}))
    assert shape["flags"] & REGION_CODE == POLYGON
    assert shape["region"] == [1.0, 4.0, *map(float, chain.from_iterable(ring))]
    assert shape["boxes"] == [0.0, 0.0, 4.0, 4.0]


def test_knn_rows_hold_the_place() -> None:
    row = control({"kind": "knn", "at": [1, 2.5], "k": 3, "window": 40})
    assert (row["region"], row["k"], row["window"], row["boxes"]) == ([1.0, 2.5], 3, 40, [])
    assert KINDS[row["kind"]] == "knn"
    assert control({"kind": "knn", "at": [1, 2], "k": 3})["window"] == 0


# -- times, ids, echoes --------------------------------------------------------------------------


def test_times_of_a_subscription() -> None:
    row = control(ranged())
    assert (row["time"], row["end"]) == (1, FOREVER)
    assert row["flags"] & REPORTS
    row = control(ranged(), time="1970-01-01T00:00:01Z", expires="1970-01-01T00:00:00.5Z")
    assert (row["time"], row["end"]) == (1000, 500)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"owner": "me"},
        {"owner": ""},
        {"meta": {}},
        {"owner": 'q"\\\n☃', "meta": {"a": [1, None, {"ß": 0.1}], "n": -(2**63)}},
        {"owner": None, "meta": None},
    ],
)
def test_echoes_stand_behind_the_id(fields: Json) -> None:
    tail = control(ranged(), **fields)["tail"]
    right = {k: v for k, v in fields.items() if v is not None}
    assert json.loads(b'{"id":"s"' + tail + b"}") == {"id": "s", **right}
    assert b"\n" not in tail


@quick
@given(st.text(max_size=8))
def test_json_body(text: str) -> None:
    body = json_body(text)
    assert json.loads(b'"%s"' % body) == text
    assert b"\n" not in body


def test_an_unsubscribe_has_only_an_id_and_a_time() -> None:
    data = b'{"op":"unsubscribe","id":"s\\u0022","time":7}'
    [row] = decode_jsonl(data, PLANE, split=2).controls.to_pylist()
    assert (row["op"], row["id"], row["time"], row["pos"]) == (1, b's\\"', 7, 2 << 32)
    assert row["program"] == row["cover"] == row["region"] == row["boxes"] == []
