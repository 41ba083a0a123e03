"""How near and how far the positions of a box may be: never too strict, so a search loses none.

Distances that searches compare are computed from the positions themselves (`model.space`). These
bounds only say which boxes need no look. They leave room for what rounding does to a distance.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.model.space import EARTH_RADIUS_M, GEOGRAPHIC_CODE, euclidean, haversine_m

__all__ = ["Box", "at_least", "at_most", "less_slack_m", "to_edge"]

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
    return less_slack_m(_nearest_m(x, y, box))


@njit(lean=True)
def less_slack_m(way: float) -> float:
    """A way over the earth, less what rounding may have added to it or taken from a distance."""
    slack = _SLACK_M if way < _NEAR_ANTIPODE_M else _SLACK_ANTIPODE_M
    return max(way * (1.0 - _SLACK) - slack, 0.0)


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
    return _to_meridian_m(y, gap, south, north)


@njit(lean=True)
def _to_meridian_m(y: float, gap: float, south: float, north: float) -> float:
    """From latitude `y` to a piece of the meridian `gap` degrees away, less than 90."""
    # The nearest place of the meridian, or what of the piece is nearest to it.
    foot = math.degrees(
        math.atan2(math.sin(math.radians(y)), math.cos(math.radians(y)) * _cos_degrees(gap))
    )
    return haversine_m(0.0, y, gap, min(max(foot, south), north))


@njit(lean=True)
def _cos_degrees(angle: float) -> float:
    return math.cos(math.radians(angle))


@njit(lean=True)
def to_edge(space: int, x: float, y: float, box: Box) -> float:
    """How far (x, y), in the box, is from its border: no way out of the box is shorter."""
    if space != GEOGRAPHIC_CODE:
        gap = min(min(x - box[0], box[2] - x), min(y - box[1], box[3] - y))
        return max(gap * (1.0 - _SLACK_PLANE) - _TINY, 0.0)
    way = math.radians(min(y - box[1], box[3] - y)) * EARTH_RADIUS_M
    for side in range(0, 3, 2):
        gap = abs(x - box[side])
        gap = min(gap, 360.0 - gap)
        if gap >= 90.0:  # the nearest place of that meridian is a pole
            way = min(way, math.radians(90.0 - abs(y)) * EARTH_RADIUS_M)
        else:
            way = min(way, _to_meridian_m(y, gap, box[1], box[3]))
    return less_slack_m(way)


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
