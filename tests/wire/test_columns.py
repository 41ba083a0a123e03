"""Rows of columns mean what the same events mean as JSON lines."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.wire.rows import controls

from nearcast.kinds import KINDS
from nearcast.model.errors import Invalid
from nearcast.model.space import Space
from nearcast.testing.reading import read_time
from nearcast.testing.strategies import event_logs, spaces
from nearcast.wire.columns import decode_columns
from nearcast.wire.decode import Decoded
from nearcast.wire.jsonl import LINE_BITS, decode_jsonl

Json = dict[str, Any]
GEO, PLANE = Space.GEOGRAPHIC, Space.PLANAR
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STRINGS = ("op", "id", "text", "owner")
KNN = '{"kind":"knn","at":[0,0],"k":1}'


def jsonl(log: list[Json], space: Space) -> Decoded:
    return decode_jsonl("\n".join(json.dumps(e) for e in log).encode(), space, KINDS)


def same(found: Decoded, right: Decoded) -> None:
    assert found.objects.to_pylist() == right.objects.to_pylist()
    assert controls(found) == controls(right)
    assert found.rejects["pos"].to_pylist() == right.rejects["pos"].to_pylist()
    assert found.events == right.events
    assert found.latest == right.latest


def text_time(ms: int) -> str:
    return (EPOCH + timedelta(milliseconds=ms)).isoformat()


def times(values: list[Any], form: str) -> pa.Array:
    ms = [None if v is None else read_time(v) for v in values]
    if form == "text":
        return pa.array([None if v is None else text_time(v) for v in ms], pa.string())
    if form == "ms":
        return pa.array(ms, pa.int64())
    unit, _, zone = form.partition(" ")
    factor = {"timestamp_us": 1000, "timestamp_ns": 10**6}[unit]
    whole = [None if v is None else v * factor + factor - 1 for v in ms]  # cut off again
    return pa.array(whole, pa.timestamp(unit[-2:], zone or None))


def columns(
    log: list[Json], time_form: str, query_form: str, string: pa.DataType
) -> pa.RecordBatch:
    arrays: dict[str, pa.Array] = {
        name: pa.array([e.get(name) for e in log], pa.string()).cast(string) for name in STRINGS
    }
    arrays["time"] = times([e["time"] for e in log], time_form)
    arrays["expires"] = times([e.get("expires") for e in log], time_form)
    arrays["at"] = pa.array([e.get("at") for e in log], pa.list_(pa.float64()))
    arrays["keywords"] = pa.array([e.get("keywords") for e in log], pa.large_list(pa.string()))
    arrays["meta"] = _texts([e.get("meta") for e in log])
    queries = [e.get("query") for e in log]
    arrays["query"] = pa.array(queries) if query_form == "struct" else _texts(queries)
    arrays["other"] = pa.array([2**62] * len(log), pa.timestamp("s"))  # no datetime is that far
    return pa.RecordBatch.from_pydict(arrays)


def _texts(values: list[Any]) -> pa.Array:
    return pa.array([None if v is None else json.dumps(v) for v in values], pa.string())


def has_polygon(event: Json) -> bool:
    return "coordinates" in event.get("query", {}).get("region", {})


@settings(max_examples=35, suppress_health_check=[HealthCheck.too_slow])
@given(
    spaces,
    st.data(),
    st.sampled_from(["ms", "text", "timestamp_us", "timestamp_ns UTC", "timestamp_us Asia/Tokyo"]),
    st.sampled_from(["text", "struct"]),
    st.sampled_from(
        [
            pa.string(),
            pa.large_string(),
            pa.dictionary(pa.int32(), pa.string()),
            pa.string_view(),
        ]
    ),
)
def test_as_in_json(
    space: Space, data: st.DataObject, time_form: str, query_form: str, string: pa.DataType
) -> None:
    log = data.draw(event_logs(space, max_events=12))
    if query_form == "struct":  # Polygon and MultiPolygon do not fit into one column
        log = [e for e in log if not has_polygon(e)]
    batch = columns(log, time_form, query_form, string)
    same(decode_columns(batch, space, KINDS), jsonl(log, space))


LOG: list[Json] = [
    {"op": "subscribe", "id": "s", "time": 1, "query": json.loads(KNN), "owner": "o", "meta": {}},
    {"op": "publish", "id": "p", "time": 2, "at": [1, 2], "text": "a b", "keywords": ["é", "f g"]},
    {"op": "publish", "id": "q", "time": 3, "at": [3, 4], "keywords": []},
    {"op": "publish", "id": "r", "time": 4, "at": [5, 6], "text": "long enough to be a view's own"},
    {"op": "unsubscribe", "id": "s", "time": 5},
    {"op": "nonsense", "id": "x", "time": 6},
]


def _as_views(batch: pa.RecordBatch, many: Any) -> pa.RecordBatch:
    """The same rows with views for strings and for lists."""
    arrays = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_string(column.type):
            column = column.cast(pa.string_view())
        elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            inside = column.type.value_type
            view = pa.string_view() if pa.types.is_string(inside) else inside
            column = pa.array(column.to_pylist(), many(view))
        arrays[name] = column
    return pa.RecordBatch.from_pydict(arrays)


@pytest.mark.parametrize("many", [pa.list_, pa.list_view, pa.large_list_view])
@pytest.mark.parametrize("query_form", ["text", "struct"])
def test_views_are_read(many: Any, query_form: str) -> None:
    batch = _as_views(columns(LOG, "ms", query_form, pa.string()), many)
    same(decode_columns(batch, GEO, KINDS), jsonl(LOG, GEO))
    part = decode_columns(batch.slice(2, 3), GEO, KINDS)
    assert part.objects["id"].to_pylist() == [b"q", b"r"]


def test_views_inside_structs_and_dictionaries() -> None:
    usual = columns(LOG, "ms", "text", pa.string())
    query = pa.array([e.get("query") for e in LOG])
    parts = [query.field(n) for n in range(query.type.num_fields)]
    names = [query.type.field(n).name for n in range(query.type.num_fields)]
    kind = names.index("kind")
    parts[kind] = parts[kind].cast(pa.string_view())
    viewed = pa.StructArray.from_arrays(parts, names, mask=query.is_null())
    at = usual.schema.get_field_index("query")
    same(decode_columns(usual.set_column(at, "query", viewed), GEO, KINDS), jsonl(LOG, GEO))
    ops = usual["op"].dictionary_encode()
    op = pa.DictionaryArray.from_arrays(ops.indices, ops.dictionary.cast(pa.string_view()))
    same(decode_columns(usual.set_column(0, "op", op), GEO, KINDS), jsonl(LOG, GEO))


def test_a_part_of_a_table() -> None:
    log = [
        {"op": "publish", "id": f"o{n}", "time": n, "at": [n, 0], "text": "a b"} for n in range(5)
    ]
    log.insert(2, {"op": "unsubscribe", "id": "s", "time": 2})
    batch = columns(log, "ms", "text", pa.string())
    same(decode_columns(batch.slice(1, 4), PLANE, KINDS), jsonl(log[1:5], PLANE))
    found = decode_columns(batch.slice(2, 2), PLANE, KINDS, first_line=30, split=2)
    assert [row["pos"] for row in controls(found)] == [2 << LINE_BITS]
    assert found.objects["pos"].to_pylist() == [2 << LINE_BITS | 1]


def test_no_rows() -> None:
    found = decode_columns(columns([], "ms", "text", pa.string()), PLANE, KINDS)
    assert [t.num_rows for t in (found.objects, found.ends, found.rejects)] == [0, 0, 0]
    assert found.subscribes == {}


# -- one row at a time ---------------------------------------------------------------------------


def one(what: str = "publish", /, **arrays: Any) -> Decoded:
    usual: Json = {"op": [what], "id": ["x"], "time": [1]}
    usual |= {"at": [[1.0, 2.0]]} if what == "publish" else {"query": [KNN]}
    given_ = {k: v for k, v in {**usual, **arrays}.items() if v is not None}
    return decode_columns(pa.RecordBatch.from_pydict(given_), PLANE, KINDS, file="f", first_line=9)


def reason(found: Decoded) -> str:
    assert found.objects.num_rows == len(controls(found)) == 0
    [row] = found.rejects.to_pylist()
    assert (row["file"], row["line"], row["pos"]) == ("f", 9, 0)
    assert row["event"].startswith("{")
    assert "\n" not in row["reason"]
    return str(row["reason"])


@pytest.mark.parametrize(
    ("arrays", "right"),
    [
        ({"op": ["delete"]}, "op: unknown 'delete'; use publish, subscribe, unsubscribe or ask"),
        ({"op": pa.array([None], pa.string())}, "op: missing; give publish, subscribe,"),
        ({"op": [7]}, "op: unknown '7'"),
        ({"id": None}, "id: expected a string of 1 to 256 characters"),
        ({"id": pa.array([None], pa.string())}, "id: expected a string of 1 to 256"),
        ({"id": [""]}, "id: expected a string of 1 to 256 characters"),
        ({"id": ["ß" * 257]}, "id: expected a string of 1 to 256 characters"),
        ({"id": [7]}, "id: expected a string, got int64"),
        ({"time": None}, "time: missing"),
        ({"time": pa.array([None], pa.int64())}, "time: missing"),
        ({"time": pa.array([None], pa.timestamp("ms"))}, "time: missing"),
        ({"time": pa.array([None], pa.string())}, "time: missing"),
        ({"time": [1.5]}, "time: expected an integer, got double"),
        ({"time": [True]}, "time: expected an integer, got bool"),
        ({"time": ["soon"]}, "time: 'soon' is not an RFC 3339 date-time"),
        ({"time": [2**61]}, "time: beyond what epoch milliseconds can hold here"),
        ({"time": [-(2**61)]}, "time: beyond"),
        ({"time": [-(2**63)]}, "time: beyond"),
        ({"time": pa.array([2**64 - 5], pa.uint64())}, "time: beyond"),
        ({"time": pa.array([2**62], pa.timestamp("s"))}, "time: beyond"),
        ({"time": pa.array([2**62], pa.timestamp("ms"))}, "time: beyond"),
        ({"at": None}, "at: expected [x, y], two finite numbers"),
        ({"at": pa.array([None], pa.list_(pa.float64()))}, "at: expected [x, y], two finite"),
        ({"at": pa.array([None], pa.list_(pa.float64(), 2))}, "at: expected [x, y], two finite"),
        ({"at": [[1.0]]}, "at: expected [x, y], two finite numbers"),
        ({"at": [[1.0, 2.0, 3.0]]}, "at: expected [x, y], two finite numbers"),
        ({"at": [[1.0, None]]}, "at: nan is not a finite number"),
        ({"at": [[1.0, float("inf")]]}, "at: inf is not a finite number"),
        ({"at": [["1", "2"]]}, "at: expected [x, y], two finite numbers, got list<"),
        ({"at": [[True, False]]}, "at: expected [x, y], two finite numbers, got list<"),
        ({"at": [{"x": 1, "y": 2}]}, "at: expected [x, y], two finite numbers, got struct<"),
        ({"text": [7]}, "text: expected a string, got int64"),
        ({"keywords": ["a"]}, "keywords: expected strings, got string"),
        ({"keywords": [[1]]}, "keywords: expected strings, got list<"),
        ({"keywords": [["a", None]]}, "keywords: a keyword is null"),
        ({"keywords": pa.array([[None]], pa.list_(pa.null()))}, "keywords: a keyword is null"),
    ],
)  # fmt: skip
def test_refused_objects(arrays: Json, right: str) -> None:
    assert reason(one(**arrays)).startswith(right)


@pytest.mark.parametrize(
    ("arrays", "right"),
    [
        ({"id": None}, "object missing required field 'id'"),
        ({"id": [""]}, "id: expected 'str' of length >= 1"),
        ({"id": [7]}, "id: expected 'str', got 'int'"),
        ({"time": None}, "object missing required field 'time'"),
        ({"time": [1.5]}, "time: expected 'int | str', got 'float'"),
        ({"time": [-(2**63)]}, "time: -9223372036854775808 is beyond"),
        ({"time": pa.array([2**64 - 5], pa.uint64())}, "time: 18446744073709551611 is beyond"),
        ({"time": pa.array([2**62], pa.timestamp("s"))}, "time: "),
        ({"query": None}, "object missing required field 'query'"),
        ({"query": ["{"]}, "query: expected 'object', got 'str'"),
        ({"query": ["[" * 100_000]}, "query: expected 'object', got 'str'"),
        ({"query": ["7"]}, "query: expected 'object', got 'int'"),
        ({"query": ['{"kind":"near"}']}, "query.kind: unknown 'near'"),
        ({"query": [{"kind": "knn", "at": [0, 0], "k": 0}]}, "query.k: expected 'int' >= 1"),
        ({"query": ['{"kind":"knn","at":[0,0],"k":1,"where":"a AND"}']}, "query.where: "),
        ({"expires": ["never"]}, "expires: 'never' is not an RFC 3339 date-time"),
        ({"owner": [7]}, "owner: expected 'str | null', got 'int'"),
        ({"meta": ["["]}, "meta: expected 'object | null', got 'str'"),
        ({"meta": ["[1]"]}, "meta: expected 'object | null', got 'array'"),
    ],
)
def test_refused_subscriptions(arrays: Json, right: str) -> None:
    assert reason(one("subscribe", **arrays)).startswith(right)


@pytest.mark.parametrize(
    ("arrays", "x"),
    [
        ({"at": [[3, 4]]}, 3.0),
        ({"at": [[2**60 + 1, 4]]}, float(2**60)),  # rounded, as JSON's numbers are
        ({"at": pa.array([[1.5, 4]], pa.list_(pa.float32()))}, 1.5),
        ({"at": pa.array([[1.5, 4]], pa.list_(pa.float64(), 2))}, 1.5),
        ({"at": pa.array([[1.5, 4]], pa.large_list(pa.float64()))}, 1.5),
        ({"keywords": pa.array([[]], pa.list_(pa.null()))}, 1.0),
        ({"keywords": pa.nulls(1), "text": pa.nulls(1)}, 1.0),
        ({"op": pa.array(["publish"]).dictionary_encode()}, 1.0),
        ({"time": pa.array([1], pa.int16())}, 1.0),
        ({"time": pa.array([1], pa.uint64())}, 1.0),
    ],
)
def test_any_fitting_type_will_do(arrays: Json, x: float) -> None:
    found = one(**arrays)
    assert found.rejects.to_pylist() == []
    [row] = found.objects.to_pylist()
    assert (row["x"], row["time"], row["words"]) == (x, 1, [])


def test_what_the_columns_of_echoes_may_be() -> None:
    found = one("subscribe", meta=[{"query": "7", "n": 1}], owner=["me"])
    assert [row["tail"] for row in controls(found)] == [b',"owner":"me","meta":{"query":"7","n":1}']
    found = one("subscribe", meta=['{"query":"7"}'], owner=pa.nulls(1))
    assert [row["tail"] for row in controls(found)] == [b',"meta":{"query":"7"}']


def test_bad_rows_stand_where_they_were() -> None:
    """Rows are refused column by column and kind by kind; positions must not suffer from it."""
    n = 12
    log: list[Json] = [
        {"op": "publish", "id": f"o{i}", "time": text_time(i), "at": [i, 0]} for i in range(n)
    ]
    log[1]["at"] = [1, float("nan")]
    log[3]["time"] = "soon"
    log[5] = {"op": "subscribe", "id": "s", "time": text_time(5), "query": {"kind": "x"}}
    log[7] = {"op": "unsubscribe", "id": "s", "time": text_time(7)}
    log[9]["id"] = ""
    names = ("op", "id", "time", "at")
    arrays = {name: [e.get(name) for e in log] for name in names}
    arrays["query"] = [json.dumps(e["query"]) if "query" in e else None for e in log]
    found = decode_columns(pa.RecordBatch.from_pydict(arrays), PLANE, KINDS, first_line=100)
    assert sorted(r["line"] for r in found.rejects.to_pylist()) == [101, 103, 105, 109]
    assert [row["pos"] for row in controls(found)] == [7]
    kept = [0, 2, 4, 6, 8, 10, 11]
    assert found.objects["pos"].to_pylist() == kept
    assert found.objects["id"].to_pylist() == [b"o%d" % i for i in kept]
    assert found.objects["time"].to_pylist() == kept


# -- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "type_",
    [
        pa.string(),
        pa.binary(),
        pa.large_string(),
        pa.large_binary(),
        pa.string_view(),
        pa.binary_view(),
    ],
)
def test_a_value_column_holds_events(type_: pa.DataType) -> None:
    lines = ['{"op":"publish","id":"o","time":1,"at":[0,1]}', None, "x", ""]
    lines.append('{"op":"subscribe","id":"s","time":2,"query":' + KNN + "}")
    batch = pa.RecordBatch.from_pydict({"value": pa.array(lines, type_), "key": [1] * 5})
    found = decode_columns(batch, PLANE, KINDS, first_line=50)
    right = decode_jsonl("\n".join(line or "" for line in lines).encode(), PLANE, KINDS)
    same(found, right)
    assert [r["line"] for r in found.rejects.to_pylist()] == [52]


def test_a_value_beside_op_is_a_column_like_others() -> None:
    assert one(value=["{}"]).objects.num_rows == 1


def test_columns_without_op_are_an_error() -> None:
    with pytest.raises(Invalid, match=r"^f has no column `op` \(its columns: \['id', 'time'\]\)"):
        decode_columns(
            pa.RecordBatch.from_pydict({"id": ["a"], "time": [1]}), PLANE, KINDS, file="f"
        )
