"""Blocks of entries in one growing pool, the way all lists get and return their memory.

A block has room for a power of two of entries. A list that outgrows its block takes one of twice
the size and gives the old one back, for the next list of that size. Zeros are an unused pool.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit

# places in `meta`; the owner of a pool puts its own numbers behind them, from META on
TOP = 0  # entries of the pool handed out so far
FREE = 1  # .. FREE + _CLASSES: 1 + the first free block of a size, which leads to the next; 0: none
_CLASSES = 32
META = FREE + _CLASSES


@njit(lean=True, forceinline=True)
def size_for(entries: int) -> int:
    """The least n such that a block of 2^n has room for so many entries."""
    size = 0
    while (1 << size) < entries:
        size += 1
    return size


@njit(lean=True)
def take(pool: NDArray[Any], meta: NDArray[np.int64], size: int) -> int:
    """The first entry of a free block of 2^size entries, or -1 when the pool must grow."""
    head = meta[FREE + size]
    if head > 0:
        meta[FREE + size] = pool[head - 1, 0]
        return head - 1
    top = meta[TOP]
    if top + (1 << size) > len(pool):
        return -1
    meta[TOP] = top + (1 << size)
    return top


@njit(lean=True)
def give_back(pool: NDArray[Any], meta: NDArray[np.int64], first: int, size: int) -> None:
    """Make the block of 2^size entries at `first` free."""
    pool[first, 0] = meta[FREE + size]
    meta[FREE + size] = first + 1


@njit(lean=True)
def has_room(pool: NDArray[Any], meta: NDArray[np.int64], size: int) -> bool:
    """Whether `take` would find a block of 2^size entries."""
    return bool(meta[FREE + size] > 0 or meta[TOP] + (1 << size) <= len(pool))
