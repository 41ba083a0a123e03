"""Whether the positions of a box are in a region: never too strict, so a search loses none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.boxes import Box, at_least, at_most
from nearcast.model.geometry import region_contains
from nearcast.model.jit import njit
from nearcast.model.region import BBOX, CIRCLE, POLYGON

__all__ = ["INSIDE", "OUTSIDE", "PARTLY", "relation"]

OUTSIDE, PARTLY, INSIDE = 0, 1, 2


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
