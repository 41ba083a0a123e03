"""Posting subscriptions on lists: under which words, and in which cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import cell_at, cell_key
from nearcast.kernels.postings import Postings
from nearcast.kernels.slots import Slots
from nearcast.model.jit import njit

UNIVERSAL = np.uint64(3)  # stands for a word where any object may match; no word has this hash
# columns of the word table
LEVELS, SEEN, ORDINAL = 1, 2, 3
WORD_ROW = 4  # columns
# places in `meta`
WORDS = 0  # words in the table
POSTED = 1  # subscriptions posted
USED = 2  # bits of the levels in use
GRID = 3  # 1 + the level of a grid with cells of one size, or near which levels lie; 0: none yet
CHANGED = 4  # results that changed since the rectangles of groups were made anew
DIVIDED = 5  # subscriptions there were when they were divided into groups; 0: not divided yet
CHOSEN = 6  # subscriptions there were when GRID was chosen
USUAL = 7  # matches of 64 objects, of late
ROUNDED = 8  # entries that say they are circles (`index.regions.lists`)
META = 9

CELLS = 16  # at most, for a region of at most four boxes


class Index(NamedTuple):
    """A table of subscriptions and the lists that lead to them."""

    slots: Slots
    lists: Postings
    words: NDArray[np.uint64]  # [2ⁿ, 4]: word, bits of the levels it has lists at, times it is
    # used, and its number: the words before it
    meta: NDArray[np.int64]  # [META]
    stack: NDArray[np.uint8]  # scratch for programs


@njit(lean=True)
def word_row(ix: Index, word: np.uint64) -> int:
    """Row of a word, which is put into the table if it is new."""
    row = pl.find(ix.words, word)
    if row < 0:
        row = -1 - row
        ix.words[row, 0] = word
        ix.words[row, ORDINAL] = np.uint64(ix.meta[WORDS])
        ix.meta[WORDS] += 1
    return row


@njit(lean=True)
def _rarest(ix: Index, first: int, length: int) -> int:
    """Where in the heap the word of a conjunction stands that subscriptions used least so far.

    Words are used by subscriptions about as they are by objects (PS2Stream section VI, DkM-SKS
    section 5.1), so no statistics of objects are needed, and they adapt by themselves.
    """
    best = first
    fewest = np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(first, first + length):
        row = pl.find(ix.words, ix.slots.heap[i])
        seen = ix.words[row, SEEN] if row >= 0 else np.uint64(0)
        if seen < fewest:
            fewest = seen
            best = i
    return best


@njit(lean=True)
def posting_words(ix: Index, slot: int) -> tuple[int, int]:
    """(first, number) of the words in the heap `slot` is posted under; first -1: UNIVERSAL."""
    half = ix.slots.half
    body = ix.slots.rows[slot, sl.BODY]
    length = half[slot, sl.PROGRAM]
    cover = half[slot, sl.COVER]
    if cover > 0:
        return body + length, np.int64(cover)
    if length > 0 and half[slot, sl.FLAGS] & sl.CONJUNCTION:
        return _rarest(ix, body, length), 1
    return -1, 1


@njit(lean=True)
def use_words(ix: Index, slot: int) -> None:
    """Note that a conjunction uses its words.

    Once per subscription, and only when it is posted everywhere: one that is posted again, as its
    lists had to grow, must find the same word the rarest.
    """
    half = ix.slots.half
    if half[slot, sl.COVER] == 0 and half[slot, sl.FLAGS] & sl.CONJUNCTION:
        first = ix.slots.rows[slot, sl.BODY]
        for i in range(first, first + half[slot, sl.PROGRAM]):
            ix.words[word_row(ix, ix.slots.heap[i]), SEEN] += np.uint64(1)


@njit(lean=True)
def outward(box: NDArray[np.float32], a: float, b: float, c: float, d: float) -> None:
    """Round (minx, miny, maxx, maxy) outwards to float32: a filter may only over-report."""
    inf = np.float32(np.inf)
    box[0] = np.float32(a)
    box[1] = np.float32(b)
    box[2] = np.float32(c)
    box[3] = np.float32(d)
    for i in range(2):
        box[i] = np.nextafter(box[i], -inf)
        box[i + 2] = np.nextafter(box[i + 2], inf)


@njit(lean=True)
def post_in_cells(
    ix: Index,
    word: np.uint64,
    slot: int,
    level: int,
    a: float,
    b: float,
    c: float,
    d: float,
    box: NDArray[np.float32],
) -> bool:
    """Post `slot`, with `box` in its entries, in the cells of `level` that (a, b, c, d) touches."""
    row = word_row(ix, word)
    ix.words[row, LEVELS] |= np.uint64(1) << np.uint64(level)
    ix.meta[USED] |= np.int64(1) << level
    for column in range(cell_at(level, a), cell_at(level, c) + 1):
        for line in range(cell_at(level, b), cell_at(level, d) + 1):
            if pl.add(ix.lists, cell_key(word, level, column, line), slot, box) < 0:
                return False
    return True


@njit(lean=True)
def boxes_of(ix: Index, slot: int) -> tuple[int, int]:
    """(first, number) of the outward boxes of the region of `slot`, in the heap, four each."""
    half = ix.slots.half
    first = ix.slots.rows[slot, sl.BODY] + half[slot, sl.PROGRAM] + half[slot, sl.COVER]
    boxes = (half[slot, sl.FLAGS] >> sl.BOXES_SHIFT) & sl.BOXES_MASK
    if boxes > 0:
        first += half[slot, sl.REGION]
    return first, max(np.int64(boxes), 1)


@njit(lean=True)
def fits(ix: Index, slot: int, cells: int) -> bool:
    """Whether the tables have room for all words of `slot`, each in so many cells."""
    words = max(ix.slots.half[slot, sl.COVER], 1) + ix.slots.half[slot, sl.PROGRAM]
    keys = max(ix.slots.half[slot, sl.COVER], 1) * cells
    if (ix.meta[WORDS] + words) * 10 > len(ix.words) * 7:
        return False
    return (ix.lists.meta[pl.KEYS] + keys) * 10 <= len(ix.lists.table) * 8
