"""How many rows hold each word: by rows where few match, by tables where a region is large.

A *tally* is what one slice says for one query: counts of some words, and a bound on what the
counts leave out (`rest`). Over all slices, a word that no tally names has at most the sum of the
bounds. If the k-th count is above that sum, only words near it are open, and these are decided
exactly (`settle`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.objects.base import Queries, Regions
from nearcast.objects.curve.index import CurveIndex, count_codes, least_exceeded, take_counts
from nearcast.objects.curve.within import first_from, matching_rows
from nearcast.objects.slices import Columns
from nearcast.objects.tree import node_rows, outer_boxes_of, runs_in, span_of
from nearcast.objects.where import NONE, code_of, plan_of

__all__ = ["Scratch", "Tally", "added_up", "settle", "tally"]

_SIEVE = (1 << 14) - 1

Longs = NDArray[np.int64]


class Scratch(NamedTuple):
    """Arrays as long as the dictionary; `counts` is zero between uses."""

    counts: NDArray[np.uint32]
    touched: NDArray[np.uint32]


class Tally(NamedTuple):
    """Counts of one query in one slice."""

    codes: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    named: int  # counts above this one are in the sum
    rest: int  # no word has more than its count (or `named`) and this
    nodes: Longs  # [m, 2]: level and node of tables that were used
    examined: int


@njit
def tally(
    space: int,
    c: Columns,
    ix: CurveIndex,
    q: Queries,
    r: Regions,
    i: int,
    limits: Longs,
    room: int,
    scratch: Scratch,
) -> Tally:
    """Count the words of rows that match query `i`; about `room` of them go into the sum.

    Without room, all do, tables are not used, and nothing is left open.
    """
    plan = plan_of(c, ix.list_starts, q, i, limits)
    nodes = np.empty((16, 2), np.int64)
    if plan.sort == NONE:
        none = np.empty(0, np.uint32)
        return Tally(none, none, 0, 0, nodes[:0], 0)
    data = r.numbers[r.offsets[i] : r.offsets[i + 1]]
    code = r.code[i]
    runs, m = runs_in(space, ix.tree, len(c.at), code, data, outer_boxes_of(r, i))
    whole = plan.covered and len(plan.tokens) == 0  # all rows of a run that is inside match
    held = used = rest = examined = kept = 0
    top = len(ix.tree.firsts) - 2 if len(ix.table_rest) else 0  # the highest level with tables
    for run in range(m):
        first, last, inside = runs[run]
        if not (inside and whole):
            runs[kept] = runs[run]
            kept += 1
        elif room == 0:
            held = _count_rows(c, first, last, scratch, held)
            examined += last - first
        else:
            while first < last:
                level, end = _largest(first, last, len(c.at), top)
                if level == 0:
                    held = _count_rows(c, first, end, scratch, held)
                    examined += end - first
                else:
                    nodes = _with_room(nodes, used)
                    nodes[used, 0] = level
                    nodes[used, 1] = first // span_of(level)
                    held, left = _add_table(ix, nodes[used], scratch, held)
                    rest += left
                    used += 1
                first = end
    rows, n, seen = matching_rows(
        space, c, ix, q, i, plan, code, data, runs[:kept], np.empty(64, np.int64), 0
    )
    for row in rows[:n]:
        held = _count_rows(c, row, row + 1, scratch, held)
    codes = scratch.touched[:held].copy()
    counts = np.empty(held, np.uint32)
    most = take_counts(scratch.counts, codes, held, counts)
    named = least_exceeded(counts, most, room) if room else 0
    return Tally(codes, counts, named, rest, nodes[:used].copy(), examined + seen)


@njit(lean=True)
def _count_rows(c: Columns, first: int, last: int, scratch: Scratch, held: int) -> int:
    start, stop = np.int64(c.starts[first]), np.int64(c.starts[last])
    return count_codes(c.codes, start, stop, scratch.counts, scratch.touched, held)


@njit(lean=True)
def _largest(first: int, last: int, n: int, top: int) -> tuple[int, int]:
    """The highest level of a node that begins at a row and ends by `last`, and its end.

    Level 0: there is none with a table; up to the end, rows must be counted. No level above `top`.
    """
    level = 0
    end = min(last, (first // span_of(1) + 1) * span_of(1))
    while level < top and first % span_of(level + 1) == 0:
        reach = min(first + span_of(level + 1), n)
        if reach > last:
            break
        level += 1
        end = reach
    return level, end


@njit
def _with_room(nodes: Longs, used: int) -> Longs:
    if used < len(nodes):
        return nodes
    more = np.empty((2 * used, 2), np.int64)
    more[:used] = nodes
    return more


@njit(lean=True)
def _table_of(ix: CurveIndex, node: Longs) -> int:
    return ix.tree.firsts[node[0]] - ix.tree.firsts[1] + node[1]


@njit(lean=True)
def _add_table(ix: CurveIndex, node: Longs, s: Scratch, held: int) -> tuple[int, int]:
    """Add the table of a node: (words touched, the bound on what it leaves out)."""
    table = _table_of(ix, node)
    for at in range(ix.table_starts[table], ix.table_starts[table + 1]):
        code = ix.table_codes[at]
        if s.counts[code] == 0:
            s.touched[held] = code
            held += 1
        s.counts[code] += ix.table_counts[at]
    return held, np.int64(ix.table_rest[table])


@njit
def added_up(
    words: NDArray[np.uint64], counts: NDArray[np.uint32]
) -> tuple[NDArray[np.uint64], Longs]:
    """(each word once, the sum of its counts), in no order."""
    size = 64
    while size < 2 * len(words):
        size *= 2
    table = np.zeros(size, np.uint64)  # no hash of a word is 0
    number = np.empty(size, np.int64)
    distinct = np.empty(len(words), np.uint64)
    sums = np.zeros(len(words), np.int64)
    n = 0
    mask = np.uint64(size - 1)
    for i in range(len(words)):
        at = (words[i] >> np.uint64(2)) & mask  # a hash already: its two lowest bits are a tag
        while table[at] != np.uint64(0) and table[at] != words[i]:
            at = (at + np.uint64(1)) & mask
        if table[at] == np.uint64(0):
            table[at] = words[i]
            number[at] = n
            distinct[n] = words[i]
            n += 1
        sums[number[at]] += np.int64(counts[i])
    return distinct[:n].copy(), sums[:n].copy()


@njit
def settle(c: Columns, ix: CurveIndex, t: Tally, words: NDArray[np.uint64], s: Scratch) -> Longs:
    """The exact counts of `words` in the slice and query of a tally."""
    out = np.zeros(len(words), np.int64)
    codes = np.empty(len(words), np.int64)
    # A small array that stays in the cache says of most codes that they are not wanted.
    wanted = np.zeros(_SIEVE + 1, np.bool_)
    for j in range(len(words)):
        codes[j] = code_of(c.words, words[j])
        if codes[j] >= 0:
            s.counts[codes[j]] = j + 1
            wanted[codes[j] & _SIEVE] = True
    for at in range(len(t.codes)):
        if wanted[t.codes[at] & _SIEVE]:
            j = np.int64(s.counts[t.codes[at]])
            if j:
                out[j - 1] += t.counts[at]
    seen = np.full(len(words), -1, np.int64)
    for number in range(len(t.nodes)):
        table = _table_of(ix, t.nodes[number])
        for at in range(ix.table_starts[table], ix.table_starts[table + 1]):
            if wanted[ix.table_codes[at] & _SIEVE]:
                j = np.int64(s.counts[ix.table_codes[at]])
                if j:
                    seen[j - 1] = number
        first, last = node_rows(t.nodes[number, 0], t.nodes[number, 1], len(c.at))
        for j in range(len(words)):
            if codes[j] >= 0 and seen[j] != number:
                out[j] += _held_in(ix, codes[j], first, last)
    for j in range(len(words)):
        if codes[j] >= 0:
            s.counts[codes[j]] = 0
    return out


@njit(lean=True)
def _held_in(ix: CurveIndex, code: int, first: int, last: int) -> int:
    """How many rows of a run hold a word."""
    lo, hi = np.int64(ix.list_starts[code]), np.int64(ix.list_starts[code + 1])
    at = first_from(ix.lists, lo, hi, first)
    return first_from(ix.lists, at, hi, last) - at
