"""Objects as other tools want to read them: STORED to plain columns (ARCHIVED) and back.

STORED has strings in JSON form, ready for answers. Files have them plain, and null where an object
has none. Going forth and back gives the same bytes for all that nearcast decoded itself, because
it writes each string in one form only (`wire.json_form`).
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.kernels.ragged import gather
from nearcast.objects.base import STORED
from nearcast.wire.json_form import escaped, shown_fields
from nearcast.wire.tables import list_column, string_column, strings

__all__ = ["ARCHIVED", "archived", "stored"]


def _list(item: pa.DataType) -> pa.DataType:
    return pa.large_list(pa.field("element", item, nullable=False))


ARCHIVED = pa.schema(
    [
        pa.field("id", pa.large_string(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),  # epoch milliseconds
        pa.field("rank", pa.int64(), nullable=False),  # number in object order
        pa.field("x", pa.float64(), nullable=False),
        pa.field("y", pa.float64(), nullable=False),
        pa.field("text", pa.large_string()),
        pa.field("keywords", _list(pa.large_string())),
        # Hashes of all words ascend; how often and as which word each comes first is parallel.
        pa.field("words", _list(pa.uint64()), nullable=False),
        pa.field("counts", _list(pa.int32()), nullable=False),
        pa.field("firsts", _list(pa.int32()), nullable=False),
    ]
)
"""Columns of a file besides those made from x and y (`geoparquet`), in Arrow's large types."""

_BACKSLASH = "\\"


def archived(table: pa.RecordBatch) -> pa.Table:
    """Objects of STORED as ARCHIVED."""
    plain = {
        "id": _plain(table["id"]),
        "text": _texts(table["text"]),
        "keywords": _keywords(table["keywords"]),
    }
    columns = [plain[f.name] if f.name in plain else table[f.name].cast(f.type) for f in ARCHIVED]
    return pa.Table.from_arrays(columns, schema=ARCHIVED)


def stored(table: pa.RecordBatch) -> pa.RecordBatch:
    """Objects of ARCHIVED, or with the same columns in small types, as STORED."""
    keywords = table["keywords"].cast(ARCHIVED.field("keywords").type)
    # The offsets of a null list may span values that nobody meant.
    lengths = pc.list_value_length(keywords).fill_null(0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    text, shown = shown_fields(
        table["text"].cast(pa.large_string()), pc.list_flatten(keywords), offsets
    )
    listed = pc.and_(pc.is_valid(keywords), pa.array(lengths == 0))
    shown = pc.if_else(listed, pa.scalar(b"[]", pa.large_binary()), shown)
    made = {"id": escaped(table["id"]), "text": text, "keywords": shown}
    for name in ("words", "counts", "firsts"):
        made[name] = _numbers(table[name], STORED.field(name).type)
    columns = [made.get(f.name, table[f.name]) for f in STORED]
    return pa.RecordBatch.from_arrays(columns, schema=STORED)


def _numbers(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Lists without nulls, in large lists."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    values = column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return list_column(offsets - offsets[0], values.to_numpy(), type_)


def _plain(column: pa.Array) -> pa.Array:
    """What strings in JSON form mean. Most are plain already; the others are read one by one."""
    text = column.cast(pa.large_string())
    odd = pc.match_substring(text, _BACKSLASH)
    if not pc.any(odd).as_py():
        return text
    read = [msgspec.json.decode(f'"{body}"', type=str) for body in text.filter(odd).to_pylist()]
    return pc.replace_with_mask(text, odd, pa.array(read, pa.large_string()))


def _without(column: pa.Array, ends: int) -> pa.Array:
    """Strings without their first and last `ends` bytes; shorter ones are empty."""
    offsets, data = strings(column)
    lengths = np.maximum(np.diff(offsets) - 2 * ends, 0)
    return string_column(*gather(data, offsets[:-1] + ends, lengths))


def _absent(column: pa.Array) -> pa.Array:
    return pc.equal(pc.binary_length(column), 0)


def _texts(column: pa.Array) -> pa.Array:
    return pc.if_else(_absent(column), None, _plain(_without(column, 1)))


def _keywords(column: pa.Array) -> pa.Array:
    """JSON lists of strings as lists. Without backslashes, `","` stands between entries only."""
    type_ = ARCHIVED.field("keywords").type
    odd = pc.or_(
        pc.match_substring(column.cast(pa.large_string()), _BACKSLASH),
        pc.equal(pc.binary_length(column), len("[]")),
    ).to_numpy(zero_copy_only=False)
    inner = _without(column, 2).cast(pa.large_string())
    inner = pc.if_else(_absent(column), None, inner)
    lists = pc.split_pattern(inner, '","').cast(type_)
    if not odd.any():
        return lists
    rows = np.flatnonzero(odd)
    read = [msgspec.json.decode(v, type=list[str]) for v in column.take(pa.array(rows)).to_pylist()]
    where = np.arange(len(column))
    where[rows] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([lists, pa.array(read, type_)]).take(pa.array(where))
