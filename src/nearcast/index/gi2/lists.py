"""GI²: a grid of cells of one size, each an inverted file (PS2Stream section IV.D)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import (
    POSTED,
    UNIVERSAL,
    Index,
    boxes_of,
    fits,
    outward,
    posting_words,
    use_words,
)
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import ROOT, cell_hash, key_in
from nearcast.kernels.squares import LARGEST, SMALLEST, column_of, exponent_of
from nearcast.model.jit import njit

# places in `meta` of a grid
CHOSEN = 0  # subscriptions there were when the side of cells was chosen; 0: not chosen yet
SIDE = 1  # cells are 2^this long
WIDE = 2  # regions posted once for all cells
PARTLY = 3  # 1 + the slot that is posted in some of its cells, as an array was too short for all
META = 4

MOST = 256  # cells: what overlaps more is posted once, in a list for all cells
_LEVEL = 200  # of a grid's cells, in hashes: none of the pyramid's


@njit
def middle_side(ix: Index) -> int:
    """The exponent of cells that hold half of the boxes of all regions."""
    tally = np.zeros(LARGEST - SMALLEST + 1, np.int64)
    r = ix.slots.reals
    total = 0
    for slot in range(ix.slots.meta[sl.COUNT]):
        first, boxes = boxes_of(ix, slot)
        for b in range(first, first + 4 * boxes, 4):
            tally[exponent_of(r[b + 2] - r[b], r[b + 3] - r[b + 1]) - SMALLEST] += 1
            total += 1
    n = 0
    below = tally[0]
    while 2 * below < total:
        n += 1
        below += tally[n]
    return SMALLEST + n


@njit(lean=True)
def cell_of(side: int, column: int, row: int) -> np.uint64:
    """Hash of a cell of the grid."""
    return cell_hash(_LEVEL + side, column, row)


@njit(lean=True)
def cells_in(side: int, a: float, b: float, c: float, d: float) -> int:
    """How many cells (a, b, c, d) overlaps; at most MOST + 1."""
    wide = np.float64(column_of(side, c)) - np.float64(column_of(side, a)) + 1.0
    high = np.float64(column_of(side, d)) - np.float64(column_of(side, b)) + 1.0
    return np.int64(min(wide * high, MOST + 1.0))


@njit(lean=True)
def _keys_of(ix: Index, slot: int, side: int) -> int:
    """Keys that `slot` may need under one word."""
    first, boxes = boxes_of(ix, slot)
    r = ix.slots.reals
    n = 0
    for b in range(first, first + 4 * boxes, 4):
        n += cells_in(side, r[b], r[b + 1], r[b + 2], r[b + 3])
    return n


@njit(lean=True)
def _stands(p: pl.Postings, key: np.uint64, slot: int, box: NDArray[np.float32]) -> bool:
    """Whether the list of `key` ends with this entry, or with others of `slot` after it."""
    row = pl.find(p.table, key)
    if row < 0:
        return False
    first, length = pl.entries(p, row)
    for e in range(first + length - 1, first - 1, -1):
        if p.pool[e, 0] != slot:
            return False
        same = True
        for c in range(4):
            same &= p.boxes[e, 1 + c] == box[c]
        if same:
            return True
    return False


@njit(lean=True)
def _add(
    ix: Index, grid: NDArray[np.int64], key: np.uint64, slot: int, box: NDArray[np.float32]
) -> bool:
    """Append an entry, unless it stands there since the array was too short for all."""
    if grid[PARTLY] == slot + 1 and _stands(ix.lists, key, slot, box):
        return True
    return pl.add(ix.lists, key, slot, box) >= 0


@njit(lean=True)
def _post_in_cells(
    ix: Index,
    grid: NDArray[np.int64],
    word: np.uint64,
    slot: int,
    b: int,
    box: NDArray[np.float32],
) -> bool:
    """Post `slot` under `word` in every cell that its box at `b` overlaps."""
    side = grid[SIDE]
    r = ix.slots.reals
    outward(box, r[b], r[b + 1], r[b + 2], r[b + 3])
    if cells_in(side, r[b], r[b + 1], r[b + 2], r[b + 3]) > MOST:
        grid[WIDE] += 1
        return _add(ix, grid, key_in(cell_hash(ROOT, 0, 0), word), slot, box)
    for column in range(column_of(side, r[b]), column_of(side, r[b + 2]) + 1):
        for row in range(column_of(side, r[b + 1]), column_of(side, r[b + 3]) + 1):
            if not _add(ix, grid, key_in(cell_of(side, column, row), word), slot, box):
                return False
    return True


@njit
def post_grid(ix: Index, grid: NDArray[np.int64]) -> bool:
    """Post every subscription not posted yet; False if an array must grow first."""
    box = np.empty(4, np.float32)
    while ix.meta[POSTED] < ix.slots.meta[sl.COUNT]:
        slot = ix.meta[POSTED]
        if not fits(ix, slot, _keys_of(ix, slot, grid[SIDE])):
            return False
        first_box, boxes = boxes_of(ix, slot)
        first, words = posting_words(ix, slot)
        for i in range(first, first + words):
            word = ix.slots.heap[i] if i >= 0 else UNIVERSAL
            for b in range(first_box, first_box + 4 * boxes, 4):
                if not _post_in_cells(ix, grid, word, slot, b, box):
                    grid[PARTLY] = slot + 1
                    return False
        use_words(ix, slot)
        ix.meta[POSTED] = slot + 1
    return True
