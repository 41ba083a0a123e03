"""The tables that travel between steps and rest in the checkpoint, as Arrow schemas.

Strings are UTF-8 in *JSON form* (what stands between the quotes in JSON), so that notifications
are put together by copying bytes. Words are hashes (`kernels.hashing`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.kernels.hashing import hash_ids
from nearcast.kernels.ragged import frozen
from nearcast.kernels.slots import CONJUNCTION, REPORTS, Controls
from nearcast.kernels.slots import FOREVER as FOREVER

NEVER = -(2**62)  # earlier than any time
LIMIT = 2**61  # times stay below it, so that no sum of two overflows

KINDS = ("range", "knn", "topk", "terms")
KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}

_WORD = 8  # bytes
_WORDS = pa.large_list(pa.field("item", pa.uint64(), nullable=False))
_REALS = pa.large_list(pa.field("item", pa.float64(), nullable=False))

OBJECTS = pa.schema(
    [
        ("pos", pa.int64()),  # place in the log, within the batch
        ("time", pa.int64()),
        ("clock", pa.int64()),  # latest time of any event up to here, in this split
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("id", pa.large_binary()),
        ("words", _WORDS),
    ]
)
CONTROLS = pa.schema(
    [
        ("pos", pa.int64()),
        ("op", pa.uint8()),  # kernels.slots SUBSCRIBE, UNSUBSCRIBE
        ("kind", pa.uint8()),
        ("time", pa.int64()),
        ("end", pa.int64()),
        ("clock", pa.int64()),  # latest time of any event before it, in this split
        ("k", pa.int64()),
        ("window", pa.int64()),  # 0: none
        ("flags", pa.int32()),  # kernels.slots: region code, REPORTS, CONJUNCTION
        ("id", pa.large_binary()),
        ("tail", pa.large_binary()),  # `,"owner":…,"meta":…`
        ("program", _WORDS),
        ("cover", _WORDS),  # words of which a match holds one; empty: choose from the program
        ("region", _REALS),  # knn: x, y
        ("boxes", _REALS),  # outward boxes, four numbers each; none: the region is its own box
    ]
)
RESULTS = pa.schema(
    [
        ("slot", pa.int64()),  # row of the controls, counted from the snapshot on
        ("distance", _REALS),
        ("time", pa.large_list(pa.field("item", pa.int64(), nullable=False))),
        ("outlived", pa.large_list(pa.field("item", pa.int64(), nullable=False))),
        ("object", pa.large_list(pa.field("item", pa.large_binary(), nullable=False))),
    ]
)
REJECTS = pa.schema(
    [
        ("pos", pa.int64()),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("reason", pa.string()),
        ("event", pa.string()),  # the beginning of what was refused
    ]
)


class ObjectColumns(NamedTuple):
    """Objects as kernels read them; `order` lists the rows in the order of the log."""

    order: NDArray[np.int64]
    time: NDArray[np.int64]
    clock: NDArray[np.int64]
    until: NDArray[np.int64]  # its time; later if it came too late for what had ended (`batch`)
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    id_offsets: NDArray[np.int64]
    id_bytes: NDArray[np.uint8]
    word_offsets: NDArray[np.int64]
    words: NDArray[np.uint64]


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """A table without rows."""
    return pa.RecordBatch.from_pylist([], schema=schema)


def join(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """All rows of `batches`, one table."""
    full = [b for b in batches if b.num_rows]
    if not full:
        return empty(schema)
    return full[0] if len(full) == 1 else pa.concat_batches(full)


def numbers(column: pa.Array) -> NDArray[Any]:
    """A column without nulls, as an array that shares its memory."""
    array: NDArray[Any] = column.to_numpy(zero_copy_only=True)
    return frozen(array)


def _buffer(buffer: pa.Buffer | None, dtype: Any, start: int, stop: int) -> NDArray[Any]:
    if buffer is None or stop == start:
        return frozen(np.empty(0, dtype))
    return frozen(np.frombuffer(buffer, dtype)[start:stop])


def strings(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """(offsets int64[n+1], bytes) of a large string or binary column, sharing its memory."""
    _, offsets_buffer, data = column.buffers()
    if offsets_buffer is None or len(column) == 0:
        return np.zeros(1, np.int64), frozen(np.empty(0, np.uint8))
    first = column.offset
    offsets = np.frombuffer(offsets_buffer, np.int64)[first : first + len(column) + 1]
    return offsets - offsets[0], _buffer(data, np.uint8, int(offsets[0]), int(offsets[-1]))


def lists(column: pa.Array, dtype: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """(offsets int64[n+1], values) of a large list column of numbers, sharing its memory."""
    if len(column) == 0:
        return np.zeros(1, np.int64), frozen(np.empty(0, dtype))
    offsets = numbers(column.offsets)
    values = column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return offsets - offsets[0], numbers(values) if len(values) else frozen(np.empty(0, dtype))


def string_column(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> pa.Array:
    """A large binary column from offsets and bytes."""
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(offsets) - 1,
        [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(data)],
    )


def list_column(offsets: NDArray[np.int64], values: NDArray[Any], type_: pa.DataType) -> pa.Array:
    """A large list column from offsets and values."""
    return pa.LargeListArray.from_arrays(
        pa.array(offsets), pa.array(values, type_.value_type), type=type_
    )


def with_clock(table: pa.RecordBatch, clock: NDArray[np.int64]) -> pa.RecordBatch:
    """OBJECTS or CONTROLS with another clock."""
    at = table.schema.get_field_index("clock")
    return table.set_column(at, table.schema.field(at), pa.array(clock))


def object_columns(
    batch: pa.RecordBatch,
    order: NDArray[np.int64] | None = None,
    until: NDArray[np.int64] | None = None,
) -> ObjectColumns:
    """The columns of an OBJECTS table for kernels."""
    id_offsets, id_bytes = strings(batch["id"])
    word_offsets, words = lists(batch["words"], np.uint64)
    return ObjectColumns(
        np.arange(batch.num_rows) if order is None else order,
        numbers(batch["time"]),
        numbers(batch["clock"]),
        numbers(batch["time"]).copy() if until is None else until,
        numbers(batch["x"]),
        numbers(batch["y"]),
        id_offsets,
        id_bytes,
        word_offsets,
        words,
    )


def control_columns(batch: pa.RecordBatch, at: NDArray[np.int32]) -> Controls:
    """The columns of a CONTROLS table for kernels; `at` counts the objects before each row."""
    id_offsets, id_bytes = strings(batch["id"])
    return Controls(
        numbers(batch["op"]),
        at,
        numbers(batch["clock"]),
        numbers(batch["time"]),
        numbers(batch["end"]),
        numbers(batch["flags"]),
        hash_ids(id_bytes, id_offsets),
        id_offsets,
        id_bytes,
        *strings(batch["tail"]),
        *lists(batch["program"], np.uint64),
        *lists(batch["cover"], np.uint64),
        *lists(batch["region"], np.float64),
        *lists(batch["boxes"], np.float64),
    )


def control_row(
    *,
    op: int,
    id: bytes,
    time: int,
    pos: int = 0,
    kind: int = 0,
    end: int = FOREVER,
    k: int = 0,
    window: int = 0,
    region_code: int = 0,
    conjunction: bool = False,
    tail: bytes = b"",
    program: list[int] | None = None,
    cover: list[int] | None = None,
    region: list[float] | None = None,
    boxes: list[float] | None = None,
) -> tuple[Any, ...]:
    """One row of a CONTROLS table, in the order of its columns."""
    flags = region_code | REPORTS | (CONJUNCTION if conjunction else 0)
    return (
        pos, op, kind, time, end, NEVER, k, window, flags, id, tail,
        program or [], cover or [], region or [], boxes or [],
    )  # fmt: skip


def table_of(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """A table from rows."""
    if not rows:
        return empty(schema)
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def to_bytes(batch: pa.RecordBatch) -> memoryview:
    """A table as an Arrow IPC stream; its size is asked for first, so that it need not grow."""
    sizing = pa.MockOutputStream()
    _stream(batch, sizing)
    buffer = pa.allocate_buffer(sizing.size())
    _stream(batch, pa.FixedSizeBufferWriter(buffer))
    return memoryview(buffer).cast("B").toreadonly()


def _stream(batch: pa.RecordBatch, sink: Any) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def from_bytes(data: memoryview, schema: pa.Schema) -> pa.RecordBatch:
    """The table that `to_bytes` wrote; it shares its memory, where numbers are not across words."""
    buffer = pa.py_buffer(data)
    if buffer.address % _WORD:
        aligned = pa.allocate_buffer(buffer.size)
        memoryview(aligned).cast("B")[:] = memoryview(data).cast("B")
        buffer = aligned
    return join(list(pa.ipc.open_stream(buffer)), schema)
