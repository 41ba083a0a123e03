"""Plain subscribes and unsubscribes: the same rows as those read one by one, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st
from tests.wire.rows import controls

from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.plain_controls import plain_controls
from nearcast.wire.tables import ENDS

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
    plain, subscribes, ends = plain_controls(batch, np.arange(len(texts)), space, KINDS)
    assert ends.num_rows == 0
    rows: dict[int, dict[str, Any]] = {}
    for name, table in subscribes.items():
        assert table.schema == KINDS[name].schema
        rows |= {row["pos"]: {"kind": name, **row} for row in table.to_pylist()}
    assert sorted(rows) == np.flatnonzero(plain).tolist()
    for n, row in rows.items():
        line = f'{{"op":"subscribe","id":"s{n}","time":5,"query":{texts[n]}}}'.replace("\n", " ")
        right = decode_jsonl(line.encode(), space, KINDS)
        assert right.rejects.num_rows == 0, texts[n]
        assert [comparable(row)] == [comparable(one) for one in controls(right)], texts[n]


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    return {k: repr(v) for k, v in row.items() if k not in ("pos", "clock")}  # -0.0 is not 0.0


QUERY = '{"kind":"range","region":{"bbox":[1,-2.5,3,4]},"where":"a OR b"}'


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
        pos = np.arange(len(kept)) + 10
        plain, subscribes, ends = plain_controls(batch, pos, Space.GEOGRAPHIC, KINDS)
        wanted = [0, 12] if time == pa.int64() else [0]
        assert np.flatnonzero(plain).tolist() == sorted([1, *wanted])
        assert list(subscribes) == ["range"]
        table = subscribes["range"]
        assert table["pos"].to_pylist() == [10 + n for n in wanted]
        assert table["id"].to_pylist()[:1] == [b"a"]
        assert table["op"].to_pylist() == [0] * len(wanted)
        assert ends.schema == ENDS
        [end] = ends.to_pylist()
        assert (end["pos"], end["op"], end["time"], end["id"]) == (11, 1, 2, b'q\\"')
