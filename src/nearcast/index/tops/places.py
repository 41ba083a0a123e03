"""Places as points in three dimensions, for all who bound distances."""

from __future__ import annotations

import math

from nearcast.model.jit import njit
from nearcast.model.space import EARTH_RADIUS_M, GEOGRAPHIC_CODE

_RADIANS = math.pi / 180.0

__all__ = ["point"]


@njit(lean=True, forceinline=True)
def point(space: int, x: float, y: float) -> tuple[float, float, float]:
    """A place as a point whose distance from another is no more than their distance."""
    if space == GEOGRAPHIC_CODE:
        phi, lam = y * _RADIANS, x * _RADIANS
        across = EARTH_RADIUS_M * math.cos(phi)
        return across * math.cos(lam), across * math.sin(lam), EARTH_RADIUS_M * math.sin(phi)
    return x, y, 0.0
