"""Distances between places and cells, never more than they are.

Cells are rectangles of longitude and latitude, or of the plane. How far a cell is at least is
measured in three dimensions, to a box around it (on the globe: of points on a ball): for every
message this is done with every cell.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.places import point
from nearcast.model.jit import njit
from nearcast.model.space import EARTH_RADIUS_M, GEOGRAPHIC_CODE

_RADIANS = math.pi / 180.0
_LESS = 1.0 - 1e-12
_METRES = 0.5  # what the haversine distance may lose where two places are opposite on the globe
_ROUND = 0.01  # of a coordinate in metres
_LARGE = 1e300  # from here on squares could overflow

Floats = NDArray[np.float64]

__all__ = ["inner_distance", "outer_distance", "set_box"]


@njit(lean=True, forceinline=True)
def _to_meridian(phi: float, degrees: float) -> float:
    """From a latitude to a meridian so many degrees away; in radii of the globe."""
    if degrees >= 90.0:
        return math.pi / 2.0 - abs(phi)  # the pole is the nearest
    return math.asin(min(math.cos(phi) * math.sin(degrees * _RADIANS), 1.0))


@njit(lean=True, forceinline=True)
def inner_distance(space: int, x: float, y: float, rect: Floats) -> float:
    """At most as far as from a place in a cell to the boundary. Skype 5.1.2, definition 6."""
    west, south, east, north = x - rect[0], y - rect[1], rect[2] - x, rect[3] - y
    if space == GEOGRAPHIC_CODE:
        phi = y * _RADIANS
        west, east = _to_meridian(phi, west), _to_meridian(phi, east)
        south, north = south * _RADIANS, north * _RADIANS
        west, south = west * EARTH_RADIUS_M, south * EARTH_RADIUS_M
        east, north = east * EARTH_RADIUS_M, north * EARTH_RADIUS_M
    return max(min(min(west, east), min(south, north)), 0.0) * _LESS


@njit(lean=True)
def set_box(space: int, rect: Floats, box: Floats) -> None:
    """The box around a cell: the least x, y and z, then the greatest."""
    if space != GEOGRAPHIC_CODE:
        box[0], box[1], box[2] = rect[0], rect[1], 0.0
        box[3], box[4], box[5] = rect[2], rect[3], 0.0
        return
    west, south, east, north = rect[0], rect[1], rect[2], rect[3]
    a, b = math.cos(south * _RADIANS), math.cos(north * _RADIANS)
    least, most = max(min(a, b), 0.0), max(a, b)
    if south <= 0.0 <= north:
        most = 1.0
    c, d = math.cos(west * _RADIANS), math.cos(east * _RADIANS)
    e, f = math.sin(west * _RADIANS), math.sin(east * _RADIANS)
    x0, x1, y0, y1 = min(c, d), max(c, d), min(e, f), max(e, f)
    if west <= 0.0 <= east:
        x1 = 1.0
    if west <= 90.0 <= east:
        y1 = 1.0
    if west <= -90.0 <= east:
        y0 = -1.0
    box[0], box[3] = min(least * x0, most * x0), max(least * x1, most * x1)
    box[1], box[4] = min(least * y0, most * y0), max(least * y1, most * y1)
    box[2], box[5] = math.sin(south * _RADIANS), math.sin(north * _RADIANS)
    for i in range(3):
        box[i] = box[i] * EARTH_RADIUS_M - _ROUND
        box[3 + i] = box[3 + i] * EARTH_RADIUS_M + _ROUND


@njit(lean=True, forceinline=True)
def outer_distance(space: int, px: float, py: float, pz: float, box: Floats) -> float:
    """At most as far as from a point to a cell. Skype 5.1.2, definition 7.

    0 means that it may be inside: then the inner distance does not count.
    """
    dx = max(max(box[0] - px, px - box[3]), 0.0)
    dy = max(max(box[1] - py, py - box[4]), 0.0)
    dz = max(max(box[2] - pz, pz - box[5]), 0.0)
    square = dx * dx + dy * dy + dz * dz
    if not square < _LARGE:
        return max(dx, dy) * _LESS
    chord = math.sqrt(square)
    if space != GEOGRAPHIC_CODE:
        return chord * _LESS
    half = chord / (2.0 * EARTH_RADIUS_M)
    # The way along the ground is 2R·asin(half), which is at least this.
    return max(chord * (1.0 + half * half / 6.0) * _LESS - _METRES, 0.0)


@njit(lean=True, forceinline=True)
def longitude(space: int, x: float) -> float:
    """-180 for 180, which is the same meridian."""
    return -180.0 if space == GEOGRAPHIC_CODE and x == 180.0 else x


@njit(lean=True, forceinline=True)
def distance_to(space: int, x: float, y: float, box: Floats) -> float:
    """At most as far as from a place to a cell."""
    px, py, pz = point(space, x, y)
    return outer_distance(space, px, py, pz, box)
