"""The texts of the words of kept objects, in an arena; and lists of words written with them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.kernels.ragged import frozen, gather
from nearcast.model.errors import NearcastError
from nearcast.model.jit import njit
from nearcast.wire.tables import string_column

__all__ = ["Dictionary"]

_HASH, _START, _LENGTH = range(3)
_COUNT, _TOP, _LEFT = range(3)  # places in the meta: words, bytes, words after the last purge
_TWO = np.uint64(2)
_FEW = 1 << 16  # words that are never worth a purge

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]


class _Texts(NamedTuple):
    table: Words  # [2ⁿ, 3]: hash, where its text starts, its length; hash 0: free
    text: Bytes


class Dictionary:
    """Texts by the hashes of words."""

    def __init__(self, storage: Storage) -> None:
        """What the storage holds (a new one holds nothing)."""
        self._storage = storage
        self.load()

    def load(self) -> None:
        """Attach what the storage holds."""
        self._meta = self._storage.array("texts.meta", np.int64, 1, 3)
        self._attach()

    def _attach(self) -> None:
        get = self._storage.array
        table = get("texts.words", np.uint64, 3, 128)
        self._texts = _Texts(table, get("texts.bytes", np.uint8, 1, 1024))

    def __len__(self) -> int:
        """How many words there are."""
        return int(self._meta[_COUNT])

    def add(self, words: Words, offsets: Longs, data: Bytes) -> Words:
        """Take in words with their texts; those that are new."""
        if len(words) == 0:
            return words
        need = len(self) + len(words)
        if 2 * need > len(self._texts.table):
            old = self._texts.table.copy()
            size = 1 << (4 * need - 1).bit_length()
            _refill(old, self._storage.table("texts.words", 3, size))
        self._storage.array("texts.bytes", np.uint8, 1, int(self._meta[_TOP]) + len(data))
        self._attach()
        new = np.empty(len(words), np.bool_)
        _add(self._texts, self._meta, frozen(words), frozen(offsets), frozen(data), new)
        return words[new]

    def purge(self, held: Words) -> None:
        """Forget words that are not `held`."""
        words, offsets, data = self._all()
        kept = np.flatnonzero(np.isin(words, held))
        offsets, data = gather(data, offsets[:-1][kept], np.diff(offsets)[kept])
        for name in ("texts.words", "texts.bytes"):
            self._storage.discard(name)
        self._meta[:] = 0
        self._attach()
        self.add(words[kept], offsets, data)
        self._meta[_LEFT] = len(self)

    @property
    def worth_purging(self) -> bool:
        """Whether so many words have come that most may be held no more."""
        return len(self) > 2 * int(self._meta[_LEFT]) + _FEW

    def _all(self) -> tuple[Words, Longs, Bytes]:
        """Words, ascending, with their texts."""
        rows = self._texts.table[self._texts.table[:, _HASH] != 0]
        rows = rows[np.argsort(rows[:, _HASH])]
        places = rows[:, _START].astype(np.int64), rows[:, _LENGTH].astype(np.int64)
        return rows[:, _HASH].copy(), *gather(self._texts.text, *places)

    def texts(self, only: Words | None = None) -> pa.Array:
        """The texts of all words, or only of some; by hash."""
        words, offsets, data = self._all()
        if only is not None:
            kept = np.flatnonzero(np.isin(words, only))
            offsets, data = gather(data, offsets[:-1][kept], np.diff(offsets)[kept])
        return string_column(offsets, data).cast(pa.large_string())

    def texts_of(self, words: Words) -> pa.Array:
        """The text of each of these words, which it knows."""
        known, offsets, data = self._all() if len(words) else (words, np.zeros(1, np.int64), None)
        if data is None:
            return pa.array([], pa.large_string())
        at = np.searchsorted(known, words)
        return string_column(*gather(data, offsets[:-1][at], np.diff(offsets)[at])).cast(
            pa.large_string()
        )

    def lists(
        self, offsets: Longs, words: Words, counts: Longs, k: Longs
    ) -> tuple[Bytes, Longs, Longs]:
        """For each list, its first k words as JSON (bytes, starts, lengths).

        The highest counts come first; of equal ones, the texts in the order of their code points.
        """
        out, starts, unknown = _write(
            self._texts, frozen(offsets), frozen(words), frozen(counts), frozen(k)
        )
        if unknown:
            raise NearcastError(f"{unknown} words of kept objects have no text: this is a bug")
        return out, starts[:-1], np.diff(starts)


@njit(lean=True)
def _place(table: Words, word: np.uint64) -> int:
    """Where a word is, or would be."""
    mask = np.uint64(len(table) - 1)
    at = (word >> _TWO) & mask  # a hash already: its two lowest bits are a tag
    while table[at, _HASH] != np.uint64(0) and table[at, _HASH] != word:
        at = (at + np.uint64(1)) & mask
    return int(at)


@njit
def _refill(old: Words, new: Words) -> None:
    for row in range(len(old)):
        if old[row, _HASH] != np.uint64(0):
            at = _place(new, old[row, _HASH])
            for column in range(3):
                new[at, column] = old[row, column]


@njit
def _add(
    t: _Texts, meta: Longs, words: Words, offsets: Longs, data: Bytes, new: NDArray[np.bool_]
) -> None:
    top = meta[_TOP]
    for i in range(len(words)):
        at = _place(t.table, words[i])
        new[i] = t.table[at, _HASH] == np.uint64(0)
        if not new[i]:
            continue
        t.table[at, _HASH] = words[i]
        t.table[at, _START] = np.uint64(top)
        t.table[at, _LENGTH] = np.uint64(offsets[i + 1] - offsets[i])
        for j in range(offsets[i], offsets[i + 1]):
            t.text[top] = data[j]
            top += 1
        meta[_COUNT] += 1
    meta[_TOP] = top


# -- lists ---------------------------------------------------------------------------------------


@njit(lean=True)
def _before(t: _Texts, a: int, a_count: int, b: int, b_count: int) -> bool:
    """Whether the word in row `a` comes before that in `b`; UTF-8 is in order of code points."""
    if a_count != b_count:
        return a_count > b_count
    x, y = np.int64(t.table[a, _START]), np.int64(t.table[b, _START])
    x_length, y_length = np.int64(t.table[a, _LENGTH]), np.int64(t.table[b, _LENGTH])
    for i in range(min(x_length, y_length)):
        if t.text[x + i] != t.text[y + i]:
            return bool(t.text[x + i] < t.text[y + i])
    return bool(x_length < y_length)


@njit(lean=True)
def _sink(t: _Texts, rows: Longs, counts: Longs, at: int, size: int) -> None:
    """Let an entry of a heap, whose top is the last in order, sink to its place."""
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and _before(
            t, rows[child], counts[child], rows[child + 1], counts[child + 1]
        ):
            child += 1
        if not _before(t, rows[at], counts[at], rows[child], counts[child]):
            return
        rows[at], rows[child] = rows[child], rows[at]
        counts[at], counts[child] = counts[child], counts[at]
        at = child


@njit
def _first(t: _Texts, words: Words, counts: Longs, k: int, rows: Longs, held: Longs) -> int:
    """Put the rows of the first k words, and their counts, in order; how many are unknown."""
    unknown = 0
    for i in range(len(words)):
        row = _place(t.table, words[i])
        if t.table[row, _HASH] == np.uint64(0):
            unknown += 1
        if i < k:
            rows[i], held[i] = row, counts[i]
            if i == k - 1:
                for at in range(k // 2 - 1, -1, -1):
                    _sink(t, rows, held, at, k)
        elif _before(t, row, counts[i], rows[0], held[0]):
            rows[0], held[0] = row, counts[i]
            _sink(t, rows, held, 0, k)
    for last in range(k - 1, 0, -1):
        rows[0], rows[last] = rows[last], rows[0]
        held[0], held[last] = held[last], held[0]
        _sink(t, rows, held, 0, last)
    return unknown


@njit
def _write(
    t: _Texts, offsets: Longs, words: Words, counts: Longs, k: Longs
) -> tuple[Bytes, Longs, int]:
    n = len(k)
    starts = np.zeros(n + 1, np.int64)
    out = np.empty(64 * n + 1024, np.uint8)
    most = 1
    for i in range(n):
        most = max(most, min(k[i], offsets[i + 1] - offsets[i]))
    rows, held = np.empty(most, np.int64), np.empty(most, np.int64)
    top = unknown = 0
    for i in range(n):
        first, last = offsets[i], offsets[i + 1]
        size = int(min(k[i], last - first))
        unknown += _first(t, words[first:last], counts[first:last], size, rows, held)
        room = top + 2
        for j in range(size):
            room += 6 * int(t.table[rows[j], _LENGTH]) + 26
        if room > len(out):
            more = np.empty(2 * room, np.uint8)
            more[:top] = out[:top]
            out = more
        out[top] = ord("[")
        top += 1
        for j in range(size):
            top = _entry(t, out, top, rows[j], held[j], j > 0)
        out[top] = ord("]")
        top += 1
        starts[i + 1] = top
    return out[:top].copy(), starts, unknown


@njit(lean=True)
def _entry(t: _Texts, out: Bytes, top: int, row: int, count: int, comma: bool) -> int:
    """`["…",n]`; where it ends."""
    if comma:
        out[top] = ord(",")
        top += 1
    out[top], out[top + 1] = ord("["), ord('"')
    top += 2
    start = np.int64(t.table[row, _START])
    for i in range(start, start + np.int64(t.table[row, _LENGTH])):
        byte = t.text[i]
        if byte == ord('"') or byte == ord("\\"):
            out[top] = ord("\\")
            top += 1
        elif byte < 32:
            out[top], out[top + 1], out[top + 2], out[top + 3] = ord("\\"), ord("u"), 48, 48
            out[top + 4] = 48 + (byte >> 4)
            low = byte & 15
            byte = np.uint8(48 + low if low < 10 else 87 + low)
            top += 5
        out[top] = byte
        top += 1
    out[top], out[top + 1] = ord('"'), ord(",")
    top += 2
    digits = 1
    rest = count // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for i in range(digits - 1, -1, -1):
        out[top + i] = 48 + count % 10
        count //= 10
    top += digits
    out[top] = ord("]")
    return top + 1
