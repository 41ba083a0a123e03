"""How much of the window a buffer keeps: what decides how often it must be filled again.

A deep buffer takes more objects in, and is short less often. A policy says, by k, how many of the
best objects a search fetches when a buffer is short, which of them it keeps, and from which length
on a buffer is cut back. `cut` must keep at least k; a floor may not be above the k-th score.

To add one: a subclass here or in a file of its own, given to an index as `policy`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Policy", "Roots"]

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]


class Policy(ABC):
    """What is kept besides the result."""

    name: ClassVar[str]

    @abstractmethod
    def depth(self, k: Longs) -> Longs:
        """How many of the best objects are fetched when a buffer is filled: at least k + 1."""

    @abstractmethod
    def most(self, k: Longs) -> Longs:
        """A buffer with more entries, none of them dominated, is cut to `depth`."""

    def floors(self, k: Longs, offsets: Longs, scores: Reals, full: NDArray[np.bool_]) -> Reals:
        """The floor of each buffer that was filled with these scores, best first.

        Not `full`: that is all there is, and by default all that comes is then taken too. A floor
        above the last score makes the buffer drop what is below it.
        """
        del k
        last = np.maximum(offsets[1:] - 1, 0)
        found = np.where(full & (np.diff(offsets) > 0), scores[last] if len(scores) else 0.0, 0.0)
        return np.where(full, found, -np.inf)


class Roots(Policy):
    """Room above k for the ups and downs of a count: some times its root.

    As many objects at least as good as the floor come as go; their number in the window wanders
    about where it began by the root of itself. At three roots above k it seldom comes down to k.
    """

    name = "roots"

    def __init__(self, roots: float = 3.0) -> None:
        self.roots = roots

    def depth(self, k: Longs) -> Longs:
        return np.asarray(k + np.ceil(self.roots * np.sqrt(k)).astype(np.int64) + 1)

    def most(self, k: Longs) -> Longs:
        return np.asarray(self.depth(k) + np.ceil(np.sqrt(k)).astype(np.int64) + 8)
