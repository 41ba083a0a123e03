"""How far back the events of a split reach (`last` of asks and subscribes), without decoding it."""

from __future__ import annotations

from mmap import ACCESS_READ, mmap
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.kernels.find import find
from nearcast.wire.split import Split

__all__ = ["reach_of"]

_NAMES = (b'"last"', b"\\u00")  # a key may be written with escapes


class _Last(msgspec.Struct):
    last: int = 0


_LAST = msgspec.json.Decoder(_Last)


def reach_of(split: Split) -> int:
    """The longest `last` of its events, in milliseconds; 0: there is none."""
    if split.format in ("reject", "empty"):
        return 0
    if split.format == "jsonl":
        return _in_lines(split) if split.length else 0
    return max((_in_column(column) for column in _columns(split)), default=0)


def _in_lines(split: Split) -> int:
    with Path(split.path).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as whole:
        data = np.frombuffer(whole, np.uint8, split.length, split.start)
        longest = max(_longest(data, whole, split, name) for name in _NAMES)
        del data  # else the file could not be closed
    return longest


def _longest(data: NDArray[np.uint8], whole: mmap, split: Split, name: bytes) -> int:
    """The longest `last` of lines in which a name stands."""
    pattern = np.frombuffer(name, np.uint8)
    longest, end = 0, split.start + split.length
    at = find(data, 0, pattern)
    while at >= 0:
        place = split.start + at
        first = whole.rfind(b"\n", split.start, place) + 1 or split.start
        stop = whole.find(b"\n", place, end)
        stop = end if stop < 0 else stop
        longest = max(longest, _of_line(whole[first:stop]))
        at = find(data, stop - split.start, pattern)
    return longest


def _of_line(line: bytes) -> int:
    try:
        return _LAST.decode(line).last
    except Exception:  # no valid event; the decoder will say what is wrong with it
        return 0


def _columns(split: Split) -> list[pa.Array]:
    """The column `last` of a split, or the values that hold whole events."""
    if split.format == "parquet":
        groups = list(range(split.start, split.start + split.length))
        with pq.ParquetFile(split.path) as file:
            name = _column(file.schema_arrow.names)
            if not name:
                return []
            return list(file.read_row_groups(groups, columns=[name])[name].chunks)
    with pa.memory_map(split.path) as source, pa.ipc.open_file(source) as reader:
        batch = reader.get_batch(split.start)
    name = _column(batch.schema.names)
    return [batch[name]] if name else []


def _column(names: list[str]) -> str:
    if "op" not in names and "value" in names:
        return "value"
    return "last" if "last" in names else ""


def _in_column(column: pa.Array) -> int:
    if pa.types.is_integer(column.type):
        return max(int(pc.max(column).as_py() or 0), 0)
    if pa.types.is_null(column.type) or pa.types.is_floating(column.type):
        return 0
    return max((_of_line(v) for v in column.cast(pa.binary()).to_pylist() if v), default=0)
