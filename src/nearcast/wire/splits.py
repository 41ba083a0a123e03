"""Reading splits: from bytes or rows to tables."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.wire.columns import decode_columns
from nearcast.wire.decode import Decoded, Publishes, SplitBuilder, no_collector
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.split import Split
from nearcast.wire.tables import REJECTS


def read_split(split: Split, space: Space, number: int) -> Decoded:
    """Read and decode a split; `number` is its place in the batch."""
    started = time.perf_counter()
    with no_collector():
        decoded = _read(split, space, number)
    decoded.seconds = time.perf_counter() - started
    return decoded


def _read(split: Split, space: Space, number: int) -> Decoded:
    if split.format == "reject":
        builder = SplitBuilder(space, split.name)
        builder.reject(number << 32, split.first_line, split.reason, "")
        return builder.finish(nothing())
    kwargs = {"file": split.name, "first_line": split.first_line, "split": number}
    try:
        if split.format == "jsonl":
            with Path(split.path).open("rb") as file:
                file.seek(split.start)
                data = file.read(split.length)
            if len(data) < split.length:
                raise NearcastError(f"{split.name} became shorter while it was read")
            return _rename(decode_jsonl(data, space, **kwargs), split)  # type: ignore[arg-type]
        return _rename(decode_columns(_rows(split), space, **kwargs), split)  # type: ignore[arg-type]
    except OSError as error:
        raise NearcastError(f"cannot read {split.name}: {error}") from error


def _rows(split: Split) -> pa.RecordBatch:
    if split.format == "parquet":
        groups = list(range(split.start, split.start + split.length))
        with pq.ParquetFile(split.path) as file:
            batches = file.read_row_groups(groups).combine_chunks().to_batches()
            return batches[0] if batches else pa.RecordBatch.from_pylist([], file.schema_arrow)
    with pa.memory_map(split.path) as source, pa.ipc.open_file(source) as reader:
        return reader.get_batch(split.start)


def _rename(decoded: Decoded, split: Split) -> Decoded:
    """Rejects of a spool name the line that the user knows."""
    if split.lines and decoded.rejects.num_rows:
        known = np.fromfile(split.lines, np.int64).reshape(-1, 2)[split.line_start :]
        rows = [
            {**r, "file": split.names[known[n, 0]], "line": int(known[n, 1])}
            for r in decoded.rejects.to_pylist()
            for n in [r["line"] - split.first_line]
        ]
        decoded.rejects = pa.RecordBatch.from_pylist(rows, schema=REJECTS)
    return decoded


def nothing() -> Publishes:
    """No objects."""
    none = np.empty(0, np.int64)
    empty = pa.array([], pa.large_string())
    return Publishes(
        none, empty, none, np.empty(0), np.empty(0), empty, empty, np.zeros(1, np.int64)
    )
