"""Objects as slices keep them: words as numbers into the slice's own dictionary.

A number takes 4 bytes, a hash 8. The dictionary ascends, so that numbers are in the order of
hashes. The words of an object stand in the order of their first use, which is then no column.
How often an object holds a word takes a byte, because it is nearly always once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.prefetch import prefetch
from nearcast.kernels.ragged import frozen, gather
from nearcast.model.jit import njit
from nearcast.objects.base import Objects

__all__ = [
    "MANY",
    "RANK",
    "TIME",
    "Coded",
    "chained",
    "coded",
    "counts_of",
    "in_bytes",
    "joined",
    "plain",
    "taken",
]

TIME, RANK = 0, 1  # columns of `when`
MANY = 255  # in `tf`: look into `many`
_FREE = np.uint64(0)  # no hash of a word
_TWO = np.uint64(2)
_FIRST_TABLE = 1 << 12
_AHEAD = 16  # words from prefetching memory to reading it


class Coded(NamedTuple):
    """Objects by row."""

    at: NDArray[np.float64]  # [n, 2]
    when: NDArray[np.int64]  # [n, 2]: time, rank
    starts: NDArray[np.int64]  # [n + 1], of codes and tf
    codes: NDArray[np.uint32]  # places in `words`, in the order of first use
    tf: NDArray[np.uint8]  # how often the object holds the word; MANY: in `many`
    many_at: NDArray[np.int64]  # ascending places in `tf`
    many: NDArray[np.int64]  # the counts there
    id_offsets: NDArray[np.int64]  # [n + 1]
    id_bytes: NDArray[np.uint8]
    words: NDArray[np.uint64]  # ascending: the dictionary

    @property
    def size(self) -> int:
        """How many objects there are."""
        return len(self.at)


def coded(objects: Objects) -> Coded:
    """Objects with words by number."""
    numbers, counts, words = _encode(
        frozen(objects.word_offsets),
        frozen(objects.words),
        frozen(objects.counts),
        frozen(objects.firsts),
    )
    order = np.argsort(words)
    rank = np.empty(len(words), np.uint32)
    rank[order] = np.arange(len(words), dtype=np.uint32)
    return Coded(
        np.column_stack([objects.x, objects.y]),
        np.column_stack([objects.time, objects.rank]),
        np.ascontiguousarray(objects.word_offsets),
        rank[numbers],
        *in_bytes(counts),
        np.ascontiguousarray(objects.id_offsets),
        np.ascontiguousarray(objects.id_bytes),
        words[order],
    )


def in_bytes(
    counts: NDArray[np.int32],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """(tf, many_at, many) of counts."""
    many = np.flatnonzero(counts >= MANY)
    return np.minimum(counts, MANY).astype(np.uint8), many, counts[many].astype(np.int64)


def counts_of(some: Coded) -> NDArray[np.int32]:
    """How often objects hold their words, parallel to the codes."""
    counts = some.tf.astype(np.int32)
    counts[some.many_at] = some.many
    return counts


@njit
def _encode(
    offsets: NDArray[np.int64],
    words: NDArray[np.uint64],
    counts: NDArray[np.int32],
    firsts: NDArray[np.int32],
) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.uint64]]:
    """(number of each word, its counts, distinct words), words of a row by first use."""
    table = np.zeros((_FIRST_TABLE, 2), np.uint64)  # a word and its number
    n = 0
    numbers = np.empty(len(words), np.uint32)
    ordered = np.empty(len(words), np.int32)
    for row in range(len(offsets) - 1):
        start = offsets[row]
        for i in range(start, offsets[row + 1]):
            if i + _AHEAD < len(words):
                ahead = (words[i + _AHEAD] >> _TWO) & np.uint64(len(table) - 1)
                prefetch(table, np.int64(ahead))
            at = _place(table, words[i])
            if table[at, 0] == _FREE:
                if 2 * n >= len(table):
                    table = _larger(table)
                    at = _place(table, words[i])
                table[at, 0] = words[i]
                table[at, 1] = n
                n += 1
            numbers[start + firsts[i]] = table[at, 1]
            ordered[start + firsts[i]] = counts[i]
    distinct = np.empty(n, np.uint64)
    for at in range(len(table)):
        if table[at, 0] != _FREE:
            distinct[table[at, 1]] = table[at, 0]
    return numbers, ordered, distinct


@njit(lean=True)
def _place(table: NDArray[np.uint64], word: np.uint64) -> int:
    """Where a word is, or would be, in a table whose length is a power of two."""
    mask = np.uint64(len(table) - 1)
    at = (word >> _TWO) & mask  # a hash already: its two lowest bits are a tag
    while table[at, 0] != _FREE and table[at, 0] != word:
        at = (at + np.uint64(1)) & mask
    return np.int64(at)


@njit
def _larger(table: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A table of four times the length with the same words."""
    found = np.zeros((4 * len(table), 2), np.uint64)
    for i in range(len(table)):
        if table[i, 0] != _FREE:
            at = _place(found, table[i, 0])
            found[at, 0] = table[i, 0]
            found[at, 1] = table[i, 1]
    return found


