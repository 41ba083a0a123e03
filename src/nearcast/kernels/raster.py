"""Polygons of many vertices as coarse pictures: what is far from every edge is decided at once.

The box of a polygon is cut into equal cells of two bits each: inside, outside, or met by an edge.
A position in a cell that no edge meets, nor comes near, needs no look at the edges. The picture
stands in the heap behind the boxes of the subscription, 1/16 to 1/2 of the size of the polygon.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.geometry import polygon_contains
from nearcast.model.jit import njit
from nearcast.model.shapes import POLYGON

__all__ = ["INSIDE", "OUTSIDE", "UNSURE", "draw", "look", "raster_words", "words_of_rasters"]

UNKNOWN, INSIDE, OUTSIDE, UNSURE = 0, 1, 2, 3

_FROM = 64  # numbers of a polygon, two per vertex, from which on it has a picture
_MORE = (1024, 8192)  # and from which on a finer one
_COARSE = 32  # cells in a line
_NEAR = 0.01  # of a cell: how far from an edge everything is left open
# Rounding of the interpolation below is less than this, relative to the coordinates.
_ROUNDING = 2.0**-46
_SMALL, _LARGE = 1e-250, 1e250  # sides of a box with which nothing over- or underflows
_BITS = np.uint64(3)


@njit(lean=True, forceinline=True)
def _cells(numbers: int) -> int:
    """Cells in a line, for a polygon of so many numbers."""
    if numbers < _MORE[0]:
        return _COARSE
    return 2 * _COARSE if numbers < _MORE[1] else 4 * _COARSE


@njit(lean=True, forceinline=True)
def raster_words(code: int, numbers: int) -> int:
    """64-bit words of the picture of a region of so many numbers; 0: it has none."""
    if code != POLYGON or numbers < _FROM:
        return 0
    cells = _cells(numbers)
    return cells * cells // 32


@njit
def words_of_rasters(codes: NDArray[np.int32], offsets: NDArray[np.int64]) -> int:
    """The same for many regions, together."""
    words = 0
    for i in range(len(codes)):
        words += raster_words(codes[i], offsets[i + 1] - offsets[i])
    return words


@njit(lean=True, forceinline=True)
def _cell(value: float, low: float, per_unit: float, cells: int) -> int:
    """The column or line of a coordinate. It never falls where the coordinate rises."""
    return max(0, min(int((value - low) * per_unit), cells - 1))


@njit(lean=True, forceinline=True)
def _get(bits: NDArray[np.uint64], first: int, cell: int) -> int:
    return int(np.int64(bits[first + (cell >> 5)] >> np.uint64(2 * (cell & 31)) & _BITS))


@njit(lean=True, forceinline=True)
def _put(bits: NDArray[np.uint64], first: int, cell: int, state: int) -> None:
    at, shift = first + (cell >> 5), np.uint64(2 * (cell & 31))
    bits[at] = bits[at] & ~(_BITS << shift) | np.uint64(state) << shift


@njit(lean=True, forceinline=True)
def look(
    bits: NDArray[np.uint64],
    box: NDArray[np.float64],
    at: int,
    numbers: int,
    x: float,
    y: float,
) -> int:
    """INSIDE, OUTSIDE or UNSURE: what the picture says of a position.

    The box of the polygon of so many numbers stands at `at` in the heap, its picture behind it;
    `bits` and `box` are both the heap.
    """
    west, south, east, north = box[at], box[at + 1], box[at + 2], box[at + 3]
    if x < west or x > east or y < south or y > north:
        return OUTSIDE
    if not (west < east and south < north):
        return UNSURE
    cells = _cells(numbers)
    column = _cell(x, west, cells / (east - west), cells)
    line = _cell(y, south, cells / (north - south), cells)
    return _get(bits, at + 4, line * cells + column)


@njit
def draw(
    bits: NDArray[np.uint64], reals: NDArray[np.float64], region: int, numbers: int, at: int
) -> None:
    """Draw the polygon whose numbers stand at `region` in the heap behind its box at `at`."""
    cells, first = _cells(numbers), at + 4
    west, south, east, north = reals[at], reals[at + 1], reals[at + 2], reals[at + 3]
    wide, high = (east - west) / cells, (north - south) / cells
    furthest = max(max(abs(west), abs(east)), max(abs(south), abs(north)))
    least = min(wide, high) * _NEAR
    fine = least > furthest * _ROUNDING and least > _SMALL and furthest < _LARGE
    for word in range(first, first + cells * cells // 32):
        bits[word] = np.uint64(0) if fine else ~np.uint64(0)  # all UNKNOWN, or all UNSURE
    if not fine:
        return
    point = region + 1 + int(reals[region])
    for ring in range(int(reals[region])):
        stop = point + 2 * int(reals[region + 1 + ring])
        for i in range(point, stop - 2, 2):
            _mark_edge(bits, reals, i, at, cells, wide, high)
        point = stop
    for line in range(cells):
        column = 0
        while column < cells:
            if _get(bits, first, line * cells + column) == UNSURE:
                column += 1
                continue
            column = _fill(bits, reals, region, at, cells, line, column)


@njit(lean=True)
def _mark_edge(
    bits: NDArray[np.uint64],
    reals: NDArray[np.float64],
    i: int,
    at: int,
    cells: int,
    wide: float,
    high: float,
) -> None:
    """Leave open every cell that the edge at `i` meets or comes near."""
    west, south = reals[at], reals[at + 1]
    across, up = cells / (reals[at + 2] - west), cells / (reals[at + 3] - south)
    x1, y1, x2, y2 = reals[i], reals[i + 1], reals[i + 2], reals[i + 3]
    if y1 > y2:
        x1, y1, x2, y2 = x2, y2, x1, y1
    for line in range(
        _cell(y1 - _NEAR * high, south, up, cells), _cell(y2 + _NEAR * high, south, up, cells) + 1
    ):
        # The part of the edge in this line of cells, and a little more.
        low = max(y1, south + (line - 2 * _NEAR) * high)
        top = min(y2, south + (line + 1 + 2 * _NEAR) * high)
        a, b = x1, x2
        if y2 > y1:
            a = x1 + (min(low, y2) - y1) / (y2 - y1) * (x2 - x1)
            b = x1 + (max(top, y1) - y1) / (y2 - y1) * (x2 - x1)
        left, right = min(a, b) - _NEAR * wide, max(a, b) + _NEAR * wide
        for column in range(
            _cell(left, west, across, cells), _cell(right, west, across, cells) + 1
        ):
            _put(bits, at + 4, line * cells + column, UNSURE)


@njit
def _fill(
    bits: NDArray[np.uint64],
    reals: NDArray[np.float64],
    region: int,
    at: int,
    cells: int,
    line: int,
    column: int,
) -> int:
    """Decide the cells from here on that no edge parts; the column behind them.

    No edge lies between them, nor between one of them and the cell below that is decided.
    """
    first, stop, state = at + 4, column, UNKNOWN
    while stop < cells and _get(bits, first, line * cells + stop) != UNSURE:
        if line > 0 and state == UNKNOWN:
            below = _get(bits, first, (line - 1) * cells + stop)
            state = below if below != UNSURE else UNKNOWN
        stop += 1
    if state == UNKNOWN:
        x = reals[at] + (column + 0.5) * ((reals[at + 2] - reals[at]) / cells)
        y = reals[at + 1] + (line + 0.5) * ((reals[at + 3] - reals[at + 1]) / cells)
        state = INSIDE if polygon_contains(reals[region:at], x, y) else OUTSIDE
    for cell in range(line * cells + column, line * cells + stop):
        _put(bits, first, cell, state)
    return stop
