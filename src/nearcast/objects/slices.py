"""One slice in a storage: the columns that all stores keep, and the index of the store's own.

Rows go from other slices straight to where they rest: copying is most of what a slice costs.

The objects of a slice never change. Times and ranks rest side by side, and so do coordinates:
who reads one of them reads the other, and has it in the same cache line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.kernels.prefetch import prefetch
from nearcast.kernels.ragged import frozen, gather
from nearcast.model.jit import njit
from nearcast.objects.base import Fields, Idf
from nearcast.objects.blob import Part, attached, laid_out, size_of, written
from nearcast.objects.coded import MANY, Coded, counts_of, in_bytes

__all__ = [
    "Columns",
    "Slice",
    "attach",
    "count_at",
    "cut",
    "decoded",
    "field_columns",
    "place",
    "place_fields",
    "place_index",
    "size",
]

_AHEAD = 16  # rows from prefetching memory to reading it


class Columns(NamedTuple):
    """What kernels read of the objects of a slice, by row."""

    at: NDArray[np.float64]  # [n, 2]
    when: NDArray[np.int64]  # [n, 2]: time, rank
    starts: NDArray[np.uint32]  # [n + 1], of codes
    codes: NDArray[np.uint32]  # words, in the order of first use
    tf: NDArray[np.uint8]  # parallel to codes; MANY: in `many`
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


def _index_name(number: int) -> str:
    return f"index{number}"


def _fields_name(number: int) -> str:
    return f"fields{number}"


def place(storage: Storage, number: int, rows: Coded, order: NDArray[np.int64], idf: Idf) -> Coded:
    """Write all rows as a slice, in this order; the rows as they rest there."""
    idf_of = _idf_of(idf, rows.words)
    n, held, many = rows.size, len(rows.codes), len(rows.many)
    lengths = (n, n, n + 1, held, held, many, many, len(rows.words), len(idf_of), n + 1,
               len(rows.id_bytes))  # fmt: skip
    outs = laid_out(storage, _name(number), (*_COLUMNS, *_IDS), lengths)
    columns, (id_offsets, id_bytes) = Columns(*outs[: len(_COLUMNS)]), outs[len(_COLUMNS) :]
    columns.words[:] = rows.words
    columns.idf[:] = idf_of
    starts = _placed(
        frozen(rows.at), frozen(rows.when), frozen(rows.starts), frozen(rows.codes),
        frozen(rows.tf), frozen(rows.id_offsets), frozen(rows.id_bytes), frozen(order),
        columns.at, columns.when, columns.codes, columns.tf, id_offsets, id_bytes,
    )  # fmt: skip
    columns.starts[:] = starts
    if many:
        counts = gather(counts_of(rows), rows.starts[:-1][order], np.diff(rows.starts)[order])[1]
        columns.many_at[:], columns.many[:] = in_bytes(counts)[1:]
    return Coded(
        columns.at, columns.when, starts, columns.codes, columns.tf, columns.many_at, columns.many,
        id_offsets, id_bytes, columns.words,
    )  # fmt: skip


@njit
def _placed(
    at: NDArray[np.float64],
    when: NDArray[np.int64],
    starts: NDArray[np.int64],
    codes: NDArray[np.uint32],
    tf: NDArray[np.uint8],
    id_offsets: NDArray[np.int64],
    id_bytes: NDArray[np.uint8],
    order: NDArray[np.int64],
    to_at: NDArray[np.float64],
    to_when: NDArray[np.int64],
    to_codes: NDArray[np.uint32],
    to_tf: NDArray[np.uint8],
    to_offsets: NDArray[np.uint32],
    to_bytes: NDArray[np.uint8],
) -> NDArray[np.int64]:
    """Copy rows in an order; where the codes of each begin there."""
    n = len(order)
    found = np.empty(n + 1, np.int64)
    found[0] = 0
    to_offsets[0] = 0
    m, b = 0, 0
    for i in range(n):
        if i + 2 * _AHEAD < n:
            prefetch(starts, order[i + 2 * _AHEAD])
            prefetch(id_offsets, order[i + 2 * _AHEAD])
        if i + _AHEAD < n:
            ahead = order[i + _AHEAD]
            prefetch(at, ahead)
            prefetch(when, ahead)
            prefetch(codes, starts[ahead])
            prefetch(tf, starts[ahead])
            prefetch(id_bytes, id_offsets[ahead])
        row = order[i]
        for axis in range(2):
            to_at[i, axis] = at[row, axis]
            to_when[i, axis] = when[row, axis]
        for j in range(starts[row], starts[row + 1]):
            to_codes[m] = codes[j]
            to_tf[m] = tf[j]
            m += 1
        for j in range(id_offsets[row], id_offsets[row + 1]):
            to_bytes[b] = id_bytes[j]
            b += 1
        found[i + 1] = m
        to_offsets[i + 1] = b
    return found


def place_index(
    storage: Storage, number: int, parts: Sequence[Part], index: Sequence[NDArray[Any]]
) -> None:
    """Write the index of a slice."""
    if parts:
        written(storage, _index_name(number), parts, index)


def place_fields(storage: Storage, number: int, fields: Fields) -> bool:
    """Write the fields for answers, if there are any; whether there are."""
    some = len(fields.text_bytes) > 0 or len(fields.keyword_bytes) > 0
    if some:
        written(storage, _fields_name(number), _FIELDS, fields)
    return some


def size(storage: Storage, number: int, parts: Sequence[Part]) -> int:
    """How many bytes a slice takes, without the fields for answers."""
    index = size_of(storage, _index_name(number), parts) if parts else 0
    return size_of(storage, _name(number), (*_COLUMNS, *_IDS)) + index


def _idf_of(idf: Idf, words: NDArray[np.uint64]) -> NDArray[np.float64]:
    if len(idf.words) == 0:
        return np.empty(0) if idf.other == 1.0 else np.full(len(words), idf.other)
    at = np.minimum(np.searchsorted(idf.words, words), len(idf.words) - 1)
    return np.where(idf.words[at] == words, idf.values[at], idf.other)


def attach(storage: Storage, number: int, parts: Sequence[Part]) -> tuple[Slice, list[Any]]:
    """A slice that was placed, and the arrays of its index."""
    arrays = attached(storage, _name(number), (*_COLUMNS, *_IDS))
    n = len(_COLUMNS)
    index = attached(storage, _index_name(number), parts) if parts else []
    return Slice(Columns(*arrays[:n]), arrays[n], arrays[n + 1], np.empty(0, np.int64), None), index


def field_columns(storage: Storage, number: int) -> Fields:
    """The fields of a slice that has some."""
    return Fields(*attached(storage, _fields_name(number), _FIELDS))


def drop(storage: Storage, number: int) -> None:
    """Forget a slice."""
    storage.discard(_name(number))
    storage.discard(_index_name(number))
    storage.discard(_fields_name(number))


def decoded(s: Slice) -> Coded:
    """All objects of a slice."""
    c = s.columns
    return Coded(
        c.at,
        c.when,
        c.starts.astype(np.int64),
        c.codes,
        c.tf,
        c.many_at,
        c.many,
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
        *in_bytes(_counts(c, first, lengths, int(starts[-1]))),
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
    if count < MANY:
        return count
    lo, hi = 0, len(c.many_at)
    while lo < hi:
        mid = (lo + hi) >> 1
        if c.many_at[mid] < place:
            lo = mid + 1
        else:
            hi = mid
    return c.many[lo]
