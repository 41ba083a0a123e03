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
from nearcast.kernels.slots import FOREVER as FOREVER
from nearcast.kernels.slots import REPLACED, REPORTS, SUBSCRIBE, Controls

NEVER = -(2**62)  # earlier than any time
LIMIT = 2**61  # times stay below it, so that no sum of two overflows

_WORD = 8  # bytes
WORDS = pa.large_list(pa.field("item", pa.uint64(), nullable=False))
_REALS = pa.large_list(pa.field("item", pa.float64(), nullable=False))
_NUMBERS = pa.large_list(pa.field("item", pa.int64(), nullable=False))
_TEXTS = pa.large_list(pa.field("item", pa.large_binary(), nullable=False))

OBJECTS = pa.schema(
    [
        ("pos", pa.int64()),  # place in the log, within the batch
        ("time", pa.int64()),
        ("clock", pa.int64()),  # latest time of any event up to here, in this split
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("id", pa.large_binary()),
        ("words", WORDS),
    ]
)
# What ends subscriptions of an id, of any kind.
ENDS = pa.schema(
    [
        ("pos", pa.int64()),
        ("op", pa.uint8()),  # kernels.slots UNSUBSCRIBE, REPLACED
        ("time", pa.int64()),
        ("clock", pa.int64()),  # latest time of any event before it, in this split
        ("id", pa.large_binary()),
    ]
)
# The columns that subscriptions of all kinds have. A kind adds its own (`nearcast.kinds`).
CONTROLS = pa.schema(
    [
        ("pos", pa.int64()),
        ("op", pa.uint8()),  # kernels.slots SUBSCRIBE, UNSUBSCRIBE, REPLACED
        ("time", pa.int64()),
        ("end", pa.int64()),
        ("clock", pa.int64()),  # latest time of any event before it, in this split
        ("flags", pa.int32()),  # kernels.slots: REPORTS, CONJUNCTION, and bits of the kind
        ("id", pa.large_binary()),
        ("tail", pa.large_binary()),  # `,"owner":…,"meta":…`
        ("program", WORDS),
        ("cover", WORDS),  # words of which a match holds one; empty: choose from the program
    ]
)


def controls_with(own: pa.Schema) -> pa.Schema:
    """The columns of subscriptions of a kind: the common ones, then its own."""
    return pa.schema([*CONTROLS, *own])


def results_with(own: pa.Schema) -> pa.Schema:
    """The columns of stored results of a kind; `slot` numbers the subscriptions of an index."""
    return pa.schema([("slot", pa.int64()), *own])


# Shapes that indexes and routers know. A kind whose subscriptions have one of them
# can rest in all indexes of the shape.
REGION_COLUMNS = pa.schema(
    [
        ("region", _REALS),  # its numbers; its code is in the flags (`model.region`)
        ("boxes", _REALS),  # outward boxes, four numbers each; none: the region is its own box
    ]
)
BALL_COLUMNS = pa.schema(
    [
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("k", pa.int64()),
        ("window", pa.int64()),  # 0: none
    ]
)
NEAREST_COLUMNS = pa.schema(
    [
        ("distance", _REALS),
        ("time", _NUMBERS),
        ("outlived", _NUMBERS),
        ("object", _TEXTS),
    ]
)
TOP_COLUMNS = pa.schema(
    [
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("k", pa.int64()),
        ("keywords", WORDS),  # as listed, each once
        ("alpha", pa.float64()),
        ("maxdist", pa.float64()),
    ]
)
BEST_COLUMNS = pa.schema(
    [
        ("score", _REALS),  # best first; of equals the newer one
        ("rank", _NUMBERS),
        ("time", _NUMBERS),
        ("object", _TEXTS),
        ("floor", pa.float64()),  # what has a lower score may be missing
        ("more", pa.bool_()),  # these come on top of what is held already
        ("passed", pa.int64()),  # how far time had come: what had left by then is not held
    ]
)
REGIONS = controls_with(REGION_COLUMNS)  # subscriptions for all objects of a region
BALLS = controls_with(BALL_COLUMNS)  # subscriptions for the nearest objects
NEAREST = results_with(NEAREST_COLUMNS)  # their results
TOPS = controls_with(TOP_COLUMNS)  # subscriptions for the objects of highest score
BEST = results_with(BEST_COLUMNS)  # their results
NO_RESULTS = results_with(pa.schema([]))  # of subscriptions that keep none
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


