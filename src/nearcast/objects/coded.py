"""Objects as slices keep them: words as numbers into the slice's own dictionary.

A number takes 4 bytes, a hash 8. The dictionary ascends, so that numbers are in the order of
hashes. The words of an object stand in the order of their first use, which is then no column.
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

__all__ = ["RANK", "TIME", "Coded", "coded", "joined", "plain", "taken"]

TIME, RANK = 0, 1  # columns of `when`
_FREE = np.uint64(0)  # no hash of a word
_TWO = np.uint64(2)
_FIRST_TABLE = 1 << 12
_AHEAD = 16  # words from prefetching memory to reading it


class Coded(NamedTuple):
    """Objects by row."""

    at: NDArray[np.float64]  # [n, 2]
    when: NDArray[np.int64]  # [n, 2]: time, rank
    starts: NDArray[np.int64]  # [n + 1], of codes and counts
    codes: NDArray[np.uint32]  # places in `words`, in the order of first use
    counts: NDArray[np.int32]
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
        counts,
        np.ascontiguousarray(objects.id_offsets),
        np.ascontiguousarray(objects.id_bytes),
        words[order],
    )


@njit
def _encode(
    offsets: NDArray[np.int64],
    words: NDArray[np.uint64],
    counts: NDArray[np.int32],
    firsts: NDArray[np.int32],
) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.uint64]]:
    """(number of each word, its counts, distinct words), words of a row by first use."""
    table = np.zeros(_FIRST_TABLE, np.uint64)
    held = np.empty(_FIRST_TABLE, np.uint32)
    distinct = np.empty(_FIRST_TABLE, np.uint64)
    n = 0
    numbers = np.empty(len(words), np.uint32)
    ordered = np.empty(len(words), np.int32)
    for row in range(len(offsets) - 1):
        start = offsets[row]
        for i in range(start, offsets[row + 1]):
            if i + _AHEAD < len(words):
                ahead = (words[i + _AHEAD] >> _TWO) & np.uint64(len(table) - 1)
                prefetch(table, np.int64(ahead))
                prefetch(held, np.int64(ahead))
            at = _place(table, words[i])
            if table[at] == _FREE:
                if 2 * n >= len(table):
                    table, held, distinct = _larger(distinct, n)
                    at = _place(table, words[i])
                table[at] = words[i]
                held[at] = n
                distinct[n] = words[i]
                n += 1
            numbers[start + firsts[i]] = held[at]
            ordered[start + firsts[i]] = counts[i]
    return numbers, ordered, distinct[:n].copy()


@njit
def _place(table: NDArray[np.uint64], word: np.uint64) -> int:
    """Where a word is, or would be, in a table whose length is a power of two."""
    mask = np.uint64(len(table) - 1)
    at = (word >> _TWO) & mask  # a hash already: its two lowest bits are a tag
    while table[at] != _FREE and table[at] != word:
        at = (at + np.uint64(1)) & mask
    return np.int64(at)


@njit
def _larger(
    distinct: NDArray[np.uint64], n: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint64]]:
    """A table of four times the length with the same words, their numbers, and room for more."""
    size = 4 * len(distinct)
    table = np.zeros(size, np.uint64)
    held = np.empty(size, np.uint32)
    room = np.empty(size, np.uint64)
    for i in range(n):
        room[i] = distinct[i]
        at = _place(table, distinct[i])
        table[at] = distinct[i]
        held[at] = i
    return table, held, room


def joined(parts: Sequence[Coded]) -> Coded:
    """All objects of several slices, one after the other."""
    if len(parts) == 1:
        return parts[0]
    words = np.sort(np.concatenate([p.words for p in parts]), kind="stable")  # merges runs
    words = words[np.append(True, words[1:] != words[:-1])] if len(words) else words
    codes = [np.searchsorted(words, p.words).astype(np.uint32)[p.codes] for p in parts]
    return Coded(
        np.concatenate([p.at for p in parts]),
        np.concatenate([p.when for p in parts]),
        chained([p.starts for p in parts]),
        np.concatenate(codes),
        np.concatenate([p.counts for p in parts]),
        chained([p.id_offsets for p in parts]),
        np.concatenate([p.id_bytes for p in parts]),
        words,
    )


def chained(offsets: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The offsets of ragged columns that are put one after the other."""
    lengths = [np.diff(o) for o in offsets]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])


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
    return Coded(
        some.at[rows],
        some.when[rows],
        starts,
        codes,
        _counts_taken(some.counts, first, lengths, len(codes)),
        *gather(some.id_bytes, some.id_offsets[:-1][rows], np.diff(some.id_offsets)[rows]),
        words,
    )


def _counts_taken(
    counts: NDArray[np.int32], first: NDArray[np.int64], lengths: NDArray[np.int64], total: int
) -> NDArray[np.int32]:
    """Runs of counts. Most objects hold each word once, and then there is nothing to look up."""
    if len(counts) == 0 or counts.max() == 1:
        return np.ones(total, np.int32)
    taken_counts: NDArray[np.int32] = gather(counts, first, lengths)[1]
    return taken_counts


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
        some.counts[order],
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
