"""Equation (7) of DkM-SKS: which rectangle of a plan overlaps a new one the most.

The paper looks at all of them. Here they lie in a packed tree, large ones first and neighbours
together: a node that cannot overlap more, nor as much with a smaller rectangle, is passed over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.curve import z_code
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.dkm.places import Box

_FAN = 8


class Rectangles(NamedTuple):
    """A tree of rectangles; level 0 are the rectangles, a node of level l + 1 has eight of l."""

    space: NDArray[np.float64]  # [4]: areas are measured in it, so that none is infinite
    boxes: NDArray[np.float64]  # [*, 4], level after level
    areas: NDArray[np.float64]  # [*]: of the smallest rectangle below
    levels: NDArray[np.int64]  # where each level begins, and the end


def rectangles_of(boxes: NDArray[np.float64], space: Box) -> Rectangles:
    """The tree over `boxes`, cut to `space`; equal ones once, as they give equal costs."""
    cut = np.unique(_clip(boxes, space), axis=0)
    cut = cut[_packing(cut, space)]
    parts_boxes, parts_areas, levels = [cut], [_areas(cut)], [0, len(cut)]
    while len(parts_boxes[-1]) > 1:
        starts = np.arange(0, len(parts_boxes[-1]), _FAN)
        low = np.minimum.reduceat(parts_boxes[-1][:, :2], starts)
        high = np.maximum.reduceat(parts_boxes[-1][:, 2:], starts)
        parts_boxes.append(np.hstack([low, high]))
        parts_areas.append(np.minimum.reduceat(parts_areas[-1], starts))
        levels.append(levels[-1] + len(starts))
    return Rectangles(
        frozen(space),
        frozen(np.concatenate(parts_boxes)),
        frozen(np.concatenate(parts_areas)),
        frozen(np.array(levels, np.int64)),
    )


def _clip(boxes: NDArray[np.float64], space: Box) -> NDArray[np.float64]:
    low, high = np.tile(space[:2], 2), np.tile(space[2:], 2)
    return np.minimum(np.maximum(boxes, low), high)


def _areas(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):  # in the plane an area may exceed the largest float
        return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def _packing(boxes: NDArray[np.float64], space: Box) -> NDArray[np.int64]:
    """Large before small (by powers of four), then along a Z-curve through their centres."""
    half = np.maximum(space[2:] * 0.5 - space[:2] * 0.5, np.finfo(float).tiny)
    centre = (boxes[:, :2] * 0.25 + boxes[:, 2:] * 0.25 - space[:2] * 0.5) / half
    cell = np.minimum(centre * 2**16, 2**16 - 1).astype(np.uint64)
    curve = z_code(cell[:, 0], cell[:, 1])
    size = np.frexp(_areas(boxes))[1] // 2
    return np.lexsort((curve, -size))


@njit
def _overlap(a: Box, b: Box) -> float:
    """The area that two boxes share."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0.0 and height > 0.0 else 0.0


@njit
def most_overlapped(r: Rectangles, box: Box) -> int:
    """Equation (7): S* = arg max |R ∩ R_n|, as a row of `r.boxes`; -1 if none shares an area.

    Many rectangles can hold all of `box`, the ones with a subscription to rare words for example:
    the smallest of them is taken, as the closest to what `box` itself says.
    """
    top = len(r.levels) - 2
    stack = np.empty((_FAN * (top + 1) + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = top, 0
    size = 1 if len(r.boxes) > 0 else 0
    best, best_share, best_area = -1, 0.0, np.inf
    inner = np.empty(4)
    for i in range(2):
        inner[i] = min(max(box[i], r.space[i]), r.space[i + 2])
        inner[i + 2] = max(min(box[i + 2], r.space[i + 2]), r.space[i])
    while size > 0:
        size -= 1
        level, at = stack[size, 0], stack[size, 1]
        row = r.levels[level] + at
        share = _overlap(r.boxes[row], inner)
        if share < best_share or share == 0.0:
            continue
        if share == best_share and r.areas[row] >= best_area:
            continue
        if level == 0:
            best, best_share, best_area = row, share, r.areas[row]
            continue
        end = min(at * _FAN + _FAN, r.levels[level] - r.levels[level - 1])
        for child in range(end - 1, at * _FAN - 1, -1):
            stack[size, 0], stack[size, 1] = level - 1, child
            size += 1
    return best
