"""Matching objects against range subscriptions on posting lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import LEVELS, UNIVERSAL, Index
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import ROOT, cell_at, cell_key
from nearcast.kernels.program import all_held, satisfied
from nearcast.model.geometry import region_contains
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

# places in `counts`
NEXT, FOUND, EXAMINED, LOOKUPS, SCANNED = 0, 1, 2, 3, 4


@njit
def where_holds(ix: Index, slot: int, o: ObjectColumns, row: int) -> bool:
    """Whether the words of object `row` make the expression of `slot` true."""
    first = ix.slots.rows[slot, sl.BODY]
    length = ix.slots.half[slot, sl.PROGRAM]
    start, stop = o.word_offsets[row], o.word_offsets[row + 1]
    if ix.slots.half[slot, sl.FLAGS] & sl.CONJUNCTION:
        return all_held(ix.slots.heap, first, length, o.words, start, stop)
    return satisfied(ix.slots.heap, first, length, o.words, start, stop, ix.stack)


@njit
def _matches(ix: Index, space: int, slot: int, o: ObjectColumns, i: int, row: int) -> bool:
    s = ix.slots
    if not sl.sees(s, slot, i, o.time[row]):
        return False
    if not where_holds(ix, slot, o, row):
        return False
    half = s.half
    first = s.rows[slot, sl.BODY] + half[slot, sl.PROGRAM] + half[slot, sl.COVER]
    code = half[slot, sl.FLAGS] & sl.REGION_CODE
    data = s.reals[first : first + half[slot, sl.REGION]]
    return region_contains(space, code, data, o.x[row], o.y[row])


@njit
def _scan_list(
    ix: Index,
    space: int,
    key: np.uint64,
    o: ObjectColumns,
    i: int,
    stamp: int,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Append the matches of one list; False if `out` is full."""
    row = o.order[i]
    x, y = o.x[row], o.y[row]
    first, length = pl.entries(ix.lists, key)
    boxes = ix.lists.boxes
    counts[LOOKUPS] += 1
    counts[SCANNED] += length
    for e in range(first, first + length):
        if x < boxes[e, 1] or y < boxes[e, 2] or x > boxes[e, 3] or y > boxes[e, 4]:
            continue
        slot = ix.lists.pool[e, 0]
        counts[EXAMINED] += 1
        if ix.slots.half[slot, sl.STAMP] == stamp:
            continue
        if _matches(ix, space, slot, o, i, row):
            if counts[FOUND] == len(out):
                return False
            out[counts[FOUND], 0] = i
            out[counts[FOUND], 1] = slot
            counts[FOUND] += 1
            ix.slots.half[slot, sl.STAMP] = stamp
    return True


@njit
def _match_word(
    ix: Index,
    space: int,
    word: np.uint64,
    o: ObjectColumns,
    i: int,
    stamp: int,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    found = pl.find(ix.words, word)
    if found < 0:
        return True
    row = o.order[i]
    levels = ix.words[found, LEVELS]
    level = 0
    while levels != np.uint64(0):
        if levels & np.uint64(1):
            column, line = 0, 0
            if level != ROOT:
                column, line = cell_at(level, o.x[row]), cell_at(level, o.y[row])
            key = cell_key(word, level, column, line)
            if not _scan_list(ix, space, key, o, i, stamp, out, counts):
                return False
        levels >>= np.uint64(1)
        level += 1
    return True


@njit
def match_range(
    ix: Index, space: int, o: ObjectColumns, out: NDArray[np.int64], counts: NDArray[np.int64]
) -> bool:
    """Matches of the objects from number `counts[NEXT]` on: rows (object number, slot) of `out`.

    False if `out` is full; call again with a new one. Stamps keep what was found from being found
    twice, in another list or after such an interruption.
    """
    base = ix.slots.meta[sl.CLOCK]
    while counts[NEXT] < len(o.order):
        i = counts[NEXT]
        row = o.order[i]
        stamp = np.int32(base + i)
        if not _match_word(ix, space, UNIVERSAL, o, i, stamp, out, counts):
            return False
        for w in range(o.word_offsets[row], o.word_offsets[row + 1]):
            if not _match_word(ix, space, o.words[w], o, i, stamp, out, counts):
                return False
        counts[NEXT] = i + 1
    ix.slots.meta[sl.CLOCK] = base + len(o.order)
    return True
