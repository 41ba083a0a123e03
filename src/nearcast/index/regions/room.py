"""Memory for matches, used again and again."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

_OWN = 3  # references to its memory that a Room has itself, as `sys.getrefcount` counts
_SPARE = 8  # times as much as is needed may be used
_KEPT = 3  # a loop still holds the last ones when the next is wanted


class Room:
    """Memory for pairs of numbers, used again as soon as nothing refers to what was in it.

    There are millions of matches per batch, and the OS zeroes every new page.
    """

    def __init__(self) -> None:
        self._kept: list[NDArray[np.int64]] = []

    def take(self, pairs: int) -> NDArray[np.int64]:
        """[2, so many], of no particular content."""
        self._kept = [k for k in self._kept if pairs <= k.shape[1] <= _SPARE * pairs]
        for kept in self._kept:
            if sys.getrefcount(kept) <= _OWN:  # a view of it counts too
                return kept[:, :pairs]
        made = np.empty((2, pairs), np.int64)
        self._kept = [made, *self._kept[: _KEPT - 1]]
        return made[:]