def joined(parts: Sequence[Coded]) -> Coded:
    """All objects of several slices, one after the other."""
    if len(parts) == 1:
        return parts[0]
    words = np.sort(np.concatenate([p.words for p in parts]), kind="stable")  # merges runs
    words = words[np.append(True, words[1:] != words[:-1])] if len(words) else words
    begins = np.cumsum([0, *(len(p.codes) for p in parts)]).tolist()
    codes = np.empty(begins[-1], np.uint32)
    for p, begin, end in zip(parts, begins, begins[1:], strict=False):
        np.take(_places(frozen(words), frozen(p.words)), p.codes, out=codes[begin:end], mode="clip")
    return Coded(
        np.concatenate([p.at for p in parts]),
        np.concatenate([p.when for p in parts]),
        chained([p.starts for p in parts]),
        codes,
        np.concatenate([p.tf for p in parts]),
        np.concatenate([p.many_at + begin for p, begin in zip(parts, begins, strict=False)]),
        np.concatenate([p.many for p in parts]),
        chained([p.id_offsets for p in parts]),
        np.concatenate([p.id_bytes for p in parts]),
        words,
    )


@njit
def _places(words: NDArray[np.uint64], some: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Where some of the words are. Both ascend."""
    out = np.empty(len(some), np.uint32)
    at = 0
    for i in range(len(some)):
        while words[at] != some[i]:
            at += 1
        out[i] = at
    return out


def chained(offsets: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The offsets of ragged columns that are put one after the other."""
    out = np.empty(sum(len(o) - 1 for o in offsets) + 1, np.int64)
    out[0] = 0
    n = 0
    for o in offsets:
        np.add(o[1:], out[n] - o[0], out=out[n + 1 : n + len(o)])
        n += len(o) - 1
    return out


def taken(some: Coded, rows: NDArray[np.int64]) -> Coded:
    """Some objects, in this order; words that none of them holds leave the dictionary."""
    if len(rows) == some.size and np.array_equal(rows, np.arange(some.size)):
        return some
    first, lengths = some.starts[:-1][rows], np.diff(some.starts)[rows]
    starts, codes = gather(some.codes, first, lengths)
    words = some.words
    if len(rows) < some.size:
        used = np.zeros(len(words), np.bool_)
        used[codes] = True
        codes = (np.cumsum(used) - 1).astype(np.uint32)[codes]
        words = words[used]
    if len(some.many):
        counted = in_bytes(gather(counts_of(some), first, lengths)[1])
    else:
        counted = gather(some.tf, first, lengths)[1], some.many_at, some.many
    return Coded(
        some.at[rows],
        some.when[rows],
        starts,
        codes,
        *counted,
        *gather(some.id_bytes, some.id_offsets[:-1][rows], np.diff(some.id_offsets)[rows]),
        words,
    )


def plain(some: Coded) -> Objects:
    """Objects with word hashes, ascending in each row."""
    order, firsts = _by_code(frozen(some.starts), frozen(some.codes))
    return Objects(
        np.ascontiguousarray(some.at[:, 0]),
        np.ascontiguousarray(some.at[:, 1]),
        np.ascontiguousarray(some.when[:, TIME]),
        np.ascontiguousarray(some.when[:, RANK]),
        np.asarray(some.starts),
        some.words[some.codes[order]],
        counts_of(some)[order],
        firsts,
        np.asarray(some.id_offsets),
        np.asarray(some.id_bytes),
    )


@njit
def _by_code(
    starts: NDArray[np.int64], codes: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """(places of the codes of each row, ascending; which code of its row each is)."""
    order = np.empty(len(codes), np.int64)
    firsts = np.empty(len(codes), np.int32)
    for row in range(len(starts) - 1):
        first, last = starts[row], starts[row + 1]
        if last - first > 64:
            order[first:last] = first + np.argsort(codes[first:last])
        else:
            for i in range(first, last):  # insertion: most rows have few words
                j = i
                while j > first and codes[order[j - 1]] > codes[i]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = i
        for i in range(first, last):
            firsts[i] = order[i] - first
    return order, firsts
