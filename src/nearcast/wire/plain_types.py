"""Arrow's view types as plain ones: most of Arrow's own functions do not take views yet."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["without_views"]

T = TypeVar("T", pa.RecordBatch, pa.Table)


def without_views(data: T) -> T:
    """The same rows; `string_view`, `binary_view` and list views become large plain types."""
    for at, field in enumerate(data.schema):
        if _has_views(field.type):
            column = data.column(at)
            if isinstance(column, pa.ChunkedArray):
                chunks = [_plain(chunk) for chunk in column.chunks]
                column = pa.chunked_array(chunks, None if chunks else _plain_type(field.type))
            else:
                column = _plain(column)
            data = data.set_column(at, field.name, column)
    return data


def _has_views(type_: pa.DataType) -> bool:
    return _is_view(type_) or any(_has_views(part) for part in _parts(type_))


def _is_view(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string_view(type_)
        or pa.types.is_binary_view(type_)
        or pa.types.is_list_view(type_)
        or pa.types.is_large_list_view(type_)
    )


def _parts(type_: pa.DataType) -> list[pa.DataType]:
    """The types inside a type."""
    if pa.types.is_dictionary(type_):
        return [type_.value_type]
    return [type_.field(n).type for n in range(type_.num_fields)]


def _plain_type(type_: pa.DataType) -> pa.DataType:
    return _plain(pa.nulls(0, type_)).type


def _plain(column: pa.Array) -> pa.Array:
    type_ = column.type
    if not _has_views(type_):
        return column
    if pa.types.is_string_view(type_):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(type_):
        return column.cast(pa.large_binary())
    if pa.types.is_dictionary(type_):
        return _plain(column.dictionary).take(column.indices)
    if pa.types.is_struct(type_):
        parts = [_plain(column.field(n)) for n in range(type_.num_fields)]
        names = [type_.field(n).name for n in range(type_.num_fields)]
        return pa.StructArray.from_arrays(parts, names, mask=column.is_null())
    if pa.types.is_map(type_):
        key, item = _plain_type(type_.key_type), _plain_type(type_.item_type)
        return column.cast(pa.map_(key, item))
    return _list(column)


def _list(column: pa.Array) -> pa.Array:
    """A list of any kind. Not by `cast`: that of list views gives invalid arrays (Arrow 26)."""
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
    entries = _plain(column.flatten())
    return pa.LargeListArray.from_arrays(offsets, entries, mask=column.is_null())
