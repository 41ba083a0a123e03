"""Square cells of any size, without bounds: sides of 4^n units, aligned at zero.

A box goes to the level whose cells are at least twice its longer side, so it touches one to four
of them (1.6 on average); level ROOT is one cell for everything. Numbers need no scaling to a
space's bounds, and what lies outside them is handled like the rest.
"""

from __future__ import annotations

import numpy as np

from nearcast.kernels.hashing import mix64
from nearcast.model.jit import njit

LEVELS = 31  # cell sides 4^-10 .. 4^20
ROOT = 31
_FIRST = -10
_FAR = 4.0e18
# Powers of four, so that multiplying by the inverse is exact.
_SIDES = 4.0 ** np.arange(_FIRST, _FIRST + LEVELS)
_INVERSE = 1.0 / _SIDES
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(lean=True)
def level_of(width: float, height: float) -> int:
    """The finest level whose cells are at least twice as long as the box."""
    need = 2.0 * max(width, height)
    for level in range(LEVELS):
        if _SIDES[level] >= need:
            return level
    return ROOT


@njit(lean=True)
def cell_at(level: int, v: float) -> int:
    """Number of the column (or row) of `v` at `level`; monotone, also for enormous values."""
    if level == ROOT:
        return 0
    # Not math.floor: here it gives an int64, which an enormous value overflows.
    c = np.floor(v * _INVERSE[level])
    return np.int64(min(max(c, -_FAR), _FAR))


@njit(lean=True)
def cell_hash(level: int, column: int, row: int) -> np.uint64:
    """A hash of a cell."""
    h = mix64(np.uint64(column) * _GOLDEN + np.uint64(level + 1))
    return mix64(h ^ (np.uint64(row) * _GOLDEN))


@njit(lean=True)
def key_in(cell: np.uint64, word: np.uint64) -> np.uint64:
    """Key of a word in a cell: 64 bits stand for both, as they do for a word alone."""
    key = mix64(cell ^ word)
    return key if key != np.uint64(0) else np.uint64(1)


@njit(lean=True)
def cell_key(word: np.uint64, level: int, column: int, row: int) -> np.uint64:
    """Key of (word, cell)."""
    return key_in(cell_hash(level, column, row), word)
