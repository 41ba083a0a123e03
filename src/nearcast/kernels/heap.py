"""A binary heap on two arrays: the least key first, and of equal keys the lowest item."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit

Keys = NDArray[np.float64]
Items = NDArray[np.int64]


@njit
def _before(keys: Keys, items: Items, a: int, b: int) -> bool:
    return keys[a] < keys[b] or (keys[a] == keys[b] and items[a] < items[b])


@njit
def _swap(keys: Keys, items: Items, a: int, b: int) -> None:
    keys[a], keys[b] = keys[b], keys[a]
    items[a], items[b] = items[b], items[a]


@njit
def sift_down(keys: Keys, items: Items, size: int, at: int) -> None:
    """Restore order below `at`, whose key may have grown."""
    while True:
        least = at
        for child in range(2 * at + 1, min(2 * at + 3, size)):
            if _before(keys, items, child, least):
                least = child
        if least == at:
            return
        _swap(keys, items, at, least)
        at = least


@njit
def push(keys: Keys, items: Items, size: int, key: float, item: int) -> int:
    """Add an item to a heap of `size`; the new size."""
    at = size
    keys[at] = key
    items[at] = item
    while at > 0 and _before(keys, items, at, (at - 1) // 2):
        _swap(keys, items, at, (at - 1) // 2)
        at = (at - 1) // 2
    return size + 1


@njit
def pop(keys: Keys, items: Items, size: int) -> int:
    """Take the first item out of a heap of `size`, to where the heap ended: `items[size - 1]`."""
    _swap(keys, items, 0, size - 1)
    sift_down(keys, items, size - 1, 0)
    return size - 1
