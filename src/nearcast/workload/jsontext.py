"""Event batches as JSON lines, put together column by column."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_JSON_COLUMNS = ("query", "meta")  # these hold JSON text already
_ORDER = ("at", "text", "keywords", "expires", "last", "query", "owner", "meta")


def json_lines(events: pa.RecordBatch) -> pa.Buffer | bytes:
    """One JSON object per line, fields as in docs/spec.md section 3; null ones are left out."""
    if events.num_rows == 0:
        return b""
    op, event_id = (_quoted(events.column(name)) for name in ("op", "id"))
    time = events.column("time").cast(pa.string())
    parts = ['{"op":', op, ',"id":', event_id, ',"time":', time]
    for name in _ORDER:
        column = events.column(name)
        if column.null_count < len(column):
            # Null stays null here and is skipped below, its name with it.
            parts.append(pc.binary_join_element_wise(f',"{name}":', _json(name, column), ""))
    parts.append("}\n")
    lines = pc.binary_join_element_wise(*parts, "", null_handling="skip")
    # The characters of a string array lie one after another: that is the file's text already.
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int32)
    return lines.buffers()[2].slice(0, int(offsets[len(lines)]))


def _json(name: str, column: pa.Array) -> pa.Array:
    """The JSON text of each value, null where it is null."""
    if name in _JSON_COLUMNS:
        return column
    if name == "at":
        numbers = pc.binary_join(column.cast(pa.list_(pa.string())), ",")
        return pc.binary_join_element_wise("[", numbers, "]", "")
    if name == "keywords":
        return pc.binary_join_element_wise("[", _joined(column), "]", "")
    if pa.types.is_string(column.type):
        return _quoted(column)
    return column.cast(pa.string())


def _joined(lists: pa.ListArray) -> pa.Array:
    """The quoted strings of each list with commas between them."""
    # Offsets of a sliced batch start within a buffer, which Arrow refuses beside a mask: copy.
    offsets = pa.array(lists.offsets.to_numpy().copy())
    quoted = pa.ListArray.from_arrays(offsets, _quoted(lists.values), mask=lists.is_null())
    return pc.binary_join(quoted, ",")


def _quoted(strings: pa.Array) -> pa.Array:
    """Strings as JSON: quotes around each, and escapes where one is needed."""
    if _plain(strings):
        return pc.binary_join_element_wise('"', strings, '"', "")
    texts = [None if s is None else json.dumps(s, ensure_ascii=False) for s in strings.to_pylist()]
    return pa.array(texts, pa.string())


def _plain(strings: pa.Array) -> bool:
    """Whether no byte of these strings needs escaping in JSON (one scan over the raw bytes)."""
    data = strings.buffers()[2]
    if data is None:
        return True
    raw = np.frombuffer(data, dtype=np.uint8)
    return not bool(((raw < 0x20) | (raw == 0x22) | (raw == 0x5C)).any())
