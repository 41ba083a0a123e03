"""Hanging subscriptions on posting lists: under which words, and in which cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import ROOT, cell_at, cell_key, level_of
from nearcast.kernels.postings import Postings
from nearcast.kernels.slots import Slots
from nearcast.model.jit import njit

UNIVERSAL = np.uint64(3)  # stands for a word where any object may match; no word has this hash
# columns of the word table
LEVELS, SEEN = 1, 2


class Index(NamedTuple):
    """A table of subscriptions and the lists that lead to them."""

    slots: Slots
    lists: Postings
    words: NDArray[np.uint64]  # [2ⁿ, 3]: word, bits of the levels it has lists at, times it is used
    meta: NDArray[np.int64]  # [3]: words in the table, subscriptions posted, bits of levels in use
    stack: NDArray[np.uint8]  # scratch for programs


@njit
def _word_row(ix: Index, word: np.uint64) -> int:
    row = pl.find(ix.words, word)
    if row < 0:
        row = -1 - row
        ix.words[row, 0] = word
        ix.meta[0] += 1
    return row


@njit
def _rarest(ix: Index, first: int, length: int) -> np.uint64:
    """The word of a conjunction that subscriptions used least so far.

    Words are used by subscriptions about as they are by objects (PS2Stream section VI, DkM-SKS
    section 5.1), so no statistics of objects are needed, and they adapt by themselves.
    """
    best = ix.slots.heap[first]
    fewest = np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(first, first + length):
        row = _word_row(ix, ix.slots.heap[i])
        ix.words[row, SEEN] += np.uint64(1)
        if ix.words[row, SEEN] < fewest:
            fewest = ix.words[row, SEEN]
            best = ix.slots.heap[i]
    return best


@njit
def _outward(box: NDArray[np.float32], a: float, b: float, c: float, d: float) -> None:
    """Round (minx, miny, maxx, maxy) outwards to float32: a filter may only over-report."""
    inf = np.float32(np.inf)
    box[0] = np.float32(a)
    box[1] = np.float32(b)
    box[2] = np.float32(c)
    box[3] = np.float32(d)
    for i in range(2):
        box[i] = np.nextafter(box[i], -inf)
        box[i + 2] = np.nextafter(box[i + 2], inf)


@njit
def _post_box(
    ix: Index, word: np.uint64, slot: int, first: int, cells: bool, box: NDArray[np.float32]
) -> bool:
    """Hang `slot` under `word` in the cells of the box at `reals[first]`."""
    r = ix.slots.reals
    a, b, c, d = r[first], r[first + 1], r[first + 2], r[first + 3]
    _outward(box, a, b, c, d)
    level = level_of(c - a, d - b) if cells else ROOT
    row = _word_row(ix, word)
    ix.words[row, LEVELS] |= np.uint64(1) << np.uint64(level)
    ix.meta[2] |= np.int64(1) << level
    for column in range(cell_at(level, a), cell_at(level, c) + 1):
        for line in range(cell_at(level, b), cell_at(level, d) + 1):
            if not pl.add(ix.lists, cell_key(word, level, column, line), slot, box):
                return False
    return True


@njit
def _post_word(
    ix: Index, word: np.uint64, slot: int, spatial: bool, cells: bool, box: NDArray[np.float32]
) -> bool:
    half = ix.slots.half
    first = ix.slots.rows[slot, sl.BODY] + half[slot, sl.PROGRAM] + half[slot, sl.COVER]
    if not spatial:
        _outward(box, -np.inf, -np.inf, np.inf, np.inf)
        row = _word_row(ix, word)
        ix.words[row, LEVELS] |= np.uint64(1) << np.uint64(ROOT)
        ix.meta[2] |= np.int64(1) << ROOT
        return pl.add(ix.lists, cell_key(word, ROOT, 0, 0), slot, box)
    boxes = (half[slot, sl.FLAGS] >> sl.BOXES_SHIFT) & sl.BOXES_MASK
    if boxes == 0:
        return _post_box(ix, word, slot, first, cells, box)
    first += half[slot, sl.REGION]
    for i in range(boxes):
        if not _post_box(ix, word, slot, first + 4 * i, cells, box):
            return False
    return True


@njit
def _fits(ix: Index, slot: int) -> bool:
    """Whether the tables have room for all keys and words of `slot`."""
    words = max(ix.slots.half[slot, sl.COVER], 1) + ix.slots.half[slot, sl.PROGRAM]
    keys = max(ix.slots.half[slot, sl.COVER], 1) * 16
    if (ix.meta[0] + words) * 10 > len(ix.words) * 7:
        return False
    return (ix.lists.meta[pl.KEYS] + keys) * 10 <= len(ix.lists.table) * 8


@njit
def post(ix: Index, spatial: bool, cells: bool) -> bool:
    """Post every subscription not posted yet; False if an array must grow first.

    One that was posted in part is posted again: a repeated entry costs time, never truth.
    """
    box = np.empty(4, np.float32)
    half = ix.slots.half
    while ix.meta[1] < ix.slots.meta[sl.COUNT]:
        slot = ix.meta[1]
        if not _fits(ix, slot):
            return False
        body = ix.slots.rows[slot, sl.BODY]
        length = half[slot, sl.PROGRAM]
        cover = half[slot, sl.COVER]
        if cover > 0:
            for i in range(body + length, body + length + cover):
                if not _post_word(ix, ix.slots.heap[i], slot, spatial, cells, box):
                    return False
        else:
            word = UNIVERSAL
            if length > 0 and half[slot, sl.FLAGS] & sl.CONJUNCTION:
                word = _rarest(ix, body, length)
            if not _post_word(ix, word, slot, spatial, cells, box):
                return False
        ix.meta[1] = slot + 1
    return True
