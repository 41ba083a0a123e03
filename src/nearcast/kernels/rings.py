"""Which side of a circle a position is on, as far as the circle's box, rounded to float32, can say.

The contract decides by a distance that takes four sines and cosines. The box gives the centre and
the radius to within the rounding; a distance by short series is nearly as exact as that. So only
in a thin ring around the circle (metres, where degrees are rounded) must the contract's formula be
computed. Everything here leaves room for rounding, of the box and of the formula itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.model.jit import njit
from nearcast.model.space import GEOGRAPHIC_CODE

__all__ = ["INSIDE", "OUTSIDE", "UNSURE", "Spot", "side_of_circle", "spot_of"]

INSIDE, UNSURE, OUTSIDE = 1, 0, -1

_RADIANS = math.pi / 180.0
# Half of a float32 number's last place, relative to the number, and a thousandth more.
_ROUNDING = 1.001 * 2.0**-24
# The boxes of circles are larger by 1e-9 of the radius and 1e-9 degrees (`model.extent`). The
# series below are off by less than 2e-9 of the distance up to _LONGEST.
_SLACK = 1e-8
_SLACK_DEGREES = 1e-8
_SLACK_PLANE = 1e-44  # half of the smallest float32, and more
_LONGEST = 8.0  # degrees: of a side of a box; beyond, the series are not exact enough


class Spot(NamedTuple):
    """A position, with what depends on it alone."""

    x: float
    y: float
    cosine: float  # of the latitude; above 1 in the plane
    sine: float


@njit(lean=True)
def spot_of(space: int, x: float, y: float) -> Spot:
    """The spot of a position."""
    if space != GEOGRAPHIC_CODE:
        return Spot(x, y, 2.0, 0.0)
    return Spot(x, y, math.cos(y * _RADIANS), math.sin(y * _RADIANS))


@njit(lean=True, forceinline=True)
def side_of_circle(
    spot: Spot, west: np.float32, south: np.float32, east: np.float32, north: np.float32
) -> int:
    """INSIDE, OUTSIDE or UNSURE, for the one box of a circle (`model.extent.circle_boxes`).

    The position lies in the box, or next to it.
    """
    w, s, e, n = np.float64(west), np.float64(south), np.float64(east), np.float64(north)
    radius = 0.5 * (n - s)
    # The centre is off by half of the first two at most, the radius by half of the first.
    off = float(_ROUNDING * (2.0 * max(abs(s), abs(n)) + max(abs(w), abs(e))) + _SLACK * radius)
    dx, dy = spot.x - 0.5 * (w + e), spot.y - 0.5 * (s + n)
    if spot.cosine > 1.0:
        off += _SLACK_PLANE
        square = dx * dx + dy * dy
        near, far = radius - off, radius + off
        if near > 0.0 and square < near * near:
            return INSIDE
        return OUTSIDE if square > far * far else UNSURE
    if n - s > _LONGEST or e - w > _LONGEST:
        return UNSURE
    off += _SLACK_DEGREES
    chord = _chord_square(spot, dx * _RADIANS, dy * _RADIANS)
    near, far = (radius - off) * _RADIANS, (radius + off) * _RADIANS
    if near > 0.0 and chord < _four_sine_squares(near * near):
        return INSIDE
    return OUTSIDE if chord > _four_sine_squares(far * far) else UNSURE


@njit(lean=True, forceinline=True)
def _four_sine_squares(a: float) -> float:
    """4 sin²(√a / 2): the square of the chord of an angle whose square is `a`, a small one."""
    return a * (1.0 - a * (1.0 / 12.0) * (1.0 - a * (1.0 / 30.0)))


@njit(lean=True, forceinline=True)
def _chord_square(spot: Spot, dx: float, dy: float) -> float:
    """The square of the chord from the spot to what is (dx, dy) radians back from there."""
    a = dy * dy
    cosine = 1.0 - a * 0.5 * (1.0 - a * (1.0 / 12.0))
    sine = dy * (1.0 - a * (1.0 / 6.0) * (1.0 - a * (1.0 / 20.0)))
    other = spot.cosine * cosine + spot.sine * sine  # the cosine of the other latitude
    return _four_sine_squares(a) + spot.cosine * other * _four_sine_squares(dx * dx)
