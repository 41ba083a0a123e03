"""Plain subscribes and unsubscribes: the same rows as those read one by one, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nearcast.kernels.plain_query import read_queries
from nearcast.model.space import Space
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.plain_controls import plain_controls
from nearcast.wire.tables import CONTROLS, strings

words = st.sampled_from(
    ["a", "B", "ab", "aB", "or", "And", "NOT", "x1", "zz", "a-b", "é", "", '"q"']
)
joints = st.sampled_from([" OR ", " AND ", " OR ", " ", "  OR ", " or "])
digits = st.one_of(
    st.floats(-200, 200).map(repr),
    st.integers(-200, 200).map(str),
    st.decimals(-200, 200, places=6).map(str),
    st.sampled_from(
        ["-0", "-0.0", "0.0", "00", "1.", ".5", "-", "1e2", "179.999999999999999", "+1"]
    ),
)
spaces_ = st.sampled_from(["", " ", "\n\t"])


@st.composite
def wheres(draw: st.DrawFn) -> str:
    joint = draw(joints)
    parts = draw(st.lists(words, min_size=1, max_size=5))
    text = joint.join(parts)
    return text + draw(joints) + "c" if draw(st.booleans()) else text


@st.composite
def queries(draw: st.DrawFn) -> str:
    blank = draw(spaces_)
    box = ",".join(blank + draw(digits) + blank for _ in range(draw(st.sampled_from([4, 4, 4, 3]))))
    if draw(st.booleans()):
        x, y = draw(st.integers(-170, 170)), draw(st.integers(-80, 80))
        box = f"{x},{y}{blank},{x + 1.25},{y + 0.000001:f}"
    members = [
        f'"kind"{blank}:"{draw(st.sampled_from(["range", "range", "Range"]))}"',
        f'"region":{blank}{{"bbox":[{box}]{blank}}}',
        f'"where":{blank}{json.dumps(draw(wheres()))}',
    ]
    members = draw(st.permutations(members))
    if draw(st.integers(0, 9)) == 0:
        members = members[draw(st.integers(0, 2)) :] + draw(st.sampled_from([[], ['"k":1']]))
    return blank + "{" + f",{blank}".join(members) + "}" + blank


@given(st.lists(queries(), max_size=6), st.sampled_from(list(Space)))
@example(
    ['{"kind":"range","region":{"bbox":[-0,-0.0,1.50,1]},"where":"b OR a OR B"}'], Space.PLANAR
)
def test_as_in_json(texts: list[str], space: Space) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "op": pa.array(["subscribe"] * len(texts), pa.string()),
            "id": pa.array([f"s{n}" for n in range(len(texts))], pa.string()),
            "time": pa.array([5] * len(texts), pa.int64()),
            "query": pa.array(texts, pa.string()),
        }
    )
    plain, table = plain_controls(batch, np.arange(len(texts)), space)
    assert table.schema == CONTROLS
    for row, n in enumerate(np.flatnonzero(plain).tolist()):
        line = f'{{"op":"subscribe","id":"s{n}","time":5,"query":{texts[n]}}}'.replace("\n", " ")
        right = decode_jsonl(line.encode(), space)
        assert right.rejects.num_rows == 0, texts[n]
        assert comparable(table, row) == comparable(right.controls, 0), texts[n]


def comparable(table: pa.RecordBatch, row: int) -> dict[str, Any]:
    values = table.slice(row, 1).to_pylist()[0]
    return {k: repr(v) for k, v in values.items() if k not in ("pos", "clock")}  # -0.0 is not 0.0


def read(text: str) -> bool:
    offsets, data = strings(pa.array([text], pa.large_string()))
    return bool(read_queries(data, offsets).plain[0])


QUERY = '{"kind":"range","region":{"bbox":[1,-2.5,3,4]},"where":"a OR b"}'


def test_what_is_plain() -> None:
    assert read(QUERY)
    assert read(' { "where" : "a" , "region" : { "bbox" : [ 1 , 2 , 3 , 4 ] } , "kind":"range" } ')
    assert read(QUERY.replace("a OR b", "a AND b AND c"))
    assert read(QUERY.replace("a OR b", " OR ".join("abcdefgh" * 8)))
    assert read(QUERY.replace("-2.5", "-12345678.1234567"))


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("a OR b", "a OR b AND c"),
        ("a OR b", "a OR OR"),
        ("a OR b", "NOT"),
        ("a OR b", "a  OR b"),
        ("a OR b", "a OR "),
        ("a OR b", " a"),
        ("a OR b", ""),
        ("a OR b", "caf\u00e9"),
        ("a OR b", "a\\u0062"),
        ("a OR b", " OR ".join("abcdefgh" * 9)),
        ('"a OR b"', "null"),
        ("-2.5", "-2.50000000000000000001"),
        ("-2.5", "-02.5"),
        ("-2.5", "2e1"),
        ("-2.5", "-.5"),
        ("-2.5", "2."),
        ("-2.5", "--2"),
        ("-2.5", "null"),
        ("[1,", "[1,1,"),
        ("[1,", "["),
        ("bbox", "circle"),
        ("range", "knn"),
        ("kind", "where"),
        ("region", "where"),
        ("}", ""),
        ('"kind":"range",', ""),
        ('"kind":"range",', '"kind":"range","k":5,'),
        ('"kind":"range",', '"kind":"range","kind":"range",'),
    ],
)
def test_what_is_not(what: str, other: str) -> None:
    assert what in QUERY
    assert not read(QUERY.replace(what, other))


def test_anything_cut_short_is_not() -> None:
    for n in range(len(QUERY)):
        assert not read(QUERY[:n])
    assert not read(QUERY + "}")


def test_rows_that_need_a_closer_look() -> None:
    rows: list[dict[str, Any]] = [
        {"op": "subscribe", "id": "a", "time": 1},
        {"op": "unsubscribe", "id": 'q"', "time": 2, "query": None},
        {"op": "unsubscribe", "id": "c", "time": 2**61},
        {"op": "unsubscribe", "id": "", "time": 1},
        {"op": "unsubscribe", "id": None, "time": 1},
        {"op": "unsubscribe", "id": "d", "time": None},
        {"op": "subscribe", "id": "e", "time": 1, "expires": 9},
        {"op": "subscribe", "id": "f", "time": 1, "owner": "me"},
        {"op": "subscribe", "id": "g", "time": 1, "meta": "{}"},
        {"op": "subscribe", "id": "x" * 257, "time": 1},
        {"op": "ask", "id": "h", "time": 1},
        {"op": None, "id": "i", "time": 1},
        {"op": "subscribe", "id": "é" * 256, "time": -5},
    ]
    names = ("op", "id", "time", "query", "expires", "owner", "meta")
    filled = [{"query": QUERY} | row for row in rows]
    for time in (pa.int64(), pa.uint64()):
        types = [
            time if n == "time" else pa.int64() if n == "expires" else pa.string() for n in names
        ]
        kept = [r for r in filled if time == pa.int64() or r["id"] != "é" * 256]
        batch = pa.RecordBatch.from_pylist(kept, pa.schema(list(zip(names, types, strict=True))))
        plain, table = plain_controls(batch, np.arange(len(kept)) + 10, Space.GEOGRAPHIC)
        wanted = [0, 1, 12] if time == pa.int64() else [0, 1]
        assert np.flatnonzero(plain).tolist() == wanted
        assert table["pos"].to_pylist() == [10 + n for n in wanted]
        assert table["id"].to_pylist()[:2] == [b"a", b'q\\"']
        assert table["op"].to_pylist()[:2] == [0, 1]
