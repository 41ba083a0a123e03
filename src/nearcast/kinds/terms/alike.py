"""Which subscriptions are alike, so that they share a group: same window and `where`, and regions
of about one size whose middles are in one cell of a grid.

A cell is a quarter as wide as such a region, so that what all regions of a group have in common is
the larger part of each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.model.space import Space

__all__ = ["KEYS", "bunches", "keys_of", "program_keys", "shareable"]

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]
Words = NDArray[np.uint64]

KEYS = 6  # window, `where`, sizes along both axes, cell along both axes
_STEPS = 2.0  # classes of sizes for each doubling
_CELLS = 4.0  # of a grid, along a region
_MIX = np.uint64(0x9E3779B97F4A7C15)


def shareable(space: Space, boxes: Reals, parts: Longs) -> NDArray[np.bool_]:
    """Which regions can be in a group, by their outer boxes; `parts`: how many boxes each has.

    Not those that cross or touch the meridian of 180 degrees, or are too large for float64.
    """
    size = _sizes(boxes)
    good = (parts <= 1) & np.isfinite(size).all(1) & (size >= 0).all(1)
    if space is Space.GEOGRAPHIC:
        good &= (boxes[:, 0] > -180.0) & (boxes[:, 2] < 180.0)
    return np.asarray(good)


def _sizes(boxes: Reals) -> Reals:
    with np.errstate(over="ignore"):
        size: Reals = boxes[:, 2:] - boxes[:, :2]
    return size


def keys_of(window: Longs, program: Longs, boxes: Reals) -> Longs:
    """[n, KEYS]: subscriptions with equal rows are alike."""
    size = _sizes(boxes)
    point = size <= 0.0
    wide = np.where(point, 1.0, size)
    classes = np.floor(np.log2(wide) * _STEPS)
    cell = np.exp2(classes / _STEPS) / _CELLS
    middle = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    # Of the smallest regions a quarter is no number: their cell is 0 wide, and they are `far`.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        place = np.where(point, boxes[:, :2], np.floor(middle / cell))
    far = ~np.isfinite(place) | (np.abs(place) > 2.0**52) | point
    at = np.where(far, 0.0, place).astype(np.int64)
    at = np.where(far, np.where(far, boxes[:, :2] + 0.0, 0.0).view(np.int64), at)  # its own bits
    return np.column_stack([window, program, np.where(point, -4096, classes).astype(np.int64), at])


@njit
def program_keys(heap: Words, starts: Longs, lengths: Longs) -> Longs:
    """A number for each program, the same for the same tokens; programs differ in 64 bits."""
    out = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        mixed = np.uint64(lengths[i])
        for at in range(starts[i], starts[i] + lengths[i]):
            mixed = (mixed ^ heap[at]) * _MIX
            mixed ^= mixed >> np.uint64(29)
        out[i] = np.int64(mixed)
    return out


def bunches(waiting: Longs, there: Longs, sizes: Longs) -> tuple[Longs, NDArray[np.bool_], Longs]:
    """(of each waiting one a number, which numbers make new groups, number of each group there).

    `waiting` and `there` are keys, of subscriptions and of groups with room, `sizes` how many these
    have. Those who wait join as soon as they are half as many as are there: so a subscription is
    counted anew a few times, and not with each one that comes.
    """
    both = np.concatenate([waiting, there])
    _, number = np.unique(both, axis=0, return_inverse=True)
    number = number.ravel().astype(np.int64)
    mine, theirs = number[: len(waiting)], number[len(waiting) :]
    wait = np.bincount(mine, minlength=len(both) + 1)
    held = np.zeros(len(wait), np.int64)
    np.add.at(held, theirs, sizes)
    return mine, (wait > 0) & (2 * wait >= held), theirs
