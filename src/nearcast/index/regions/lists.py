"""Regions on posting lists whose entries decide most matches by themselves.

An entry carries the box as float32 numbers, rounded to the nearest, and up to two further words.
Rounding keeps order: a position whose rounded coordinates lie strictly within the rounded box lies
within the box, and one whose rounded coordinates lie outside lies outside. A circle is known by its
box: what lies well within it or well outside is decided by that (`kernels.rings`). The subscription
itself is read only for a position on the rounded edge, a polygon, a longer expression, and a
subscription that ends or has only begun.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import (
    CHOSEN,
    GRID,
    LEVELS,
    ORDINAL,
    POSTED,
    ROUNDED,
    UNIVERSAL,
    USED,
    Index,
    boxes_of,
    fits,
    posting_words,
    use_words,
    word_row,
)
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import cell_hash
from nearcast.kernels.squares import column_of
from nearcast.model.jit import njit
from nearcast.model.shapes import BBOX, CIRCLE

# columns of an entry, after those of `kernels.postings`: numbers of words that an object must have
# besides the one that led to it; or must not have, because that word's list leads it here too
OTHER = pl.ENTRY
WIDTH = pl.ENTRY + 2
NONE = -1  # no such word
DECIDES = -2  # in the first of them: only the subscription itself decides
MANY = -3  # in the second, behind NONE: an object may meet the subscription on several lists
NOT = -16  # NOT - n: not word n
# This bit of the second is turned over where the box is that of a circle; no number comes near it.
ROUND_SHIFT = 30

_FINEST = -22  # level n has cells with sides of 2^(n + _FINEST)
ROOT = 63  # one cell for everything
_STEP = 4  # one of so many levels is used
_REACH = 2.0  # a box is at most so many times as long as its cells
CELLS = 64  # at most, for a region of at most four boxes
_AGAIN = 4  # when there are so many times as many subscriptions, cells are chosen again
_SAMPLE = 4096  # boxes looked at for that
_AHEAD = 4  # subscriptions from prefetching memory to reading it


@njit(lean=True)
def _level(side: float) -> int:
    """The finest level whose cells are at least `side` long."""
    if not side < np.inf:
        return ROOT
    half, exponent = math.frexp(side)  # side = half · 2^exponent, half in [0.5, 1)
    return min(max(exponent - _FINEST - (half == 0.5), 0), ROOT)


@njit(lean=True)
def level_of(grid: int, width: float, height: float) -> int:
    """The level for a box, of those that are a multiple of _STEP away from `grid`.

    It then touches one to nine of the cells, which are from half to eight times as long as it is;
    sixteen, if its sides came out shorter by rounding.
    """
    level = _level(max(width, height) / _REACH)
    return min(level + (grid - level) % _STEP, ROOT)


@njit
def middle_level(ix: Index) -> int:
    """The level whose cells are as long as the middle one of the boxes, or a little longer."""
    count = ix.slots.meta[sl.COUNT]
    tally = np.zeros(ROOT + 1, np.int64)
    total = 0
    r = ix.slots.reals
    for slot in range(0, count, max(count // _SAMPLE, 1)):
        first, boxes = boxes_of(ix, slot)
        for b in range(first, first + 4 * boxes, 4):
            tally[_level(max(r[b + 2] - r[b], r[b + 3] - r[b + 1]))] += 1
            total += 1
    level = 0
    below = tally[0]
    while 2 * below < total:
        level += 1
        below += tally[level]
    return level


@njit
def choose_cells(ix: Index) -> None:
    """Choose the levels by the present boxes. Nothing may be posted yet."""
    ix.meta[GRID] = 1 + middle_level(ix)
    ix.meta[CHOSEN] = ix.slots.meta[sl.COUNT]


@njit
def other_cells(ix: Index) -> bool:
    """Whether other levels would suit the boxes there are now; looked at rarely."""
    count = ix.slots.meta[sl.COUNT]
    if count == 0 or (ix.meta[GRID] > 0 and count < _AGAIN * ix.meta[CHOSEN]):
        return False
    if ix.meta[GRID] > 0:
        ix.meta[CHOSEN] = count
    return bool((1 + middle_level(ix) - ix.meta[GRID]) % _STEP != 0 or ix.meta[GRID] == 0)


@njit(lean=True)
def cell_of(level: int, x: float, y: float) -> np.uint64:
    """Hash of the cell of a position."""
    if level == ROOT:
        return cell_hash(level, 0, 0)
    return cell_hash(level, column_of(level + _FINEST, x), column_of(level + _FINEST, y))


@njit(lean=True, forceinline=True)
def key_of(cell: np.uint64, word: np.uint64) -> np.uint64:
    """Key of a word in a cell: two hashes whose bits are spread need no more mixing."""
    key = cell ^ word
    return key if key != np.uint64(0) else np.uint64(1)


@njit(lean=True, forceinline=True)
def is_round(second: int) -> int:
    """1 where the second of the further words says that the box is that of a circle, else 0."""
    return ((second >> ROUND_SHIFT) ^ (second >> (ROUND_SHIFT + 1))) & 1


@njit(lean=True)
def others(ix: Index, slot: int, place: int) -> tuple[int, int]:
    """The further words of `slot`, which is posted under the word at `place` of the heap."""
    s = ix.slots
    flags = s.half[slot, sl.FLAGS]
    boxes = (flags >> sl.BOXES_SHIFT) & sl.BOXES_MASK
    if flags & sl.REGION_CODE == CIRCLE and boxes == 1:
        first, second = _other_words(ix, slot, place)
        return first, second if first == DECIDES else second ^ (1 << ROUND_SHIFT)
    if flags & sl.REGION_CODE != BBOX or boxes:
        return DECIDES, DECIDES
    return _other_words(ix, slot, place)


@njit(lean=True)
def _other_words(ix: Index, slot: int, place: int) -> tuple[int, int]:
    """What `others` says of a region whose box says enough of it."""
    s = ix.slots
    flags = s.half[slot, sl.FLAGS]
    length = np.int64(s.half[slot, sl.PROGRAM])
    first, second = np.int64(NONE), np.int64(NONE)
    body = s.rows[slot, sl.BODY]
    if flags & sl.PROVED or length == 0:
        if s.half[slot, sl.COVER] > 1:  # of an OR's words, the first that an object has leads here
            if s.half[slot, sl.COVER] > 3:  # then all of its lists must say so
                return NONE, MANY
            for i in range(body + length, place):
                row = word_row(ix, s.heap[i])
                first, second = np.int64(NOT) - np.int64(ix.words[row, ORDINAL]), first
        return int(first), int(second)
    if s.half[slot, sl.COVER] > 0 or not flags & sl.CONJUNCTION or length > 3:
        return DECIDES, DECIDES
    for i in range(body, body + length):
        if i != place:
            first, second = np.int64(ix.words[word_row(ix, s.heap[i]), ORDINAL]), first
    return int(first), int(second)


@njit(lean=True)
def _span(ix: Index, level: int, b: int) -> tuple[int, int, int, int]:
    """(first column, first line, last column, last line) of the cells of the box at `b`."""
    if level == ROOT:
        return 0, 0, 0, 0
    r, side = ix.slots.reals, level + _FINEST
    return (
        column_of(side, r[b]),
        column_of(side, r[b + 1]),
        column_of(side, r[b + 2]),
        column_of(side, r[b + 3]),
    )


@njit(lean=True)
def _fetch_words(ix: Index, slot: int) -> None:
    """Prefetch the words of `slot`, which is posted soon."""
    first = ix.slots.rows[slot, sl.BODY]
    words = ix.slots.half[slot, sl.PROGRAM] + ix.slots.half[slot, sl.COVER]
    for i in range(first, first + words):
        pl.fetch_row(ix.words, ix.slots.heap[i])


@njit(lean=True)
def _fetch_lists(ix: Index, slot: int, grid: int, cells: bool, rows: bool) -> None:
    """Prefetch the rows of the lists that `slot` will be posted on, or the ends of those lists."""
    p, r = ix.lists, ix.slots.reals
    first_box, boxes = boxes_of(ix, slot)
    first, words = posting_words(ix, slot)
    for i in range(first, first + words):
        word = ix.slots.heap[i] if i >= 0 else UNIVERSAL
        for b in range(first_box, first_box + 4 * boxes, 4):
            level = level_of(grid, r[b + 2] - r[b], r[b + 3] - r[b + 1]) if cells else ROOT
            left, low, right, high = _span(ix, level, b)
            for column in range(left, right + 1):
                for line in range(low, high + 1):
                    key = key_of(cell_hash(level, column, line), word)
                    if rows:
                        pl.fetch_row(p.table, key)
                        pl.fetch_mark(p, key)
                    else:
                        pl.fetch_end(p, key)


@njit(lean=True)
def _post_in_cells(
    ix: Index,
    word: np.uint64,
    slot: int,
    level: int,
    b: int,
    box: NDArray[np.float32],
    place: int,
    again: bool,
) -> bool:
    """Post `slot` in the cells of `level` that its box at `b` touches; False: no room.

    `again`: it may be there already.
    """
    row = word_row(ix, word)
    ix.words[row, LEVELS] |= np.uint64(1) << np.uint64(level)
    ix.meta[USED] |= np.int64(1) << level
    first, second = others(ix, slot, place)
    ix.meta[ROUNDED] += is_round(second)
    left, low, right, high = _span(ix, level, b)
    for column in range(left, right + 1):
        for line in range(low, high + 1):
            key = key_of(cell_hash(level, column, line), word)
            if again and pl.ends_with(ix.lists, key, slot, box):
                continue
            entry = pl.add(ix.lists, key, slot, box)
            if entry < 0:
                return False
            ix.lists.pool[entry, OTHER] = first
            ix.lists.pool[entry, OTHER + 1] = second
    return True


@njit
def post_regions(ix: Index, cells: bool) -> bool:
    """Post every subscription not posted yet; False if an array must grow first.

    The first one may have been posted in part when it was tried before.
    """
    tried = ix.meta[POSTED]
    box = np.empty(4, np.float32)
    grid = ix.meta[GRID] - 1
    r = ix.slots.reals
    while ix.meta[POSTED] < ix.slots.meta[sl.COUNT]:
        slot = ix.meta[POSTED]
        if not fits(ix, slot, CELLS):
            return False
        left = ix.slots.meta[sl.COUNT] - slot
        if left > 3 * _AHEAD:
            _fetch_words(ix, slot + 3 * _AHEAD)
        if left > 2 * _AHEAD:
            _fetch_lists(ix, slot + 2 * _AHEAD, grid, cells, True)
        if left > _AHEAD:
            _fetch_lists(ix, slot + _AHEAD, grid, cells, False)
        first_box, boxes = boxes_of(ix, slot)
        first, words = posting_words(ix, slot)
        for i in range(first, first + words):
            word = ix.slots.heap[i] if i >= 0 else UNIVERSAL
            for b in range(first_box, first_box + 4 * boxes, 4):
                level = level_of(grid, r[b + 2] - r[b], r[b + 3] - r[b + 1]) if cells else ROOT
                for c in range(4):
                    box[c] = np.float32(r[b + c])
                if not _post_in_cells(ix, word, slot, level, b, box, i, slot == tried):
                    return False
        use_words(ix, slot)
        ix.meta[POSTED] = slot + 1
    return True
