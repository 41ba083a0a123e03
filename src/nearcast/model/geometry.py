"""Whether a position lies in a region: THE definition, compiled, for every caller.

The polygon test is exact for all finite float64 coordinates. A rounded one would put a position
that lies on an edge now inside, now outside, depending on which way the ring runs, and two
implementations would differ.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.model.shapes import BBOX, CIRCLE
from nearcast.model.space import GEOGRAPHIC_CODE, distance

__all__ = ["orientation", "polygon_contains", "region_contains"]

# Shewchuk, "Adaptive precision floating-point arithmetic", section 4.1: the float determinant has
# the right sign when it is larger than this times the sum of its two products' sizes ...
_FILTER = (3.0 + 16.0 * 2.0**-53) * 2.0**-53
# ... unless a product came so near to the smallest float that it lost digits.
_UNDERFLOW = 1e-280

_TWO_53 = 2.0**53
_LOW_27 = (1 << 27) - 1
_LOW_32 = (1 << 32) - 1


@njit
def region_contains(
    space_code: int, region_code: int, data: NDArray[np.float64], x: float, y: float
) -> bool:
    """Whether the position is in the region, edges included; `data` is as `shapes.encode` says."""
    if region_code == BBOX:
        return _bbox_contains(space_code, data, x, y)
    if region_code == CIRCLE:
        return bool(distance(space_code, data[0], data[1], x, y) <= data[2])
    return polygon_contains(data, x, y)


@njit
def _bbox_contains(space_code: int, data: NDArray[np.float64], x: float, y: float) -> bool:
    if y < data[1] or y > data[3]:
        return False
    minx = float(data[0])
    maxx = float(data[2])
    if space_code != GEOGRAPHIC_CODE:
        return minx <= x and x <= maxx
    if _spans_longitude(minx, maxx, x):
        return True
    # Longitudes -180 and 180 are one meridian.
    return abs(x) == 180.0 and _spans_longitude(minx, maxx, -x)


@njit
def _spans_longitude(minx: float, maxx: float, x: float) -> bool:
    if minx <= maxx:
        return minx <= x and x <= maxx
    return x >= minx or x <= maxx


@njit
def polygon_contains(data: NDArray[np.float64], x: float, y: float) -> bool:
    """On an edge, or an odd number of edges to the right of the position."""
    n_rings = int(data[0])
    at = 1 + n_rings
    inside = False
    for ring in range(n_rings):
        end = at + 2 * int(data[1 + ring])
        for i in range(at, end - 2, 2):
            side = _edge_side(data[i], data[i + 1], data[i + 2], data[i + 3], x, y)
            if side == 0:
                return True
            # The half-open rule on y counts a vertex on the ray once, not twice.
            if side > 0 and (data[i + 1] > y) != (data[i + 3] > y):
                inside = not inside
        at = end
    return inside


@njit
def _edge_side(x1: float, y1: float, x2: float, y2: float, x: float, y: float) -> int:
    """0 when the position is on the edge, 1 when the edge is to its right, -1 for all others."""
    if y < min(y1, y2) or y > max(y1, y2) or x > max(x1, x2):
        return -1
    if x < min(x1, x2):
        return 1
    if y1 == y2 or x1 == x2:
        return 0
    turn = orientation(x1, y1, x2, y2, x, y)
    # A position to the left of an upward edge has that edge to its right.
    return turn if y2 > y1 else -turn


@njit
def orientation(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> int:
    """1 when a, b, c turn left, -1 when they turn right, 0 when they are in line: exactly."""
    left = (ax - cx) * (by - cy)
    right = (ay - cy) * (bx - cx)
    det = left - right
    size = abs(left) + abs(right)
    if size > _UNDERFLOW and size < math.inf and abs(det) > _FILTER * size:
        return 1 if det > 0.0 else -1
    return _exact_orientation(ax, ay, bx, by, cx, cy)


@njit
def _exact_orientation(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> int:
    """The sign of the determinant, written out as six products, in fixed-point integers.

    Integers rather than float expansions, because those lose digits where a product over- or
    underflows; this has no such case. It costs some hundred nanoseconds, and only positions on or
    next to the line of an edge come here.
    """
    lefts = (ax, -ax, -cx, -ay, ay, cy)
    rights = (by, cy, by, bx, cx, bx)
    lowest = 1 << 30
    highest = -(1 << 30)
    for i in range(6):
        if lefts[i] != 0.0 and rights[i] != 0.0:
            exponent = math.frexp(lefts[i])[1] + math.frexp(rights[i])[1]
            lowest = min(lowest, exponent)
            highest = max(highest, exponent)
    if lowest > highest:
        return 0
    limbs = np.zeros((highest - lowest) // 32 + 6, dtype=np.int64)
    for i in range(6):
        if lefts[i] != 0.0 and rights[i] != 0.0:
            _add_product(limbs, lefts[i], rights[i], lowest)
    return _sign(limbs)


@njit
def _add_product(limbs: NDArray[np.int64], left: float, right: float, lowest: int) -> None:
    """Add left * right, in units of 2**(lowest - 106), to the number held by the limbs."""
    fraction1, exponent1 = math.frexp(left)
    fraction2, exponent2 = math.frexp(right)
    sign = 1 if (fraction1 > 0.0) == (fraction2 > 0.0) else -1
    mantissa1 = int(abs(fraction1) * _TWO_53)
    mantissa2 = int(abs(fraction2) * _TWO_53)
    shift = exponent1 + exponent2 - lowest
    low1 = mantissa1 & _LOW_27
    high1 = mantissa1 >> 27
    low2 = mantissa2 & _LOW_27
    high2 = mantissa2 >> 27
    _add_bits(limbs, sign, low1 * low2, shift)
    _add_bits(limbs, sign, low1 * high2 + high1 * low2, shift + 27)
    _add_bits(limbs, sign, high1 * high2, shift + 54)


@njit
def _add_bits(limbs: NDArray[np.int64], sign: int, bits: int, shift: int) -> None:
    """Add sign * bits * 2**shift, bits <= 2**54, in two halves so that no shift overflows."""
    for half in range(2):
        place = shift + 27 * half
        part = (bits & _LOW_27 if half == 0 else bits >> 27) << (place & 31)
        limbs[place >> 5] += sign * (part & _LOW_32)
        limbs[(place >> 5) + 1] += sign * (part >> 32)


@njit
def _sign(limbs: NDArray[np.int64]) -> int:
    """The sign of the number whose digits to the base 2**32 are the limbs, lowest first."""
    carry = 0
    remains = False
    for i in range(limbs.shape[0]):
        digit = limbs[i] + carry
        remains = remains or (digit & _LOW_32) != 0
        carry = digit >> 32
    if carry != 0:
        return 1 if carry > 0 else -1
    return 1 if remains else 0
