"""One slice in a storage: the columns that all stores keep, and the index of the store's own.

The objects of a slice never change. Times and ranks rest side by side, and so do coordinates:
who reads one of them reads the other, and has it in the same cache line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.kernels.ragged import gather
from nearcast.model.jit import njit
from nearcast.objects.base import Fields, Idf
from nearcast.objects.blob import Part, attached, written
from nearcast.objects.coded import Coded

__all__ = ["Columns", "Slice", "attach", "count_at", "cut", "decoded", "field_columns", "write"]

_MANY = 255  # in `tf`: look into `many`


class Columns(NamedTuple):
    """What kernels read of the objects of a slice, by row."""

    at: NDArray[np.float64]  # [n, 2]
    when: NDArray[np.int64]  # [n, 2]: time, rank
    starts: NDArray[np.uint32]  # [n + 1], of codes
    codes: NDArray[np.uint32]  # words, in the order of first use
    tf: NDArray[np.uint8]  # parallel to codes; _MANY: in `many`
    many_at: NDArray[np.int64]  # ascending places in `codes`
    many: NDArray[np.int64]  # the counts there
    words: NDArray[np.uint64]  # the dictionary, ascending
    idf: NDArray[np.float64]  # of the dictionary; empty: 1 for all


_COLUMNS = (
    Part(np.float64, 2), Part(np.int64, 2), Part(np.uint32), Part(np.uint32), Part(np.uint8),
    Part(np.int64), Part(np.int64), Part(np.uint64), Part(np.float64),
)  # fmt: skip
_IDS = (Part(np.uint32), Part(np.uint8))
_FIELDS = (Part(np.int64), Part(np.uint8), Part(np.int64), Part(np.uint8))


class Slice(NamedTuple):
    """A slice as it is attached; `index` is what the store makes of it."""

    columns: Columns
    id_offsets: NDArray[np.uint32]
    id_bytes: NDArray[np.uint8]
    limits: NDArray[np.int64]  # first and last time, first and last rank
    index: Any


def _name(number: int) -> str:
    return f"slice{number}"


def _fields_name(number: int) -> str:
    return f"fields{number}"


def write(
    storage: Storage,
    number: int,
    rows: Coded,
    fields: Fields,
    idf: Idf,
    parts: Sequence[Part],
    index: Sequence[NDArray[Any]],
) -> int:
    """Write a slice; how many bytes it takes, without the fields for answers."""
    many = np.flatnonzero(rows.counts >= _MANY)
    tf = np.minimum(rows.counts, _MANY).astype(np.uint8)
    columns = Columns(
        rows.at, rows.when, rows.starts, rows.codes, tf, many, rows.counts[many], rows.words,
        _idf_of(idf, rows.words),
    )  # fmt: skip
    ids = rows.id_offsets, rows.id_bytes
    size = written(storage, _name(number), (*_COLUMNS, *_IDS, *parts), (*columns, *ids, *index))
    if len(fields.text_bytes) or len(fields.keyword_bytes):
        written(storage, _fields_name(number), _FIELDS, fields)
    return size


def _idf_of(idf: Idf, words: NDArray[np.uint64]) -> NDArray[np.float64]:
    if len(idf.words) == 0:
        return np.empty(0) if idf.other == 1.0 else np.full(len(words), idf.other)
    at = np.minimum(np.searchsorted(idf.words, words), len(idf.words) - 1)
    return np.where(idf.words[at] == words, idf.values[at], idf.other)


def attach(storage: Storage, number: int, parts: Sequence[Part]) -> tuple[Slice, list[Any]]:
    """A slice that `write` wrote, and the arrays of its index."""
    arrays = attached(storage, _name(number), (*_COLUMNS, *_IDS, *parts))
    n = len(_COLUMNS)
    return Slice(
        Columns(*arrays[:n]), arrays[n], arrays[n + 1], np.empty(0, np.int64), None
    ), arrays[n + 2 :]


def field_columns(storage: Storage, number: int) -> Fields:
    """The fields of a slice that has some."""
    return Fields(*attached(storage, _fields_name(number), _FIELDS))


def drop(storage: Storage, number: int) -> None:
    """Forget a slice."""
    storage.discard(_name(number))
    storage.discard(_fields_name(number))


def decoded(s: Slice) -> Coded:
    """All objects of a slice."""
    c = s.columns
    counts = c.tf.astype(np.int32)
    counts[c.many_at] = c.many
    return Coded(
        c.at,
        c.when,
        c.starts.astype(np.int64),
        c.codes,
        counts,
        s.id_offsets.astype(np.int64),
        s.id_bytes,
        c.words,
    )


def cut(s: Slice, rows: NDArray[np.int64]) -> Coded:
    """Some objects of a slice, in this order; only what is needed is read."""
    c = s.columns
    first = c.starts[rows].astype(np.int64)
    lengths = c.starts[rows + 1].astype(np.int64) - first
    starts, codes = gather(c.codes, first, lengths)
    used, codes = np.unique(codes, return_inverse=True)
    id_first = s.id_offsets[rows].astype(np.int64)
    return Coded(
        c.at[rows],
        c.when[rows],
        starts,
        codes.astype(np.uint32),
        _counts(c, first, lengths, int(starts[-1])),
        *gather(s.id_bytes, id_first, s.id_offsets[rows + 1].astype(np.int64) - id_first),
        c.words[used],
    )


@njit
def _counts(
    c: Columns, first: NDArray[np.int64], lengths: NDArray[np.int64], total: int
) -> NDArray[np.int32]:
    """The counts at runs of places."""
    out = np.empty(total, np.int32)
    n = 0
    for i in range(len(first)):
        for j in range(lengths[i]):
            out[n] = count_at(c, first[i] + j)
            n += 1
    return out


@njit(lean=True)
def count_at(c: Columns, place: int) -> int:
    """How often the object holds the word at a place of `codes`."""
    count = np.int64(c.tf[place])
    if count < _MANY:
        return count
    lo, hi = 0, len(c.many_at)
    while lo < hi:
        mid = (lo + hi) >> 1
        if c.many_at[mid] < place:
            lo = mid + 1
        else:
            hi = mid
    return c.many[lo]
