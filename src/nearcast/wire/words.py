"""Text and keyword columns to columns of word hashes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.kernels.hashing import hash_word_column
from nearcast.kernels.token_places import copy_lower, count_words, token_places
from nearcast.kernels.tokens import word_columns
from nearcast.model.standing import Needs
from nearcast.model.words import normalise, tokenise
from nearcast.wire.carried import COUNT_COLUMNS, TEXTS
from nearcast.wire.tables import OBJECTS, list_column, string_column, strings

Flat = tuple[
    NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]
]


def _to_ascii_rules(column: pa.Array, fix: Callable[[str], str]) -> pa.Array:
    """`column` with every string beyond ASCII replaced by `fix` of it (kernels know ASCII)."""
    if column.type != pa.large_string():
        column = column.cast(pa.large_string())
    column = column.fill_null("")
    odd = pc.invert(pc.string_is_ascii(column))
    if not pc.any(odd).as_py():
        return column
    fixed = [fix(text) for text in column.filter(odd).to_pylist()]
    return pc.replace_with_mask(column, odd, pa.array(fixed, pa.large_string()))


def _spaced_tokens(text: str) -> str:
    """The tokens of `text`, normalised, with a space between: ASCII rules then split it right."""
    return " ".join(tokenise(text))


def object_words(text: pa.Array, entries: pa.Array, entry_offsets: NDArray[np.int64]) -> pa.Array:
    """The `words` column of OBJECTS.

    `text` has n strings; object i has the keyword entries `entry_offsets[i]:entry_offsets[i+1]`.
    """
    found = word_columns(*_flat(text, entries, entry_offsets))
    return list_column(*found, OBJECTS.field("words").type)


def carried_words(
    text: pa.Array, entries: pa.Array, entry_offsets: NDArray[np.int64], needs: Needs
) -> tuple[list[pa.Array], pa.RecordBatch | None]:
    """(`words` and, if they are needed, COUNT_COLUMNS; TEXTS of all words, if these are)."""
    flat = _flat(text, entries, entry_offsets)
    offsets, words = word_columns(*flat)
    columns = [list_column(offsets, words, OBJECTS.field("words").type)]
    token_offsets, tokens, starts, stops = token_places(*flat)
    if Needs.COUNTS in needs:
        found = count_words(token_offsets, tokens, offsets, words)
        columns += [
            list_column(offsets, values, field.type)
            for values, field in zip(found, COUNT_COLUMNS, strict=True)
        ]
    if Needs.TEXTS not in needs:
        return columns, None
    distinct, first = np.unique(tokens, return_index=True)
    texts = string_column(*copy_lower(flat[0], flat[2], starts[first], stops[first]))
    return columns, pa.RecordBatch.from_arrays([pa.array(distinct), texts], schema=TEXTS)


def _flat(text: pa.Array, entries: pa.Array, entry_offsets: NDArray[np.int64]) -> Flat:
    """What kernels take: (bytes, offsets) of texts, of entries, and the entries of each object."""
    text_offsets, text_bytes = strings(_to_ascii_rules(text, _spaced_tokens))
    offsets, data = strings(_to_ascii_rules(entries, normalise))
    if len(text_offsets) != len(entry_offsets):
        text_offsets = np.zeros(len(entry_offsets), np.int64)
    return text_bytes, text_offsets, data, offsets, entry_offsets


def hash_words(keywords: list[str] | pa.Array) -> NDArray[np.uint64]:
    """Hashes of normalised keywords."""
    if not isinstance(keywords, pa.Array):
        keywords = pa.array(keywords, pa.large_string())
    offsets, data = strings(keywords.cast(pa.large_string()))
    return hash_word_column(data, offsets)
