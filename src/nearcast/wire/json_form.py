"""Columns of strings in JSON form: ids for notifications, texts and keywords for answers."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.wire.subscriptions import json_body

__all__ = ["escaped", "shown_fields"]

_ESCAPED = re.compile(r'[\x00-\x1f"\\]')


def escaped(column: pa.Array) -> pa.Array:
    """Strings as they stand between quotes, as large binary. Most are that already."""
    return _escaped(column).cast(pa.large_binary())


def shown_fields(
    text: pa.Array, entries: pa.Array, entry_offsets: NDArray[np.int64]
) -> list[pa.Array]:
    """(text, keywords) of objects as JSON values; no bytes where an object has none."""
    n = len(entry_offsets) - 1
    if len(text) != n or pa.types.is_null(text.type):
        text = pa.nulls(n, pa.large_string())
    texts = _quoted(text).fill_null("")
    offsets = pa.array(entry_offsets, pa.int64())
    lists = pa.LargeListArray.from_arrays(offsets, _quoted(entries))
    joined = pc.binary_join_element_wise(_OPEN, pc.binary_join(lists, _COMMA), _CLOSE, _NOTHING)
    some = pa.array(np.diff(entry_offsets) > 0)
    return [
        texts.cast(pa.large_binary()),
        pc.if_else(some, joined, _NOTHING).cast(pa.large_binary()),
    ]


_COMMA, _NOTHING, _OPEN, _CLOSE, _QUOTE = (
    pa.scalar(s, pa.large_string()) for s in (",", "", "[", "]", '"')
)


def _escaped(column: pa.Array) -> pa.Array:
    column = column.cast(pa.large_string())
    odd = pc.match_substring_regex(column, _ESCAPED.pattern).fill_null(False)
    if pc.any(odd).as_py():
        fixed = [json_body(text).decode() for text in column.filter(odd).to_pylist()]
        column = pc.replace_with_mask(column, odd, pa.array(fixed, pa.large_string()))
    return column


def _quoted(column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_QUOTE, _escaped(column), _QUOTE, _NOTHING)
