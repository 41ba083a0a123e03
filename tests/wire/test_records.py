"""Records of Kafka as events: whatever their bytes, each is accepted, blank, or refused."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from nearcast.engine.feed.subscriptions import line_of
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.testing.strategies import broken_lines
from nearcast.wire.decode import Decoded
from nearcast.wire.jsonl import decode_records

BOX = {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}}
PUBLISH = {"op": "publish", "id": "o", "time": 1, "at": [0, 0], "text": "a"}
SUBSCRIBE = {"op": "subscribe", "id": "s", "time": 1, "query": BOX}
GOOD = [
    json.dumps(PUBLISH).encode(),
    json.dumps(SUBSCRIBE, indent=1).encode(),
    json.dumps({"op": "unsubscribe", "id": "s", "time": 2}).encode(),
]
RECORDS = st.lists(
    st.none()
    | st.sampled_from([b"", b" \n", b"\n\n", *GOOD])
    | st.binary(max_size=30)
    | broken_lines().map(str.encode),
    max_size=12,
)


def decoded(values: list[bytes | None], publishes: bool = False) -> Decoded:
    return decode_records(values, Space.GEOGRAPHIC, KINDS, publishes=publishes, file="f")


def accepted(found: Decoded) -> int:
    return sum(n for op, n in found.events.items() if op != "reject")


def blank(value: bytes | None) -> bool:
    return value is not None and not value.strip()


@settings(max_examples=60)
@given(RECORDS, st.booleans())
def test_each_record_by_itself_and_all_together(
    values: list[bytes | None], publishes: bool
) -> None:
    """Lines of one record never become part of another, and nothing is dropped without a trace."""
    whole = decoded(values, publishes)
    alone = [decoded([value], publishes) for value in values]
    refused = whole.rejects.to_pylist()
    assert accepted(whole) == sum(map(accepted, alone))
    assert accepted(whole) + len(refused) == sum(not blank(value) for value in values)
    assert [(r["line"], r["reason"]) for r in sorted(refused, key=lambda r: r["line"])] == [
        (n, r["reason"]) for n, one in enumerate(alone, 1) for r in one.rejects.to_pylist()
    ]
    assert all(r["reason"] and r["file"] == "f" for r in refused)
    if publishes:
        assert {op for op, n in whole.events.items() if n} <= {"publish", "reject"}


def event(key: bytes | None, value: bytes | None) -> Any:
    line = line_of(key, value, 77)
    assert b"\n" not in line
    return json.loads(line)


def test_records_of_subscriptions() -> None:
    query = json.dumps(BOX, indent=2).encode()
    assert event(b"s", query) == {"op": "subscribe", "id": "s", "time": 77, "query": BOX}
    assert event(b"s", None) == {"op": "unsubscribe", "id": "s", "time": 77}
    beside = {"query": BOX, "owner": "me", "time": 5}
    assert event(b"s", json.dumps(beside).encode()) == {**beside, "op": "subscribe", "id": "s"}
    assert event(b"s", json.dumps(SUBSCRIBE).encode()) == SUBSCRIBE
    assert event("ß\n".encode(), query)["id"] == "ß\n"


@settings(max_examples=60)
@given(
    st.none() | st.binary(max_size=6),
    st.binary(max_size=30) | broken_lines().map(str.encode) | st.sampled_from(GOOD),
)
def test_a_record_of_subscriptions_is_a_subscribe_of_its_key_or_refused(
    key: bytes | None, value: bytes
) -> None:
    line = line_of(key, value, 77)
    found = decoded([line])
    assert b"\n" not in line
    assert accepted(found) + found.rejects.num_rows == 1
    if accepted(found):
        assert found.events["subscribe"] == 1
        assert key is not None
        assert json.loads(line)["id"] == key.decode()
