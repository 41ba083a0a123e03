"""Cells of a quadtree over the bounds: which one a position is in, which ones a box touches.

The statistics J and the QT-tree share them. Positions become whole numbers, *units*, of which
there are 2²⁰ along each axis; a cell of level l has 2²⁰⁻ˡ units along each axis.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit

LEVELS = 20  # the finest level; its cells are one unit wide
_SIDE = 1 << LEVELS
Units = NDArray[np.int64]
Reals = NDArray[np.float64]


class Cell(NamedTuple):
    """A cell of level `level`: one of 4^level."""

    level: int
    column: int
    line: int

    def quarters(self) -> list[Cell]:
        """The four cells of the next level: lower left, lower right, upper left, upper right."""
        x, y = 2 * self.column, 2 * self.line
        return [Cell(self.level + 1, x + q % 2, y + q // 2) for q in range(4)]

    @property
    def units(self) -> tuple[int, int, int, int]:
        """(left, low, right, high): its first and last units."""
        size = 1 << (LEVELS - self.level)
        left, low = self.column * size, self.line * size
        return left, low, left + size - 1, low + size - 1


WHOLE = Cell(0, 0, 0)


@njit(lean=True)
def unit_of(value: float, low: float, high: float) -> int:
    """The unit of a coordinate. It never falls as `value` grows, so that a position inside a box
    is in a cell that the box touches; halves, so that nothing overflows."""
    if not value > low:
        return 0
    if value >= high:
        return _SIDE - 1
    part = (0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low)
    return min(int(part * _SIDE), _SIDE - 1)


def units_of(bounds: Reals, x: Reals, y: Reals) -> tuple[Units, Units]:
    """The units of positions."""
    edges = frozen(np.asarray(bounds, np.float64))
    return _units(frozen(x), edges[0], edges[2]), _units(frozen(y), edges[1], edges[3])


def box_units(bounds: Reals, boxes: Reals) -> Units:
    """[b, 4]: the first and last units that boxes touch, as `Cell.units`."""
    low = units_of(bounds, boxes[:, 0], boxes[:, 1])
    high = units_of(bounds, boxes[:, 2], boxes[:, 3])
    return np.stack([*low, *high], axis=1)


@njit
def _units(values: Reals, low: float, high: float) -> Units:
    out = np.empty(len(values), np.int64)
    for i in range(len(values)):
        out[i] = unit_of(values[i], low, high)
    return out


def touches(cell: Cell, units: Units) -> NDArray[np.bool_]:
    """Which of `units` [b, 4] overlap the cell."""
    left, low, right, high = cell.units
    across = (units[:, 0] <= right) & (units[:, 2] >= left)
    found: NDArray[np.bool_] = across & (units[:, 1] <= high) & (units[:, 3] >= low)
    return found