def with_flags(table: pa.RecordBatch, flags: NDArray[Any]) -> pa.RecordBatch:
    """Subscriptions with other flags."""
    at = table.schema.get_field_index("flags")
    return table.set_column(at, table.schema.field(at), pa.array(flags.astype(np.int32)))


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
    """The columns of REGIONS or BALLS for kernels; `at` counts the objects before each row.

    The region of a ball is its centre.
    """
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
        *_places(batch),
    )


def _places(batch: pa.RecordBatch) -> tuple[NDArray[Any], ...]:
    """(offsets, numbers) of the regions and of the outer boxes of REGIONS or BALLS."""
    if "region" in batch.schema.names:
        return *lists(batch["region"], np.float64), *lists(batch["boxes"], np.float64)
    begins = numbers(batch["op"]) == SUBSCRIBE
    centres = np.column_stack([numbers(batch["x"]), numbers(batch["y"])])[begins]
    offsets = np.append(0, np.cumsum(2 * begins))
    # As writable as what `lists` returns, or kernels would be compiled once more for balls.
    none = np.zeros(len(begins) + 1, np.int64), frozen(np.empty(0))
    return offsets, frozen(centres.ravel()), *none


def replaced(subscribes: pa.RecordBatch) -> pa.RecordBatch:
    """ENDS by which subscribes of one kind end subscriptions of other kinds with the same ids."""
    op = pa.array(np.full(subscribes.num_rows, REPLACED, np.uint8))
    columns = [op if f.name == "op" else subscribes[f.name] for f in ENDS]
    return pa.RecordBatch.from_arrays(columns, schema=ENDS)


def with_ends(
    subscribes: pa.RecordBatch, ends: list[pa.RecordBatch], schema: pa.Schema
) -> pa.RecordBatch:
    """Subscribes of a kind and ENDS of ids as one table, in the order of the log (`pos`)."""
    filled = [subscribes, *(filled_up(e, schema) for e in ends if e.num_rows)]
    whole = join(filled, schema)
    pos = numbers(whole["pos"])
    if np.all(pos[1:] >= pos[:-1]):
        return whole
    return whole.take(pa.array(np.argsort(pos, kind="stable")))


def filled_up(some: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with all columns of `schema`; missing ones hold what is usual, or nothing."""
    n = some.num_rows
    usual = {"end": FOREVER, "clock": NEVER, "flags": REPORTS}
    columns = []
    for field in schema:
        if field.name in some.schema.names:
            columns.append(some[field.name])
        elif pa.types.is_large_list(field.type):
            dtype = field.type.value_type.to_pandas_dtype()
            columns.append(list_column(np.zeros(n + 1, np.int64), np.empty(0, dtype), field.type))
        elif pa.types.is_large_binary(field.type):
            columns.append(string_column(np.zeros(n + 1, np.int64), np.empty(0, np.uint8)))
        else:
            dtype = field.type.to_pandas_dtype()
            columns.append(pa.array(np.full(n, usual.get(field.name, 0), dtype), field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def table_of(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """A table from rows."""
    if not rows:
        return empty(schema)
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def to_bytes(batch: pa.RecordBatch) -> memoryview:
    """A table as an Arrow IPC stream; its size is computed first, so that it need not grow."""
    sizing = pa.MockOutputStream()
    _stream(batch, sizing)
    buffer = pa.allocate_buffer(sizing.size())
    _stream(batch, pa.FixedSizeBufferWriter(buffer))
    return memoryview(buffer).cast("B").toreadonly()


def _stream(batch: pa.RecordBatch, sink: Any) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def from_bytes(data: memoryview, schema: pa.Schema) -> pa.RecordBatch:
    """The table that `to_bytes` wrote: zero-copy if 8-byte aligned, otherwise copied."""
    buffer = pa.py_buffer(data)
    if buffer.address % _WORD:
        aligned = pa.allocate_buffer(buffer.size)
        memoryview(aligned).cast("B")[:] = memoryview(data).cast("B")
        buffer = aligned
    return join(list(pa.ipc.open_stream(buffer)), schema)
