"""kmax (Yi et al., Skype section 2.3): the best k' objects, k' between k and kmax."""

from __future__ import annotations

import numpy as np

from nearcast.index.tops.policy import BY_LENGTH, Longs, Policy

__all__ = ["Kmax"]


class Kmax(Policy):
    """All of the best, dominated or not, up to kmax; refilled with kmax when fewer than k are left.

    The paper tunes kmax to 60 for k = 20, so it is given in multiples of k.
    """

    name = "kmax"
    paper = "Skype section 2.3"
    about = "the best k to kmax, dominated or not; kmax is 3 times k (kmax=X: X times)"
    upkeep = BY_LENGTH

    def __init__(self, times: float = 3.0) -> None:
        if not times >= 1.0:
            raise ValueError("kmax is at least k, so 1 times k or more")
        self.times = times

    def depth(self, k: Longs) -> Longs:
        return np.asarray(np.maximum(np.rint(self.times * k), k), np.int64)

    def most(self, k: Longs) -> Longs:
        return self.depth(k)
