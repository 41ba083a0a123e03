"""Reading splits: from bytes or rows to tables."""

from __future__ import annotations

import time
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.model.standing import Needs
from nearcast.wire.columns import decode_columns
from nearcast.wire.decode import Decoded, Publishes, SplitBuilder, no_collector
from nearcast.wire.jsonl import decode_jsonl, decode_records
from nearcast.wire.kafka import Connections, reader_of
from nearcast.wire.kind import Kinds, needs_of
from nearcast.wire.split import Split
from nearcast.wire.tables import numbers


def read_split(
    split: Split,
    space: Space,
    kinds: Kinds,
    number: int,
    needs: Needs = Needs.NOTHING,
    connections: Connections = MappingProxyType({}),
) -> Decoded:
    """Read and decode a split; `number` is its place in the batch.

    Its objects carry what the kinds in use need, and `needs` besides. `connections` say how topics
    of Kafka are reached.
    """
    started = time.perf_counter()
    with no_collector():
        decoded = _read(split, space, kinds, number, needs, connections)
    decoded.seconds = time.perf_counter() - started
    return decoded


def _read(
    split: Split,
    space: Space,
    kinds: Kinds,
    number: int,
    besides: Needs,
    connections: Connections,
) -> Decoded:
    needs = needs_of(kinds, split.kinds) | besides
    if split.format in ("reject", "empty"):
        builder = SplitBuilder(space, kinds, split.name, needs)
        if split.format == "reject":
            builder.reject(number << 32, split.first_line, split.reason, "")
        return builder.finish(nothing())
    kwargs: dict[str, Any] = {
        "file": split.name,
        "first_line": split.first_line,
        "split": number,
        "needs": needs,
    }
    if split.format == "kafka":
        return _read_topic(split, space, kinds, connections, kwargs)
    try:
        if split.format == "jsonl":
            with Path(split.path).open("rb") as file:
                file.seek(split.start)
                data = file.read(split.length)
            if len(data) < split.length:
                raise NearcastError(f"{split.name} became shorter while it was read")
            return _rename(decode_jsonl(data, space, kinds, **kwargs), split)
        return _rename(decode_columns(_rows(split), space, kinds, **kwargs), split)
    except OSError as error:
        raise NearcastError(f"cannot read {split.name}: {error}") from error


def _read_topic(
    split: Split, space: Space, kinds: Kinds, connections: Connections, kwargs: dict[str, Any]
) -> Decoded:
    """Events of a topic. What is refused names the offset in the place of a line."""
    if split.topic not in connections:
        raise NearcastError(
            f"{split.name}: this run has planned to read it, and no source has that topic now; "
            "put it back"
        )
    reader = reader_of(connections[split.topic])
    records = reader.read(split.topic, split.partition, split.start, split.until)
    values = [message.value() for message in records.messages]
    decoded = decode_records(values, space, kinds, publishes=split.publishes, **kwargs)
    if _names_lines(decoded):
        known = np.stack([np.zeros(len(values), np.int64), records.offsets], axis=1)
        split = msgspec.structs.replace(split, names=(split.name,))
        return _renamed(decoded, split, known)
    return decoded


def _rows(split: Split) -> pa.RecordBatch:
    if split.format == "parquet":
        groups = list(range(split.start, split.start + split.length))
        with pq.ParquetFile(split.path) as file:
            batches = file.read_row_groups(groups).combine_chunks().to_batches()
            return batches[0] if batches else pa.RecordBatch.from_pylist([], file.schema_arrow)
    with pa.memory_map(split.path) as source, pa.ipc.open_file(source) as reader:
        return reader.get_batch(split.start)


def _rename(decoded: Decoded, split: Split) -> Decoded:
    """Make rejects of a spool, and what may become some, name lines of the original file."""
    if split.lines and _names_lines(decoded):
        known = np.fromfile(split.lines, np.int64).reshape(-1, 2)[split.line_start :]
        return _renamed(decoded, split, known)
    return decoded


def _names_lines(decoded: Decoded) -> bool:
    """Whether anything of a split names the lines of its file."""
    return bool(decoded.rejects.num_rows or decoded.asks or decoded.lasts)


def _renamed(decoded: Decoded, split: Split, known: NDArray[np.int64]) -> Decoded:
    """Put (name, line) of `known` in the place of each line."""
    decoded.rejects = _named(decoded.rejects, split, known)
    decoded.asks = {kind: _named(t, split, known) for kind, t in decoded.asks.items()}
    decoded.lasts = {kind: _named(t, split, known) for kind, t in decoded.lasts.items()}
    return decoded


def _named(table: pa.RecordBatch, split: Split, known: NDArray[np.int64]) -> pa.RecordBatch:
    rows = numbers(table["line"]) - split.first_line
    files = pa.array([split.names[n] for n in known[rows, 0]], pa.string())
    for name, column in (("file", files), ("line", pa.array(known[rows, 1]))):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), column)
    return table


def nothing() -> Publishes:
    """No objects."""
    none = np.empty(0, np.int64)
    empty = pa.array([], pa.large_string())
    return Publishes(
        none, empty, none, np.empty(0), np.empty(0), empty, empty, np.zeros(1, np.int64)
    )
