"""Subscriptions as rows: programs, covers and what is echoed (what is of one kind: tests/kinds)."""

from __future__ import annotations

import json
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.rows import controls

from nearcast.kernels.hashing import word_hash
from nearcast.kernels.program import satisfied
from nearcast.kernels.slots import CONJUNCTION, REPORTS
from nearcast.kinds import KINDS
from nearcast.model.expression import evaluate, parse
from nearcast.model.space import Space
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.programs import compile_where
from nearcast.wire.subscriptions import json_body
from nearcast.wire.tables import ENDS, FOREVER

quick = settings(max_examples=30)

Json = dict[str, Any]
PLANE = Space.PLANAR
BOX: Json = {"bbox": [0, 0, 1, 1]}


def control(query: Json, **fields: Any) -> Json:
    event = {"op": "subscribe", "id": "s", "time": 1, "query": query, **fields}
    decoded = decode_jsonl(json.dumps(event).encode(), PLANE, KINDS)
    assert decoded.rejects.to_pylist() == []
    [row] = controls(decoded)
    return row


def ranged(where: str | None = None) -> Json:
    return {"kind": "range", "region": BOX, **({} if where is None else {"where": where})}


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
    together = controls(decode_jsonl("\n".join(lines).encode(), PLANE, KINDS))
    apart = [row for one in lines for row in controls(decode_jsonl(one.encode(), PLANE, KINDS))]
    for name in ("program", "cover"):
        assert [row[name] for row in together] == [row[name] for row in apart]


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
    decoded = decode_jsonl(data, PLANE, KINDS, split=2)
    assert decoded.ends.schema == ENDS
    [row] = controls(decoded)
    assert (row["op"], row["id"], row["time"], row["pos"]) == (1, b's\\"', 7, 2 << 32)


# -- what an index of one kind learns ------------------------------------------------------------

OPS = {0: "subscribe", 1: "unsubscribe", 2: "replaced"}


def test_an_index_learns_its_subscribes_and_the_ends_of_all_ids_in_order() -> None:
    def subscribe(id_: str, query: Json) -> Json:
        return {"op": "subscribe", "id": id_, "time": 1, "query": query, "owner": "me"}

    near: Json = {"kind": "knn", "at": [0, 0], "k": 1}
    log = [
        subscribe("a", ranged("x")),
        subscribe("b", near),
        {"op": "unsubscribe", "id": "a", "time": 2},
        subscribe("a", near),
        {"op": "publish", "id": "o", "time": 9, "at": [0, 0]},
        subscribe("b", ranged("y OR z")),
    ]
    decoded = decode_jsonl("\n".join(map(json.dumps, log)).encode(), PLANE, KINDS)
    wanted = {
        "range": ["subscribe a", "replaced b", "unsubscribe a", "replaced a", "subscribe b"],
        "knn": ["replaced a", "subscribe b", "unsubscribe a", "subscribe a", "replaced b"],
    }
    others = ["replaced a", "replaced b", "unsubscribe a", "replaced a", "replaced b"]
    for name, kind in KINDS.items():
        table = decoded.of(kind)
        assert table.schema == kind.schema
        rows = table.to_pylist()
        assert [f"{OPS[r['op']]} {r['id'].decode()}" for r in rows] == wanted.get(name, others)
        assert [r["pos"] for r in rows] == [0, 1, 2, 3, 5]
        assert [r["time"] for r in rows] == [1, 1, 2, 1, 1]
        assert [r["clock"] for r in rows] == [-(2**62), 1, 1, 2, 9]
        own = [r for r in rows if r["op"] == 0]
        sent = decoded.subscribes.get(name)
        assert own == ([] if sent is None else sent.to_pylist())
        for row in rows:
            if row["op"]:
                assert row["program"] == row["cover"] == []
                assert row["tail"] == b""


def test_nothing_is_learnt_where_nothing_happened() -> None:
    decoded = decode_jsonl(b"", PLANE, KINDS)
    for kind in KINDS.values():
        assert decoded.of(kind).num_rows == 0
        assert decoded.of(kind).schema == kind.schema
