"""Counts of words for many queries at once, each of which matches few rows of a slice.

`counting` is for one query: it uses tables where a region is large, and costs a call from Python
for each slice. Here a call does all queries of a slice, row by row, and another adds up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.objects.base import Queries, Regions
from nearcast.objects.curve.counting import Scratch
from nearcast.objects.curve.index import CurveIndex, count_codes, least_exceeded
from nearcast.objects.curve.within import matching_rows
from nearcast.objects.slices import Columns
from nearcast.objects.tree import outer_boxes_of, runs_in
from nearcast.objects.where import NONE, plan_of

__all__ = ["Counts", "add_up", "count_each", "joined_counts"]

_TWO = np.uint64(2)
_UNWANTED = -(1 << 60)

Longs = NDArray[np.int64]


class Counts(NamedTuple):
    """Words of each query in one slice, with their counts."""

    starts: Longs  # [queries + 1]
    words: NDArray[np.uint64]
    counts: NDArray[np.uint32]


@njit
def count_each(
    space: int,
    c: Columns,
    ix: CurveIndex,
    q: Queries,
    r: Regions,
    which: Longs,
    limits: Longs,
    scratch: Scratch,
    large: NDArray[np.bool_],
    least: int,
) -> tuple[Counts, int]:
    """Count the words of the rows that match each of some queries; and how many were examined.

    Queries of which `least` rows are inside for sure are better counted by tables: they are marked
    as `large`, and not counted any more.
    """
    starts = np.zeros(len(q.after) + 1, np.int64)
    words = np.empty(1024, np.uint64)
    counts = np.empty(1024, np.uint32)
    rows = np.empty(64, np.int64)
    top = examined = done = 0
    tables = len(ix.table_rest) > 0
    for i in which:
        while done <= i:
            starts[done] = top
            done += 1
        if large[i]:
            continue
        plan = plan_of(c, ix.list_starts, q, i, limits)
        if plan.sort == NONE:
            continue
        data = r.numbers[r.offsets[i] : r.offsets[i + 1]]
        code = r.code[i]
        runs, m = runs_in(space, ix.tree, len(c.at), code, data, outer_boxes_of(r, i))
        if tables and plan.covered and len(plan.tokens) == 0:
            inside = 0
            for run in range(m):
                inside += runs[run, 2] * (runs[run, 1] - runs[run, 0])
            if inside >= least:
                large[i] = True
                continue
        rows, n, seen = matching_rows(space, c, ix, q, i, plan, code, data, runs[:m], rows, 0)
        examined += seen
        held = 0
        for row in rows[:n]:
            first, last = int(c.starts[row]), int(c.starts[row + 1])
            held = count_codes(c.codes, first, last, scratch.counts, scratch.touched, held)
        if top + held > len(words):
            words, counts = _longer(words, counts, top, 2 * (top + held))
        for j in range(held):
            at = scratch.touched[j]
            words[top] = c.words[at]
            counts[top] = scratch.counts[at]
            scratch.counts[at] = 0
            top += 1
    while done < len(starts):
        starts[done] = top
        done += 1
    return Counts(starts, words[:top], counts[:top]), examined


@njit
def _longer(
    words: NDArray[np.uint64], counts: NDArray[np.uint32], used: int, size: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    more, most = np.empty(size, np.uint64), np.empty(size, np.uint32)
    more[:used] = words[:used]
    most[:used] = counts[:used]
    return more, most


def joined_counts(parts: list[Counts]) -> tuple[Longs, Counts]:
    """([slices, queries + 1] starts, all words and counts) of several slices."""
    first = np.cumsum([0, *(len(p.words) for p in parts[:-1])])
    starts = np.array([p.starts for p in parts]) + first[:, None]
    words, counts = (np.concatenate(c) for c in zip(*(p[1:] for p in parts), strict=True))
    return starts, Counts(starts[0], words, counts)


@njit
def add_up(
    starts: Longs, found: Counts, k: Longs, exclude_offsets: Longs, exclude: NDArray[np.uint64]
) -> tuple[Longs, NDArray[np.uint64], Longs]:
    """(offsets, words, sums) of the k highest sums of each query, with all ties of the k-th.

    k = 0: all. They come in no order.
    """
    queries = len(k)
    out_offsets = np.zeros(queries + 1, np.int64)
    out_words = np.empty(1024, np.uint64)
    out_sums = np.empty(1024, np.int64)
    table = np.zeros(1024, np.uint64)  # no hash of a word is 0
    sums = np.empty(1024, np.int64)
    used = np.empty(1024, np.int64)
    values = np.empty(1024, np.uint32)
    top = 0
    for i in range(queries):
        total = exclude_offsets[i + 1] - exclude_offsets[i]
        for s in range(len(starts)):
            total += starts[s, i + 1] - starts[s, i]
        size = 64
        while size < 2 * total:
            size *= 2
        if size > len(table):
            table, sums = np.zeros(size, np.uint64), np.empty(size, np.int64)
            used, values = np.empty(size, np.int64), np.empty(size, np.uint32)
        mask = np.uint64(size - 1)
        held = 0
        for j in range(exclude_offsets[i], exclude_offsets[i + 1]):
            held = _add(table, sums, used, mask, exclude[j], _UNWANTED, held)
        for s in range(len(starts)):
            for j in range(starts[s, i], starts[s, i + 1]):
                count = int(found.counts[j])
                held = _add(table, sums, used, mask, found.words[j], count, held)
        n = most = 0
        for j in range(held):
            value = sums[used[j]]
            if value > 0:
                values[n] = value
                most = max(most, value)
                n += 1
        least = 1
        if k[i] > 0:
            least = max(least, least_exceeded(values[:n], most, min(k[i], n) - 1))
        if top + n > len(out_words):
            out_words, out_sums = _longer_sums(out_words, out_sums, top, 2 * (top + n))
        for j in range(held):
            at = used[j]
            if sums[at] >= least:
                out_words[top] = table[at]
                out_sums[top] = sums[at]
                top += 1
            table[at] = 0
        out_offsets[i + 1] = top
    return out_offsets, out_words[:top], out_sums[:top]


@njit(lean=True, forceinline=True)
def _add(
    table: NDArray[np.uint64],
    sums: Longs,
    used: Longs,
    mask: np.uint64,
    word: np.uint64,
    count: int,
    held: int,
) -> int:
    """Add to the sum of a word; how many words there are then."""
    at = (word >> _TWO) & mask  # a hash already: its two lowest bits are a tag
    while table[at] != np.uint64(0) and table[at] != word:
        at = (at + np.uint64(1)) & mask
    if table[at] == np.uint64(0):
        table[at] = word
        sums[at] = 0
        used[held] = np.int64(at)
        held += 1
    sums[at] += count
    return held


@njit
def _longer_sums(
    words: NDArray[np.uint64], sums: Longs, used: int, size: int
) -> tuple[NDArray[np.uint64], Longs]:
    more, most = np.empty(size, np.uint64), np.empty(size, np.int64)
    more[:used] = words[:used]
    most[:used] = sums[:used]
    return more, most
