"""How near and how far the positions of a box may be: never too strict, so a search loses none.

Distances that searches compare are computed from the positions themselves (`model.space`). These
bounds only say which boxes need no look. They leave room for what rounding does to a distance.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearcast.model.geometry import region_contains
from nearcast.model.jit import njit
from nearcast.model.region import BBOX, CIRCLE, POLYGON
from nearcast.model.space import EARTH_RADIUS_M, GEOGRAPHIC_CODE, euclidean, haversine_m

__all__ = ["INSIDE", "OUTSIDE", "PARTLY", "at_least", "at_most", "relation"]

OUTSIDE, PARTLY, INSIDE = 0, 1, 2

Box = NDArray[np.float64]

_SLACK = 1e-9
_SLACK_M = 1e-3
# Next to the antipode the haversine formula itself is off by up to 0.1 m.
_NEAR_ANTIPODE_M = 0.999 * math.pi * EARTH_RADIUS_M
_SLACK_ANTIPODE_M = 2.0
_SLACK_PLANE = 1e-12
_TINY = 1e-300


@njit(lean=True)
def at_least(space: int, x: float, y: float, box: Box) -> float:
    """No position in the box is nearer to (x, y)."""
    if space != GEOGRAPHIC_CODE:
        dx = max(box[0] - x, x - box[2], 0.0)
        dy = max(box[1] - y, y - box[3], 0.0)
        return max(euclidean(0.0, 0.0, dx, dy) * (1.0 - _SLACK_PLANE) - _TINY, 0.0)
    near = _nearest_m(x, y, box)
    slack = _SLACK_M if near < _NEAR_ANTIPODE_M else _SLACK_ANTIPODE_M
    return max(near * (1.0 - _SLACK) - slack, 0.0)


@njit(lean=True)
def _nearest_m(x: float, y: float, box: Box) -> float:
    south, north = box[1], box[3]
    gap = 0.0  # degrees of longitude to the nearer of the two meridians
    if x < box[0]:
        gap = min(box[0] - x, x - box[2] + 360.0)
    elif x > box[2]:
        gap = min(x - box[2], box[0] - x + 360.0)
    if gap <= 0.0:
        return math.radians(max(south - y, y - north, 0.0)) * EARTH_RADIUS_M
    if gap >= 90.0:
        # Every way to that half of the earth is at least as long as the way to a meridian 90
        # degrees away, whose nearest place is a pole.
        return math.radians(90.0 - abs(y)) * EARTH_RADIUS_M
    # The nearest place of the meridian, or what of the box's edge is nearest to it.
    foot = math.degrees(
        math.atan2(math.sin(math.radians(y)), math.cos(math.radians(y)) * _cos_degrees(gap))
    )
    return haversine_m(0.0, y, gap, min(max(foot, south), north))


@njit(lean=True)
def _cos_degrees(angle: float) -> float:
    return math.cos(math.radians(angle))


@njit(lean=True)
def at_most(space: int, x: float, y: float, box: Box) -> float:
    """No position in the box is further from (x, y); infinite where it takes long to say."""
    if space != GEOGRAPHIC_CODE:
        dx = max(abs(box[0] - x), abs(box[2] - x))
        dy = max(abs(box[1] - y), abs(box[3] - y))
        return euclidean(0.0, 0.0, dx, dy) * (1.0 + _SLACK_PLANE) + _TINY
    for turn in range(-1, 2):
        at = x + 360.0 * turn
        gap = max(abs(box[0] - at), abs(box[2] - at))
        if gap <= 90.0:  # then a corner is the furthest place
            far = max(haversine_m(0.0, y, gap, box[1]), haversine_m(0.0, y, gap, box[3]))
            return far * (1.0 + _SLACK) + _SLACK_M
    return np.inf


@njit
def relation(
    space: int, code: int, data: NDArray[np.float64], outer: NDArray[np.float64], box: Box
) -> int:
    """Whether no position of the box is in the region, or all are, or perhaps some."""
    touched = False
    within = False
    for b in range(0, len(outer), 4):
        if (
            box[0] <= outer[b + 2]
            and box[2] >= outer[b]
            and box[1] <= outer[b + 3]
            and box[3] >= outer[b + 1]
        ):
            touched = True
            within |= (
                box[0] >= outer[b]
                and box[2] <= outer[b + 2]
                and box[1] >= outer[b + 1]
                and box[3] <= outer[b + 3]
            )
    if not touched:
        return OUTSIDE
    if code == BBOX:  # its outer boxes are the region
        return INSIDE if within else PARTLY
    if code == CIRCLE:
        if at_least(space, data[0], data[1], box) > data[2]:
            return OUTSIDE
        return INSIDE if at_most(space, data[0], data[1], box) <= data[2] else PARTLY
    return _polygon_relation(space, data, box)


@njit
def _polygon_relation(space: int, data: NDArray[np.float64], box: Box) -> int:
    """A box that no edge comes near is inside or outside as a whole."""
    at = 1 + int(data[0])
    for ring in range(int(data[0])):
        end = at + 2 * int(data[1 + ring])
        for i in range(at, end - 2, 2):
            if (
                min(data[i], data[i + 2]) <= box[2]
                and max(data[i], data[i + 2]) >= box[0]
                and min(data[i + 1], data[i + 3]) <= box[3]
                and max(data[i + 1], data[i + 3]) >= box[1]
            ):
                return PARTLY
        at = end
    return INSIDE if region_contains(space, POLYGON, data, box[0], box[1]) else OUTSIDE
