"""Sort-Tile-Recursive (Leutenegger et al. 1997), from the root down, for trees without pointers.

Each node is cut into vertical strips, and these into tiles: its children. All children but the
last of a level are full, so the number of a node says which rows it has (`objects.tree`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearcast.objects.tree import FAN, LEAF

__all__ = ["str_order"]

_ROW_BITS = np.uint64(24)
_ROW = np.uint64((1 << 24) - 1)


def str_order(at: NDArray[np.float64]) -> NDArray[np.int64]:
    """The rows of positions [n, 2], n at most 2**24, tile by tile."""
    n = len(at)
    by_x, by_y = np.argsort(at[:, 0], kind="stable"), np.argsort(at[:, 1], kind="stable")
    x_rank, y_rank = _inverse(by_x), _inverse(by_y)
    span = LEAF
    while span < n:
        span *= FAN
    rows = np.arange(n)
    places = np.arange(n)
    while span > LEAF:
        small = span // FAN
        strip = small * math.isqrt(FAN)  # rows: a strip has as many tiles as there are strips
        rows = _sorted(places // span, x_rank[rows], by_x)
        rows = _sorted(places // strip, y_rank[rows], by_y)
        span = small
    return rows


def _inverse(order: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The place of each row in an order."""
    out = np.empty(len(order), np.uint64)
    out[order] = np.arange(len(order), dtype=np.uint64)
    return out


def _sorted(
    group: NDArray[np.int64], rank: NDArray[np.uint64], row_of: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows by group, then rank. A rank names its row, so that one sort of numbers does it."""
    keys = group.astype(np.uint64) << _ROW_BITS | rank
    keys.sort()
    return row_of[(keys & _ROW).astype(np.int64)]
