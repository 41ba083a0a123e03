"""How far back the events of a split reach (`last` of asks and subscribes), without decoding it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.wire.named_kinds import line_at
from nearcast.wire.split import Split

__all__ = ["reach_of"]

_CHUNK = 1 << 24  # bytes of a log that are looked through at once
_NAMES = (b'"last"', b"\\u00")  # a key may be written with escapes


class _Last(msgspec.Struct):
    last: int = 0


_LAST = msgspec.json.Decoder(_Last)


def reach_of(split: Split) -> int:
    """The longest `last` of its events, in milliseconds; 0: there is none."""
    if split.format == "reject":
        return 0
    if split.format == "jsonl":
        return _in_lines(split)
    return max((_in_column(column) for column in _columns(split)), default=0)


def _in_lines(split: Split) -> int:
    longest, left, rest = 0, split.length, b""
    with Path(split.path).open("rb") as file:
        file.seek(split.start)
        while left > 0 and (data := file.read(min(_CHUNK, left))):
            left -= len(data)
            whole = rest + data
            cut = len(whole) if left == 0 else whole.rfind(b"\n") + 1
            rest = whole[cut:]
            longest = max(longest, _in_text(whole[:cut]))
    return longest


def _in_text(data: bytes) -> int:
    """The same of whole lines."""
    longest = 0
    for name in _NAMES:
        at = data.find(name)
        while at >= 0:
            line = line_at(data, at)
            longest = max(longest, _of_line(line))
            at = data.find(name, data.find(line, max(0, at - len(line))) + len(line))
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
