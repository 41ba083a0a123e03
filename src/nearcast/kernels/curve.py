"""The Z-curve: what is close on it is close in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_SPREAD = (
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)
SIDE = 1 << 16  # cells of `along`, each way


def z_code(column: NDArray[Any], line: NDArray[Any]) -> NDArray[np.uint64]:
    """The place of cells on the curve: bits of line and column (whole, 32 at most) in turns."""
    return _spread(column) | (_spread(line) << np.uint64(1))


def _spread(number: NDArray[Any]) -> NDArray[np.uint64]:
    """The 32 bits of a number with a zero before each."""
    v = number.astype(np.uint64)
    for shift, mask in _SPREAD:
        v = (v | (v << np.uint64(shift))) & np.uint64(mask)
    return v


def along(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
    """The numbers of points in an order in which each is near the one before."""
    if len(x) == 0:
        return np.empty(0, np.int64)
    return np.argsort(z_code(_cells(x), _cells(y)))


def _cells(v: NDArray[np.float64]) -> NDArray[np.uint64]:
    """SIDE equal cells from the least to the largest; halves, as these may be far apart."""
    low, high = v.min() / 2, v.max() / 2
    scaled = (v / 2 - low) / max(high - low, np.finfo(float).tiny) * SIDE
    cells: NDArray[np.uint64] = np.minimum(scaled, SIDE - 1).astype(np.uint64)
    return cells
