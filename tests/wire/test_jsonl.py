"""JSON lines: every reason to refuse one, and the quick way and the slow way say the same."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.wire.rows import controls

from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.testing.strategies import broken_lines, event_logs, spaces
from nearcast.wire.decode import Decoded
from nearcast.wire.jsonl import LINE_BITS, decode_jsonl, decode_values

GEO, PLANE = Space.GEOGRAPHIC, Space.PLANAR
PUBLISH = {"op": "publish", "id": "o", "time": 5, "at": [1, 2]}
RANGE = {"kind": "range", "region": {"bbox": [0, 0, 1, 1]}}
KNN = {"kind": "knn", "at": [0, 0], "k": 1}
TOPK = {"kind": "topk", "at": [0, 0], "k": 1, "keywords": ["a"], "alpha": 0.5}
SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
CROSSED = [[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]


def ask_line(**more: Any) -> str:
    return json.dumps({"op": "ask", "id": "q", "time": 1, "query": KNN, **more})


def line(**fields: Any) -> str:
    return json.dumps({k: v for k, v in {**PUBLISH, **fields}.items() if v != "absent"})


def sub(query: Any, **fields: Any) -> str:
    return json.dumps({"op": "subscribe", "id": "s", "time": 5, "query": query, **fields})


def polygon(ring: Any, kind: str = "Polygon") -> str:
    return sub({"kind": "range", "region": {"type": kind, "coordinates": ring}})


def rejects(decoded: Decoded) -> list[tuple[int, str]]:
    return [(r["line"], r["reason"]) for r in decoded.rejects.to_pylist()]


REFUSED = [
    ("{", "not valid JSON: "),
    ("nothing", "not valid JSON: "),
    (line() + line(), "not valid JSON: "),
    ("[" * 100_000, "expected 'object', got 'array'"),
    (sub(RANGE)[:-1] + ', "meta": ' + '{"a":' * 100_000, "the JSON is nested too deeply"),
    ("[]", "an event must be a JSON object"),
    ("7", "an event must be a JSON object"),
    (line(op="absent"), "op: missing; give publish, subscribe, unsubscribe or ask"),
    (line(op="delete"), "op: unknown 'delete'; use publish, subscribe, unsubscribe or ask"),
    (line(op=7), "op: unknown '7'"),
    (line(id="absent"), "object missing required field 'id'"),
    (line(id=7), "id: expected 'str', got 'int'"),
    (line(id=""), "id: expected 'str' of length >= 1"),
    (line(id="x" * 257), "id: expected 'str' of length <= 256"),
    (line(time="absent"), "object missing required field 'time'"),
    (line(time=1.5), "time: expected 'int | str', got 'float'"),
    (line(time=True), "time: expected 'int | str', got 'bool'"),
    (line(time="now"), "time: 'now' is not an RFC 3339 date-time"),
    (line(time="2023-02-29T00:00:00Z"), "time: there is no '2023-02-29T00:00:00Z'"),
    (line(time=2**61), f"time: {2**61} is beyond"),
    (line(time=-(2**70)), f"time: -{2**70} is beyond"),
    (line(at="absent"), "object missing required field 'at'"),
    (line(at=[1]), "at: expected 'array' of length 2"),
    (line(at=[1, 2, 3]), "at: expected 'array' of length 2"),
    (line(at=[1, "2"]), "at[1]: expected 'float', got 'str'"),
    (line(at=[10**400, 0]), "at[0]: number out of range"),
    (line(at=[181, 0]), "at: longitude 181.0 is outside [-180, 180]"),
    (line(at=[0, -90.5]), "at: latitude -90.5 is outside [-90, 90]"),
    (line(text=["a"]), "text: expected 'str | null', got 'array'"),
    (line(keywords="a"), "keywords: expected 'array | null', got 'str'"),
    (line(keywords=["a", None]), "keywords[1]: expected 'str', got 'null'"),
    (sub("absent"), "query: expected 'object', got 'str'"),
    (sub({}), "query.kind: missing; give range, knn, topk or terms"),
    (sub({"kind": "near"}), "query.kind: unknown 'near'; use range, knn, topk or terms"),
    (sub({"kind": "range"}), "query: object missing required field 'region'"),
    (sub({**RANGE, "region": {}}), "region: holds no shape"),
    (sub({**RANGE, "region": {"bbox": [0, 0, 1, 1], "circle": {}}}), "region: holds bbox and"),
    (sub({**RANGE, "region": {"bbox": [0, 0, 1]}}), "region.bbox: [0, 0, 1] is not 4 numbers"),
    (sub({**RANGE, "region": {"bbox": [0, 0, 1, True]}}), "region.bbox: True is not a number"),
    (sub({**RANGE, "region": {"bbox": [0, 1, 1, 0]}}), "region.bbox: south 1 is greater than"),
    (sub({**RANGE, "region": {"bbox": [0, 0, 200, 1]}}), "region.bbox: longitude 200 is outside"),
    (sub({**RANGE, "region": {"circle": {"at": [0, 0]}}}), "region.circle: "),
    (
        sub({**RANGE, "region": {"circle": {"at": [0, 0], "radius": -1}}}),
        "region.circle.radius: -1 is less than 0",
    ),
    (polygon([SQUARE[:3]]), "region.coordinates[0]: a ring needs at least 4 positions"),
    (polygon([SQUARE[:4]]), "region.coordinates[0]: the ring is not closed"),
    (polygon([CROSSED]), "region.coordinates: not a valid polygon: edges cross or overlap"),
    (polygon([SQUARE[:1] * 4]), "region.coordinates: not a valid polygon: a ring has no area"),
    (polygon([]), "region.coordinates: is empty"),
    (polygon([SQUARE], "Point"), "region.type: 'Point' is not Polygon or MultiPolygon"),
    (sub({**RANGE, "where": "a AND"}), "query.where: "),
    (sub({**RANGE, "where": 7}), "query.where: expected 'str | null', got 'int'"),
    (sub({**KNN, "k": 0}), "query.k: expected 'int' >= 1"),
    (sub({**KNN, "k": 1.5}), "query.k: expected 'int', got 'float'"),
    (sub({**KNN, "k": 2**61}), "query.k: expected 'int' <= "),
    (sub({**KNN, "at": [0, 91]}), "at: latitude 91.0 is outside"),
    (sub({**KNN, "window": 0}), "query.window: expected 'int' >= 1"),
    (sub({**KNN, "window": 1.5}), "query.window: expected 'int | null', got 'float'"),
    (sub(TOPK | {"kind": "trend"}), "query.kind: unknown 'trend'; use range, knn, topk or terms"),
    (sub(RANGE, expires="never"), "expires: 'never' is not an RFC 3339 date-time"),
    (sub(RANGE, expires=2**61), f"expires: {2**61} is beyond"),
    (sub(RANGE, owner=7), "owner: expected 'str | null', got 'int'"),
    (sub(RANGE, meta=[1]), "meta: expected 'object | null', got 'array'"),
    ('{"op":"unsubscribe","id":"s"}', "object missing required field 'time'"),
    ('{"op":"ask","id":"q","time":1,"last":0,"query":{}}', "query.kind: missing"),
    (
        json.dumps({"op": "ask", "id": "q", "time": 1, "last": 0, "query": KNN}),
        "last: expected 'int' >= 1",
    ),
    (ask_line(), "object missing required field 'last'"),
    (ask_line(last=0), "last: expected 'int' >= 1"),
    (ask_line(last=1, limit=0), "limit: expected 'int' >= 1"),
    (ask_line(last=1, fields=["id"]), "fields[0]: invalid enum value 'id'"),
    (ask_line(last=1, limit=2, query=KNN | {"limit": 3}), "limit: stands beside the query and"),
    (ask_line(last=1, query=KNN | {"where": "("}), "query.where: "),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "reason"), REFUSED)
def test_every_reject_has_a_position_and_one_clear_reason(bad: str, reason: str) -> None:
    data = "\n".join([line(id="before"), "", bad, line(id="after")]).encode()
    decoded = decode_jsonl(data, GEO, KINDS, file="log.jsonl", first_line=11, split=3)
    [row] = decoded.rejects.to_pylist()
    assert row["reason"].startswith(reason)
    assert "\n" not in row["reason"]
    assert (row["file"], row["line"], row["pos"]) == ("log.jsonl", 13, 3 << LINE_BITS | 2)
    assert row["event"] == bad[:200]
    assert decoded.objects["id"].to_pylist() == [b"before", b"after"]
    assert decoded.events == {"publish": 2, "reject": 1}
    # The same where all lines are JSON of the right shape, and are decoded in one call.
    alone = decode_jsonl(bad.encode(), GEO, KINDS).rejects.to_pylist()
    assert [(r["reason"], r["event"]) for r in alone] == [(row["reason"], row["event"])]


def test_a_line_that_is_no_text() -> None:
    decoded = decode_jsonl(b'{"op":"publish","id":"\xff","time":1,"at":[0,0]}\n', GEO, KINDS)
    [row] = decoded.rejects.to_pylist()
    assert row["line"] == 1
    assert "utf-8" in row["reason"].lower()
    assert "�" in row["event"]


def test_planar_boxes_do_not_wrap_around() -> None:
    box = sub({**RANGE, "region": {"bbox": [2, 0, 1, 1]}})
    assert decode_jsonl(box.encode(), GEO, KINDS).rejects.num_rows == 0
    [(_, reason)] = rejects(decode_jsonl(box.encode(), PLANE, KINDS))
    assert reason.startswith("region.bbox: minx 2 is greater than maxx 1")


@pytest.mark.parametrize("place", range(4))
def test_an_integer_beyond_all_floats_is_refused_not_fatal(place: int) -> None:
    box = [0, 0, 1, 1]
    box[place] = -(10**400) if place < 2 else 10**400
    data = sub({**RANGE, "region": {"bbox": box}}).encode()
    [(_, reason)] = rejects(decode_jsonl(data, PLANE, KINDS))
    assert reason.endswith("is not a finite number")


def test_integers_of_any_size_are_echoed() -> None:
    decoded = decode_jsonl(sub(RANGE, meta={"n": 10**40}).encode(), PLANE, KINDS)
    assert [row["tail"] for row in controls(decoded)] == [b',"meta":{"n":%d}' % 10**40]


@pytest.mark.parametrize("blank", ["", " ", "\t \r", "\r"])
def test_blank_lines_are_skipped_but_counted(blank: str) -> None:
    data = "\n".join([blank, line(), blank, "x", blank, ""]).encode()
    decoded = decode_jsonl(data, PLANE, KINDS)
    assert decoded.objects["pos"].to_pylist() == [1]
    assert [n for n, _ in rejects(decoded)] == [4]
    assert decoded.events == {"publish": 1, "reject": 1}


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n \n"])
def test_nothing_at_all(data: bytes) -> None:
    decoded = decode_jsonl(data, PLANE, KINDS)
    tables = (decoded.objects, decoded.ends, decoded.rejects)
    assert [t.num_rows for t in tables] == [0, 0, 0]
    assert decoded.subscribes == {}
    assert decoded.latest == -(2**62)


# -- one call for all lines, or one a line -------------------------------------------------------


def by_line(decoded: Decoded, shift: int = 0) -> dict[int, list[Any]]:
    """What became of each line."""
    found: dict[int, list[Any]] = {}
    for name, rows in (
        ("object", decoded.objects.to_pylist()),
        ("control", controls(decoded)),
        ("reject", decoded.rejects.to_pylist()),
    ):
        for row in rows:
            key = row.pop("pos") + shift
            row.pop("clock", None)
            row.pop("line", None)
            found.setdefault(key, []).append((name, row))
    return found


PAIR = line() + line(id="p")
SPREAD = line().replace(",", ",\n", 1)


@settings(max_examples=35, suppress_health_check=[HealthCheck.too_slow])
@given(spaces, st.data(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_line_means_the_same_whatever_stands_beside_it(
    space: Space, data: st.DataObject, newline: str, ended: bool
) -> None:
    lines = [json.dumps(e) for e in data.draw(event_logs(space, max_events=5))]
    other = st.one_of(broken_lines(), st.sampled_from(["", " ", PAIR, SPREAD, PAIR + " "]))
    for more in data.draw(st.lists(other, max_size=3)):
        lines.insert(data.draw(st.integers(0, len(lines))), more)
    text = newline.join(lines) + newline * ended
    together = by_line(decode_jsonl(text.encode(), space, KINDS))
    apart: dict[int, list[Any]] = {}
    for n, one in enumerate(text.split("\n")):
        apart |= by_line(decode_jsonl(one.encode(), space, KINDS), n)
    assert together == apart


@pytest.mark.parametrize(
    "text", [f"{PAIR}\n\n", f"\n{PAIR}\n", f"{PAIR}\n{SPREAD}\n", f"{SPREAD}\n{PAIR}"]
)
def test_two_events_in_a_line_are_refused_also_beside_a_blank_line(text: str) -> None:
    """As many events as lines: where they end shows that they are not one per line."""
    at = [n for n, one in enumerate(text.split("\n"), 1) if one == PAIR]
    decoded = decode_jsonl(text.encode(), PLANE, KINDS)
    assert set(at) <= {n for n, _ in rejects(decoded)}
    assert decoded.objects.num_rows == 0


@settings(max_examples=30)
@given(st.data())
@example(None)
def test_the_clock_is_the_latest_time_so_far(data: st.DataObject | None) -> None:
    log = [PUBLISH] if data is None else data.draw(event_logs(PLANE, max_events=12))
    decoded = decode_jsonl("\n".join(map(json.dumps, log)).encode(), PLANE, KINDS)
    rows = [*decoded.objects.to_pylist(), *controls(decoded)]
    when = {r["pos"]: r["time"] for r in rows}
    for row in decoded.objects.to_pylist():
        assert row["clock"] == max(t for pos, t in when.items() if pos <= row["pos"])
    for row in controls(decoded):
        earlier = [t for pos, t in when.items() if pos < row["pos"]]
        assert row["clock"] == max(earlier, default=-(2**62))
    assert decoded.latest == max(when.values(), default=-(2**62))


def test_values_may_hold_newlines() -> None:
    values = [SPREAD.encode(), b"", PAIR.encode(), line(id="q").encode()]
    decoded = decode_values(values, PLANE, KINDS, first_line=100)
    assert decoded.objects["id"].to_pylist() == [b"o", b"q"]
    assert decoded.objects["pos"].to_pylist() == [0, 3]
    assert [n for n, _ in rejects(decoded)] == [102]


def test_ids_are_kept_in_json_form() -> None:
    names = ['q"', "back\\slash", "new\nline", "ß☃", "\x7f", "tab\t", "\0", "/"]
    data = "\n".join(line(id=name) for name in names).encode()
    found = decode_jsonl(data, PLANE, KINDS).objects["id"]
    assert [json.loads(b'"%s"' % i) for i in found.to_pylist()] == names
    assert found.type == pa.large_binary()
