"""Uni-Space-Rout, a baseline of Tornado (section 5.1): equal parts of the space."""

from __future__ import annotations

from math import isqrt

import numpy as np

from nearcast.routing.tornado.a_grid import Partitions


def uniform_partitions(side: int, evaluators: int) -> Partitions:
    """Bands of equal height, each cut into equal parts, as square as the number allows.

    Sizes differ by a cell where `side` does not divide. With fewer cells than evaluators the last
    partitions have none.
    """
    count = min(evaluators, side * side)
    out = np.zeros((evaluators, 4), np.int32)
    out[:, 2:] = -1
    made = 0
    bands = _bands(side, count)
    for band in range(bands):
        parts = (band + 1) * count // bands - band * count // bands
        for part in range(parts):
            out[made, 0] = part * side // parts
            out[made, 1] = band * side // bands
            out[made, 2] = (part + 1) * side // parts - 1
            out[made, 3] = (band + 1) * side // bands - 1
            made += 1
    return out


def _bands(side: int, count: int) -> int:
    """The largest divisor up to the root, so that parts are equal; else the fewest that fit."""
    for bands in range(isqrt(count), 0, -1):
        if count % bands == 0 and count // bands <= side:
            return bands
    return -(-count // side)
