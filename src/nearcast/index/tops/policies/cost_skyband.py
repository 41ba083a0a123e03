"""cSkyband (Skype section 6.2): the k-skyband above the threshold that costs least."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nearcast.index.tops.policies.cost import best_size
from nearcast.index.tops.policy import Flags, Longs, Policy, Reals, nth_score

__all__ = ["CostSkyband"]

UNIT = 200.0
"""What an object that a search looks at costs, in entries touched: 150 ns to 0.7 (bench skype)."""
# numbers that are learned
_HELD, _CAME, _LEFT, _FIRST, _AGAIN = 0, 1, 2, 3, 5  # searches, objects: two numbers each
_RECENT = 4.0  # rates are those of about a quarter of the window (section 8: a month of four)
_UNKNOWN = 500.0  # objects that a search looks at, before there was one


class CostSkyband(Policy):
    """The threshold is the score of the n-th best object; n has the least cost of equation 13.

    History is the window itself: the n-th best score is reached by n of its |W| messages, so
    prob(theta) is n/|W|. C_topk is the mean of what re-evaluations looked at so far (first results,
    while there was none), each object as
    `unit` entries of a buffer. Rates of a window of time are those of its recent past.
    """

    name = "cskyband"
    paper = "Skype section 6.2"
    about = "k-skyband above the threshold of least cost (cskyband=X: an object is X entries)"
    skyband = True

    def __init__(self, unit: float = UNIT) -> None:
        if not unit > 0.0:
            raise ValueError("an object looked at costs more than 0 entries")
        self.unit = unit
        self._known = np.zeros(7)

    def attach(self, numbers: Reals) -> None:
        self._known = numbers

    def searched(self, searches: int, examined: int, first: bool) -> None:
        at = _FIRST if first else _AGAIN
        self._known[at] += searches
        self._known[at + 1] += examined

    def flow(self, held: int, came: int, left: int) -> None:
        known = self._known
        fade = 0.5 ** (_RECENT * (came + left) / max(held + left, 1))
        known[_CAME] = known[_CAME] * fade + came
        known[_LEFT] = known[_LEFT] * fade + left
        known[_HELD] = held

    @property
    def search(self) -> float:
        """C_topk, in entries touched."""
        mean = _UNKNOWN
        for at in (_FIRST, _AGAIN):  # who is searched for again has more objects to look at
            searches, examined = self._known[at : at + 2]
            mean = examined / searches if searches else mean
        return float(max(self.unit * mean, 1.0))

    @property
    def rise(self) -> float:
        """The share of arrivals among recent updates; one half while nothing left."""
        came, left = self._known[_CAME], self._known[_LEFT]
        return float(came / (came + left)) if left else 0.5

    def size(self, k: int) -> int:
        """|s.A'_init|: how many objects reach the best threshold."""
        window = max(int(self._known[_HELD]), k)
        return _size(k, window, _rounded(self.search), round(self.rise, 2))

    def depth(self, k: Longs) -> Longs:
        distinct, which = np.unique(k, return_inverse=True)
        sizes = np.array([self.size(int(one)) for one in distinct.tolist()], np.int64)
        return np.asarray(sizes[which].reshape(np.shape(k)))

    def floors(self, k: Longs, offsets: Longs, scores: Reals, full: Flags) -> Reals:
        wanted = self.depth(k)
        # A search may have changed the best size since it was chosen.
        n = np.where(full, np.minimum(wanted, np.diff(offsets)), wanted)
        return nth_score(np.maximum(n, 1), offsets, scores)


def _rounded(cost: float) -> float:
    """To two digits: the best size changes slowly, and is remembered by cost."""
    return float(f"{cost:.1e}")


@lru_cache(maxsize=4096)
def _size(k: int, window: int, search: float, rise: float) -> int:
    return best_size(k, window, search, rise)
