"""The space of a run: what a position is, and how far two positions are apart."""

from __future__ import annotations

import math
from enum import StrEnum

from nearcast.model.errors import Invalid, brief
from nearcast.model.jit import njit

__all__ = [
    "EARTH_RADIUS_M",
    "GEOGRAPHIC_CODE",
    "PLANAR_CODE",
    "Space",
    "check_position",
    "distance",
    "euclidean",
    "haversine_m",
]

EARTH_RADIUS_M = 6371008.8
GEOGRAPHIC_CODE = 0
PLANAR_CODE = 1

_RADIANS = math.pi / 180.0
_SMALLEST = 1e-280  # a sum of squares from which on none of its digits is lost


class Space(StrEnum):
    """Geographic: `[lon, lat]` in degrees, metres. Planar: `[x, y]`, plain numbers, Euclidean."""

    GEOGRAPHIC = "geographic"
    PLANAR = "planar"

    @property
    def code(self) -> int:
        """The number that stands for this space in compiled code."""
        return GEOGRAPHIC_CODE if self is Space.GEOGRAPHIC else PLANAR_CODE


@njit(lean=True)
def haversine_m(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """The haversine distance in metres, operation by operation as SPEC section 1 writes it.

    Longitudes -180 and 180 are one meridian. 180 is read as -180, so that the two tie to the bit.
    """
    if lon1 == 180.0:
        lon1 = -180.0
    if lon2 == 180.0:
        lon2 = -180.0
    phi1 = lat1 * _RADIANS
    phi2 = lat2 * _RADIANS
    s1 = math.sin((phi2 - phi1) / 2.0)
    s2 = math.sin((lon2 * _RADIANS - lon1 * _RADIANS) / 2.0)
    h = s1 * s1 + math.cos(phi1) * math.cos(phi2) * (s2 * s2)  # sin² is one factor
    return 2.0 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(h)))


@njit(lean=True)
def euclidean(x1: float, y1: float, x2: float, y2: float) -> float:
    """The Euclidean distance, as `hypot` but cheap, and the same everywhere.

    Only where squares are too large or too small for a float are they those of a part.
    """
    dx = abs(x2 - x1)
    dy = abs(y2 - y1)
    square = dx * dx + dy * dy
    if _SMALLEST < square < math.inf:
        return math.sqrt(square)
    scale = max(dx, dy)
    if scale == 0.0 or scale == math.inf:
        return scale
    dx /= scale
    dy /= scale
    return scale * math.sqrt(dx * dx + dy * dy)


@njit(lean=True)
def distance(space_code: int, x1: float, y1: float, x2: float, y2: float) -> float:
    """The distance of two positions in the space with this code."""
    if space_code == GEOGRAPHIC_CODE:
        return haversine_m(x1, y1, x2, y2)
    return euclidean(x1, y1, x2, y2)


def check_position(space: Space, x: float, y: float) -> None:
    """Refuse what is not a position of `space`: see SPEC section 1."""
    for value in (x, y):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Invalid(f"at: {brief(value)} is not a number")
    if space is Space.GEOGRAPHIC:
        # Written so that NaN fails too.
        if not -180.0 <= x <= 180.0:
            raise Invalid(
                f"at: longitude {brief(x)} is outside [-180, 180]; write [lon, lat] in degrees"
            )
        if not -90.0 <= y <= 90.0:
            raise Invalid(
                f"at: latitude {brief(y)} is outside [-90, 90]; write [lon, lat] in degrees"
            )
        return
    for value in (x, y):
        if not _is_finite(value):
            raise Invalid(f"at: {brief(value)} is not a finite number")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # A JSON integer may be larger than any float.
        return False
