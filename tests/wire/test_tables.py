"""Tables: bytes and back, parts of tables, and the arrays that kernels read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.kernels.hashing import hash_ids
from nearcast.wire.tables import (
    CONTROLS,
    OBJECTS,
    REJECTS,
    RESULTS,
    control_columns,
    control_row,
    empty,
    from_bytes,
    join,
    list_column,
    lists,
    object_columns,
    string_column,
    strings,
    table_of,
    to_bytes,
)

CONTROL_ROWS = [
    control_row(op=0, id=b"s", time=1, program=[4, 8], region=[1.0, 2.0], boxes=[0.0] * 4),
    control_row(op=1, id="ß".encode(), time=-2, pos=7),
    control_row(op=0, id=b"", time=3, tail=b',"owner":"x"', cover=[12], conjunction=True, k=3),
]
OBJECT_ROWS: list[tuple[Any, ...]] = [
    (n, 10 * n, 20 * n, n / 2, -n / 2, b"o" * n, [4 * m for m in range(n)]) for n in range(4)
]
REJECT_ROWS = [(n, "file", n + 1, "because", "{") for n in range(3)]
RESULT_ROWS = [(0, [1.5, 2.5], [1, 2], [0, 1], [b"a", b"bc"]), (3, [], [], [], [])]
TABLES = {
    "controls": table_of(CONTROL_ROWS, CONTROLS),
    "objects": table_of(OBJECT_ROWS, OBJECTS),
    "rejects": table_of(REJECT_ROWS, REJECTS),
    "results": table_of(RESULT_ROWS, RESULTS),
}
PARTS = [slice(0, None), slice(1, None), slice(0, 1), slice(1, 2), slice(1, 1), slice(9, None)]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_bytes_and_back(name: str, part: slice) -> None:
    table = TABLES[name].slice(part.start, None if part.stop is None else part.stop - part.start)
    back = from_bytes(to_bytes(table), table.schema)
    assert back.schema == table.schema
    assert back.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("schema", [CONTROLS, OBJECTS, REJECTS, RESULTS], ids=lambda s: s.names[-1])
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


@pytest.mark.parametrize("table", [TABLES["controls"], TABLES["controls"].slice(2, 1)])
def test_control_columns(table: pa.RecordBatch) -> None:
    at = np.arange(table.num_rows, dtype=np.int32)
    c = control_columns(table, at)
    assert c.at.tolist() == at.tolist()
    for name in ("op", "time", "end", "flags"):
        assert getattr(c, name).tolist() == table[name].to_pylist()
    for name in ("program", "cover", "region"):
        offsets, values = getattr(c, f"{name}_offsets"), getattr(c, name)
        cut = [values[a:b].tolist() for a, b in pairwise(offsets.tolist())]
        assert cut == table[name].to_pylist()
    assert c.id_hash.tolist() == hash_ids(c.id_bytes, c.id_offsets).tolist()
    assert c.tail_bytes.tobytes() == b"".join(table["tail"].to_pylist())
    assert c.boxes.tolist() == [v for row in table["boxes"].to_pylist() for v in row]


def test_a_table_may_lie_across_words() -> None:
    """As it does within a message: kernels want numbers that lie as processors want them."""
    table = pa.RecordBatch.from_pydict({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]})
    data = to_bytes(table)
    for shift in range(9):
        moved = memoryview(bytes(shift) + bytes(data))[shift:]
        back = from_bytes(moved, table.schema)
        assert back.equals(table)
        assert back["b"].to_numpy().flags.aligned
