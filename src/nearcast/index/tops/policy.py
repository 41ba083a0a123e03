"""How much of the window a buffer keeps: what decides how often it must be filled again.

A deep buffer takes more objects in, and is short less often. A policy says, by k, how many of the
best objects a search fetches when a buffer is short, which of them it keeps, from which length on
a buffer is cut back, and when entries go that can never be seen again. `most` must be at least k; a
floor may not be above the k-th score.

To add one: a subclass in a file of `index.tops.policies`, and a line in its registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["BY_LENGTH", "FOR_ROOM", "Policy", "Roots", "nth_score"]

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

# When entries go
FOR_ROOM = 0  # dominated ones, and what makes a buffer too long: when room is needed
BY_LENGTH = 1  # when a buffer is too long; dominated ones stay


def nth_score(n: Longs, offsets: Longs, scores: Reals, otherwise: float = -np.inf) -> Reals:
    """The n-th score of each list; where there are fewer, `otherwise`."""
    at = np.minimum(offsets[:-1] + n - 1, max(len(scores) - 1, 0))
    known = np.append(scores, otherwise)[at]
    return np.where(np.diff(offsets) >= n, known, otherwise)


class Policy(ABC):
    """What is kept besides the result."""

    name: ClassVar[str]
    paper: ClassVar[str]
    about: ClassVar[str]
    upkeep: ClassVar[int] = FOR_ROOM
    skyband: ClassVar[bool] = False
    """Whether dominated objects are left out when a buffer is filled, too."""

    @abstractmethod
    def depth(self, k: Longs) -> Longs:
        """How many of the best objects are fetched when a buffer is filled: at least k."""

    def most(self, k: Longs) -> Longs:
        """A buffer with more entries is cut: to `depth`, or so that it has `most`."""
        return np.full(np.shape(k), 2**31 - 1)

    def floors(self, k: Longs, offsets: Longs, scores: Reals, full: Flags) -> Reals:
        """The floor of each buffer that was filled with these scores, best first.

        `full`: there may be more that was not fetched; else that is all there is, and by default
        all that comes is taken too. A floor above the last score makes the buffer drop what is
        below it; one below the last score of a list that is full makes the search go deeper.
        """
        del k
        last = np.maximum(offsets[1:] - 1, 0)
        found = np.where(full & (np.diff(offsets) > 0), scores[last] if len(scores) else 0.0, 0.0)
        return np.where(full, found, -np.inf)

    # -- what it may learn from; the numbers last as long as the arena -------------------------

    def attach(self, numbers: Reals) -> None:  # noqa: B027 -- most learn nothing
        """Numbers of its own, zeros at first; how deep buffers are may depend on them."""

    def flow(self, held: int, came: int, left: int) -> None:  # noqa: B027 -- most learn nothing
        """The window holds so many objects; so many came and left since the last time."""

    def searched(self, searches: int, examined: int, first: bool) -> None:  # noqa: B027 -- as above
        """So many searches were done, and looked at so many objects; `first`: of new buffers."""


class Roots(Policy):
    """Room above k for the ups and downs of a count: some times its root.

    As many objects at least as good as the floor come as go; their number in the window wanders
    about where it began by the root of itself. At three roots above k it seldom comes down to k.
    """

    name = "roots"
    paper = "-"
    about = "k and three times its root besides (roots=X: X times); cut back when it grows"

    def __init__(self, roots: float = 3.0) -> None:
        if not roots >= 0.0:
            raise ValueError("roots are 0 or more")
        self.roots = roots

    def depth(self, k: Longs) -> Longs:
        return np.asarray(k + np.ceil(self.roots * np.sqrt(k)).astype(np.int64) + 1)

    def most(self, k: Longs) -> Longs:
        return np.asarray(self.depth(k) + np.ceil(np.sqrt(k)).astype(np.int64) + 8)
