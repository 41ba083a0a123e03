"""The index of a slice: a tree over its rows, one list of rows per word, tables of words per node.

Rows are in the order of a Hilbert curve, and so is every list. So the rows of a node that hold a
word are one run of the word's list, and how many there are is the difference of two places in it.
A table holds the most frequent words of a node with their counts, and above which count it has
all of them: the counts of a large region are then the sum of a few tables, and what these leave
open is decided by lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.prefetch import prefetch
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.objects.blob import Part
from nearcast.objects.coded import Coded
from nearcast.objects.tree import Tree, build_tree, node_rows

__all__ = [
    "PARTS",
    "CurveIndex",
    "attach_index",
    "build_index",
    "count_codes",
    "least_exceeded",
    "take_counts",
]

_TABLE = 128  # words of the table of a node of level 1, four times as many in each level above
_LARGEST_TABLE = 8192
_AHEAD = 12  # words from prefetching memory to reading it

PARTS = (
    Part(np.float64, 4), Part(np.int64), Part(np.uint32), Part(np.uint32), Part(np.int64),
    Part(np.uint32), Part(np.uint32), Part(np.uint32),
)  # fmt: skip


class CurveIndex(NamedTuple):
    """What kernels search."""

    tree: Tree
    list_starts: NDArray[np.uint32]  # [words + 1]
    lists: NDArray[np.uint32]  # rows that hold the word, ascending
    table_starts: NDArray[np.int64]  # [nodes - leaves + 1]; leaves have no table
    table_codes: NDArray[np.uint32]
    table_counts: NDArray[np.uint32]
    table_rest: NDArray[np.uint32]  # [nodes - leaves]: words not in the table have no higher count


def attach_index(arrays: list[NDArray[np.generic]]) -> CurveIndex:
    """The index from its PARTS."""
    boxes, firsts, *others = arrays
    return CurveIndex(Tree(boxes, firsts), *others)


def build_index(rows: Coded, with_tables: bool) -> tuple[NDArray[np.generic], ...]:
    """The PARTS of objects that are in the order of the curve.

    Tables take a third of the time. A small slice that will soon be merged does without: its rows
    are counted one by one.
    """
    boxes, firsts = build_tree(frozen(rows.at))
    starts, codes = frozen(rows.starts), frozen(rows.codes)
    list_starts, lists = _lists(starts, codes, len(rows.words))
    tables = _tables(starts, codes, len(rows.words), firsts if with_tables else firsts[:2])
    return boxes, firsts, list_starts, lists, *tables


@njit
def _lists(
    starts: NDArray[np.int64], codes: NDArray[np.uint32], words: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The rows that hold each word."""
    ends = np.zeros(words + 1, np.uint32)
    for code in codes:
        ends[code + 1] += np.uint32(1)
    for word in range(words):
        ends[word + 1] += ends[word]
    lists = np.empty(len(codes), np.uint32)
    at = ends[:-1].copy()
    for row in range(len(starts) - 1):
        for i in range(starts[row], starts[row + 1]):
            if i + 2 * _AHEAD < len(codes):
                prefetch(at, np.int64(codes[i + 2 * _AHEAD]))
                prefetch(lists, np.int64(at[codes[i + _AHEAD]]))
            code = codes[i]
            lists[at[code]] = row
            at[code] += np.uint32(1)
    return ends, lists


@njit
def _tables(
    starts: NDArray[np.int64], codes: NDArray[np.uint32], words: int, firsts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """The tables of all nodes but leaves."""
    n = len(starts) - 1
    leaves = firsts[1]
    nodes = firsts[-1] - leaves  # none if only the leaves are given
    table_starts = np.zeros(nodes + 1, np.int64)
    rest = np.zeros(nodes, np.uint32)
    out_codes = np.empty(1024, np.uint32)
    out_counts = np.empty(1024, np.uint32)
    counts = np.zeros(words, np.uint32)
    touched = np.empty(words, np.uint32)
    taken = np.empty(words, np.uint32)
    m = 0
    room = _TABLE // 4
    for level in range(1, len(firsts) - 1):
        room = min(room * 4, _LARGEST_TABLE)
        for node in range(firsts[level + 1] - firsts[level]):
            first, last = node_rows(level, node, n)
            held = count_codes(codes, starts[first], starts[last], counts, touched, 0)
            most = take_counts(counts, touched, held, taken)
            least = least_exceeded(taken[:held], most, room)
            if m + room > len(out_codes):
                out_codes, out_counts = _grown(out_codes, m), _grown(out_counts, m)
            for i in range(held):
                if taken[i] > least:
                    out_codes[m] = touched[i]
                    out_counts[m] = taken[i]
                    m += 1
            at = firsts[level] - leaves + node
            rest[at] = least
            table_starts[at + 1] = m
    return table_starts, out_codes[:m].copy(), out_counts[:m].copy(), rest


@njit
def _grown(array: NDArray[np.uint32], used: int) -> NDArray[np.uint32]:
    more = np.empty(2 * len(array) + _LARGEST_TABLE, np.uint32)
    more[:used] = array[:used]
    return more


@njit(lean=True)
def count_codes(
    codes: NDArray[np.uint32],
    first: int,
    last: int,
    counts: NDArray[np.uint32],
    touched: NDArray[np.uint32],
    held: int,
) -> int:
    """Count `codes[first:last]`; words with a count are `touched[:held]`. The new `held`."""
    for i in range(first, last):
        if i + _AHEAD < len(codes):
            prefetch(counts, np.int64(codes[i + _AHEAD]))
        code = codes[i]
        if counts[code] == 0:
            touched[held] = code
            held += 1
        counts[code] += np.uint32(1)
    return held


@njit(lean=True)
def take_counts(
    counts: NDArray[np.uint32], touched: NDArray[np.uint32], held: int, out: NDArray[np.uint32]
) -> int:
    """Move the counts of touched words to `out`, and make them zero; the highest of them."""
    most = 0
    for i in range(held):
        if i + _AHEAD < held:
            prefetch(counts, np.int64(touched[i + _AHEAD]))
        out[i] = counts[touched[i]]
        counts[touched[i]] = 0
        most = max(most, np.int64(out[i]))
    return most


@njit
def least_exceeded(counts: NDArray[np.uint32], most: int, room: int) -> int:
    """The least count that at most `room` of the counts exceed; none is above `most`."""
    if len(counts) <= room:
        return 0
    words = np.zeros(most + 1, np.int64)  # with each count
    for count in counts:
        words[count] += 1
    above = 0
    at = most
    while at > 0 and above + words[at] <= room:
        above += words[at]
        at -= 1
    return at
