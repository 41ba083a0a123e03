"""Tables: bytes and back, parts of tables, and the arrays that kernels read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.wire.rows import control_row

from nearcast.kernels.hashing import hash_ids
from nearcast.wire.tables import (
    BALLS,
    CONTROLS,
    ENDS,
    FOREVER,
    NEAREST,
    NEVER,
    NO_RESULTS,
    OBJECTS,
    REGIONS,
    REJECTS,
    control_columns,
    empty,
    filled_up,
    from_bytes,
    join,
    list_column,
    lists,
    object_columns,
    replaced,
    string_column,
    strings,
    table_of,
    to_bytes,
    with_ends,
    with_flags,
)

REGION_ROWS = [
    control_row([1.0, 2.0], [0.0] * 4, op=0, id=b"s", time=1, program=[4, 8], bits=1 << 4),
    control_row([], [], op=1, id="ß".encode(), time=-2, pos=7),
    control_row(
        [], [], op=0, id=b"", time=3, tail=b',"owner":"x"', cover=[12], conjunction=True, pos=9
    ),
]
BALL_ROWS = [
    control_row(1.5, -2.5, 3, 40, op=0, id=b"s", time=1, program=[4, 8]),
    control_row(0.0, 0.0, 0, 0, op=1, id="ß".encode(), time=-2, pos=7),
    control_row(-0.5, 7.0, 1, 0, op=0, id=b"t", time=3, tail=b',"owner":"x"', cover=[12], pos=9),
]
END_ROWS = [(3, 1, 10, NEVER, b"a"), (5, 2, 11, 10, b"b"), (8, 1, 12, 11, b"")]
OBJECT_ROWS: list[tuple[Any, ...]] = [
    (n, 10 * n, 20 * n, n / 2, -n / 2, b"o" * n, [4 * m for m in range(n)]) for n in range(4)
]
REJECT_ROWS = [(n, "file", n + 1, "because", "{") for n in range(3)]
RESULT_ROWS = [(0, [1.5, 2.5], [1, 2], [0, 1], [b"a", b"bc"]), (3, [], [], [], [])]
TABLES = {
    "regions": table_of(REGION_ROWS, REGIONS),
    "balls": table_of(BALL_ROWS, BALLS),
    "ends": table_of(END_ROWS, ENDS),
    "objects": table_of(OBJECT_ROWS, OBJECTS),
    "rejects": table_of(REJECT_ROWS, REJECTS),
    "results": table_of(RESULT_ROWS, NEAREST),
    "no results": table_of([(0,), (3,)], NO_RESULTS),
}
PARTS = [slice(0, None), slice(1, None), slice(0, 1), slice(1, 2), slice(1, 1), slice(9, None)]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_bytes_and_back(name: str, part: slice) -> None:
    table = TABLES[name].slice(part.start, None if part.stop is None else part.stop - part.start)
    back = from_bytes(to_bytes(table), table.schema)
    assert back.schema == table.schema
    assert back.to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    "schema",
    [CONTROLS, REGIONS, BALLS, ENDS, OBJECTS, REJECTS, NEAREST, NO_RESULTS],
    ids=lambda s: s.names[-1],
)
def test_no_rows(schema: pa.Schema) -> None:
    assert from_bytes(to_bytes(empty(schema)), schema).equals(empty(schema))
    assert table_of([], schema).equals(empty(schema))
    assert join([], schema).equals(empty(schema))


def test_a_part_travels_without_the_rest() -> None:
    whole = table_of([(n, n, n, 0.0, 0.0, b"x" * 100, []) for n in range(500)], OBJECTS)
    assert len(to_bytes(whole.slice(7, 1))) < len(to_bytes(whole)) / 20


def test_join_leaves_out_what_is_empty() -> None:
    table = TABLES["objects"]
    assert join([empty(OBJECTS), table, empty(OBJECTS)], OBJECTS) is table
    both = join([table.slice(1, 2), table.slice(0, 1)], OBJECTS)
    assert both["pos"].to_pylist() == [1, 2, 0]


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_strings_share_memory_and_start_at_zero(part: slice) -> None:
    column = pa.array([b"ab", b"", b"cde"], pa.large_binary())[part]
    offsets, data = strings(column)
    cut = [data[a:b].tobytes() for a, b in pairwise(offsets.tolist())]
    assert cut == column.to_pylist()
    assert offsets[0] == 0
    assert string_column(offsets, data).to_pylist() == column.to_pylist()


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_lists_start_at_zero(part: slice) -> None:
    type_ = OBJECTS.field("words").type
    column = pa.array([[1, 2], [], [3]], type_)[part]
    offsets, values = lists(column, np.uint64)
    assert values.dtype == np.uint64
    cut = [values[a:b].tolist() for a, b in pairwise(offsets.tolist())]
    assert cut == column.to_pylist()
    assert list_column(offsets, values, type_).to_pylist() == column.to_pylist()


@pytest.mark.parametrize("table", [TABLES["objects"], TABLES["objects"].slice(1, 2)])
def test_object_columns(table: pa.RecordBatch) -> None:
    o = object_columns(table)
    assert o.order.tolist() == list(range(table.num_rows))
    for name in ("time", "clock", "x", "y"):
        assert getattr(o, name).tolist() == table[name].to_pylist()
    ids = zip(o.id_offsets[:-1], o.id_offsets[1:], strict=True)
    assert [o.id_bytes[a:b].tobytes() for a, b in ids] == table["id"].to_pylist()
    words = zip(o.word_offsets[:-1], o.word_offsets[1:], strict=True)
    assert [o.words[a:b].tolist() for a, b in words] == table["words"].to_pylist()
    assert object_columns(table, np.array([1, 0])).order.tolist() == [1, 0]


@pytest.mark.parametrize(
    "table", [t for n in ("regions", "balls") for t in (TABLES[n], TABLES[n].slice(2, 1))]
)
def test_control_columns(table: pa.RecordBatch) -> None:
    at = np.arange(table.num_rows, dtype=np.int32)
    c = control_columns(table, at)
    assert c.at.tolist() == at.tolist()
    for name in ("op", "time", "end", "flags"):
        assert getattr(c, name).tolist() == table[name].to_pylist()
    rows = table.to_pylist()
    wanted = {name: table[name].to_pylist() for name in ("program", "cover")}
    if "region" in table.schema.names:
        wanted |= {name: table[name].to_pylist() for name in ("region", "boxes")}
    else:  # the region of a ball is its centre; what ends one has none
        wanted["region"] = [[r["x"], r["y"]] if r["op"] == 0 else [] for r in rows]
        wanted["boxes"] = [[] for _ in rows]
    assert len(c.box_offsets) == table.num_rows + 1
    offsets_of = {name: getattr(c, f"{name}_offsets") for name in ("program", "cover", "region")}
    offsets_of["boxes"] = c.box_offsets
    for name, offsets in offsets_of.items():
        values = getattr(c, name)
        cut = [values[a:b].tolist() for a, b in pairwise(offsets.tolist())]
        assert cut == wanted[name]
    assert c.id_hash.tolist() == hash_ids(c.id_bytes, c.id_offsets).tolist()
    assert c.tail_bytes.tobytes() == b"".join(table["tail"].to_pylist())


def test_kernels_are_compiled_once_for_all_shapes() -> None:
    """Numba takes an array that may be written to for another type than one that may not."""
    at = np.zeros(3, np.int32)
    one, other = (
        [(a.dtype, a.ndim, a.flags.writeable, a.flags.c_contiguous) for a in columns]
        for columns in (control_columns(TABLES[n], at) for n in ("regions", "balls"))
    )
    assert one == other


@pytest.mark.parametrize("name", ["regions", "balls"])
def test_what_ends_an_id_has_the_columns_of_any_kind(name: str) -> None:
    schema = TABLES[name].schema
    filled = filled_up(TABLES["ends"], schema)
    assert filled.schema == schema
    assert filled.select(ENDS.names).equals(TABLES["ends"])
    plain = control_row(op=1, id=b"", time=0)
    usual = dict(zip(CONTROLS.names, plain, strict=True))
    for field in CONTROLS.names:
        if field not in ENDS.names:
            assert filled[field].to_pylist() == [usual[field]] * 3
    for field in schema.names[len(CONTROLS) :]:
        nothing: Any = [] if pa.types.is_large_list(schema.field(field).type) else 0
        assert filled[field].to_pylist() == [nothing] * 3
    assert filled["end"].to_pylist() == [FOREVER] * 3
    c = control_columns(filled, np.zeros(3, np.int32))
    assert (len(c.region), len(c.boxes)) == (0, 0)


def test_a_subscribe_of_one_kind_ends_those_of_another() -> None:
    table = TABLES["balls"]
    ends = replaced(table)
    assert ends.schema == ENDS
    assert ends["op"].to_pylist() == [2] * 3
    for name in ("pos", "time", "clock", "id"):
        assert ends[name].equals(table[name])


def test_subscribes_and_ends_stand_in_the_order_of_the_log() -> None:
    own = TABLES["regions"]
    both = with_ends(own, [TABLES["ends"], empty(ENDS), TABLES["ends"].slice(2, 1)], REGIONS)
    assert both.schema == REGIONS
    assert both["pos"].to_pylist() == [0, 3, 5, 7, 8, 8, 9]
    assert both["op"].to_pylist() == [0, 1, 2, 1, 1, 1, 0]
    assert both.filter(pa.compute.is_in(both["pos"], own["pos"])).equals(own)
    assert with_ends(own, [empty(ENDS)], REGIONS) is own
    assert with_ends(empty(REGIONS), [], REGIONS).equals(empty(REGIONS))


def test_flags_are_set_and_the_rest_stays() -> None:
    table = TABLES["regions"]
    changed = with_flags(table, np.array([1, 2, 3], np.int64))
    assert changed.schema == table.schema
    assert changed["flags"].to_pylist() == [1, 2, 3]
    others = [name for name in REGIONS.names if name != "flags"]
    assert changed.select(others).equals(table.select(others))


def test_a_table_may_lie_across_words() -> None:
    """As it does within a message: kernels want numbers that lie as processors want them."""
    table = pa.RecordBatch.from_pydict({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]})
    data = to_bytes(table)
    for shift in range(9):
        moved = memoryview(bytes(shift) + bytes(data))[shift:]
        back = from_bytes(moved, table.schema)
        assert back.equals(table)
        assert back["b"].to_numpy().flags.aligned
