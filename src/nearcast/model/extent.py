"""Upright boxes around a region: what filters, grids and routers work on.

They may be larger than the region, never smaller: every position that `region_contains` accepts,
with its coordinates as given, lies in at least one of them.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.model.shapes import Bbox, Circle, Region
from nearcast.model.space import EARTH_RADIUS_M, GEOGRAPHIC_CODE, Space

__all__ = ["Box", "circle_boxes", "outer_boxes"]

Box: TypeAlias = tuple[float, float, float, float]
"""minx, miny, maxx, maxy with minx <= maxx."""

# Far above the error of the haversine formula (some 1e-14 degrees, see _NEAR_ANTIPODE for where it
# is not), far below what any grid notices (1e-9 degrees are 0.1 mm).
_SLACK = 1e-9
_SLACK_DEGREES = 1e-9
# Next to the antipode asin is so steep that the formula itself is off by up to 0.1 m.
_NEAR_ANTIPODE = math.pi - 1e-3
# A circle that nearly touches the meridian 90 degrees away has an ill-conditioned half-width.
_NEARLY_ONE = 1.0 - 1e-9
# Below this floats have few digits, and a distance may be off by more than _SLACK of it.
_FEW_DIGITS = 1e-300
_LARGEST = math.nextafter(math.inf, 0.0)


def outer_boxes(space: Space, region: Region) -> list[Box]:
    """One box that contains the region, or two where it reaches over (or to) the antimeridian."""
    if isinstance(region, Bbox):
        box = (region.minx, region.miny, region.maxx, region.maxy)
        return _geographic_bbox(box) if space is Space.GEOGRAPHIC else [box]
    if isinstance(region, Circle):
        out = np.empty((2, 4))
        return _boxes_of(out, circle_boxes(space.code, region.x, region.y, region.radius, out))
    xs = [x for ring in region.rings for x, _ in ring]
    ys = [y for ring in region.rings for _, y in ring]
    return [(min(xs), min(ys), max(xs), max(ys))]


def _geographic_bbox(box: Box) -> list[Box]:
    minx, miny, maxx, maxy = box
    if minx > maxx:
        return [(minx, miny, 180.0, maxy), (-180.0, miny, maxx, maxy)]
    # Longitudes -180 and 180 are one meridian: a box that has one of them has the other.
    if minx == -180.0 and maxx < 180.0:
        return [box, (180.0, miny, 180.0, maxy)]
    if maxx == 180.0 and minx > -180.0:
        return [box, (-180.0, miny, -180.0, maxy)]
    return [box]


def _boxes_of(out: NDArray[np.float64], count: int) -> list[Box]:
    return [(float(b[0]), float(b[1]), float(b[2]), float(b[3])) for b in out[:count]]


@njit(lean=True)
def circle_boxes(space: int, x: float, y: float, radius: float, out: NDArray[np.float64]) -> int:
    """Put one or two boxes around a circle into `out` (float64[2, 4]); how many there are."""
    if space == GEOGRAPHIC_CODE:
        return _geographic_circle(x, y, radius, out)
    reach = radius * (1.0 + _SLACK) + _FEW_DIGITS
    _set(out, 0, _down(x - reach), _down(y - reach), _up(x + reach), _up(y + reach))
    return 1


@njit(lean=True)
def _set(
    out: NDArray[np.float64], i: int, minx: float, miny: float, maxx: float, maxy: float
) -> None:
    out[i, 0] = minx
    out[i, 1] = miny
    out[i, 2] = maxx
    out[i, 3] = maxy


@njit(lean=True)
def _geographic_circle(x: float, y: float, radius: float, out: NDArray[np.float64]) -> int:
    angle = radius / EARTH_RADIUS_M
    if not angle < _NEAR_ANTIPODE:
        _set(out, 0, -180.0, -90.0, 180.0, 90.0)
        return 1
    reach = math.degrees(angle) * (1.0 + _SLACK) + _SLACK_DEGREES
    miny = y - reach
    maxy = y + reach
    if miny <= -90.0 or maxy >= 90.0:
        # It holds a pole, and with it every longitude.
        _set(out, 0, -180.0, max(miny, -90.0), 180.0, min(maxy, 90.0))
        return 1
    # The meridians that touch the circle; the reach is now less than 90 degrees.
    sine = math.sin(math.radians(reach)) / math.cos(math.radians(y))
    if sine > _NEARLY_ONE:
        _set(out, 0, -180.0, miny, 180.0, maxy)
        return 1
    half_width = math.degrees(math.asin(sine)) * (1.0 + _SLACK) + _SLACK_DEGREES
    west = x - half_width
    east = x + half_width
    # The half-width is under 90 degrees, so that it cannot reach over both ends.
    if west <= -180.0:
        _set(out, 0, -180.0, miny, east, maxy)
        _set(out, 1, west + 360.0, miny, 180.0, maxy)
        return 2
    if east >= 180.0:
        _set(out, 0, west, miny, 180.0, maxy)
        _set(out, 1, -180.0, miny, east - 360.0, maxy)
        return 2
    _set(out, 0, west, miny, east, maxy)
    return 1


@njit(lean=True)
def _down(value: float) -> float:
    return float(max(np.nextafter(value, -np.inf), -_LARGEST))


@njit(lean=True)
def _up(value: float) -> float:
    return float(min(np.nextafter(value, np.inf), _LARGEST))
