"""The Hilbert curve: rows that are close in space rest close to each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit

__all__ = ["hilbert_order"]

_BITS = 20  # cells each way: 2**20
_ROW_BITS = 24
_SAMPLE = 10_000
_EDGE = 0.002  # of the sample, on each side: what lies further out does not stretch the cells


def hilbert_order(at: NDArray[np.float64]) -> NDArray[np.int64]:
    """The rows of positions [n, 2], n at most 2**24, along the curve."""
    n = len(at)
    some = np.sort(at[:: max(n // _SAMPLE, 1)], axis=0)
    edge = int(len(some) * _EDGE)
    low, high = some[edge], some[len(some) - 1 - edge]
    with np.errstate(over="ignore"):
        width = high - low
    # A plane may be wider than any float; its order is then a plain one.
    scale = np.where((width > 0) & np.isfinite(width), (2.0**_BITS) / np.maximum(width, 1e-300), 0)
    scale[~np.isfinite(scale)] = 0
    keys = _keys(frozen(at), low, scale)
    keys = keys << np.uint64(_ROW_BITS) | np.arange(n, dtype=np.uint64)
    keys.sort()  # keys and rows as one number: no argsort is as fast
    return (keys & np.uint64((1 << _ROW_BITS) - 1)).astype(np.int64)


@njit
def _keys(
    at: NDArray[np.float64], low: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.uint64]:
    """The place of each position on the curve."""
    out = np.empty(len(at), np.uint64)
    side = np.int64(1 << _BITS)
    for row in range(len(at)):
        x = _cell(at[row, 0], low[0], scale[0])
        y = _cell(at[row, 1], low[1], scale[1])
        key = np.int64(0)
        s = side >> 1
        while s > 0:
            rx = np.int64((x & s) > 0)
            ry = np.int64((y & s) > 0)
            key = key << 2 | (3 * rx) ^ ry
            if ry == 0:  # turn the quarter so that the curve goes on where it enters
                if rx == 1:
                    x = side - 1 - x
                    y = side - 1 - y
                x, y = y, x
            s >>= 1
        out[row] = np.uint64(key)
    return out


@njit(lean=True)
def _cell(v: float, low: float, scale: float) -> int:
    cell = (v - low) * scale
    if not cell > 0.0:
        return np.int64(0)
    return np.int64(min(cell, 2.0**_BITS - 1))
