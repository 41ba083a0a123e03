"""k-skybands over a fixed threshold: Mouratidis et al.'s (Skype section 6.1), and the full one."""

from __future__ import annotations

import numpy as np

from nearcast.index.tops.policy import Flags, Longs, Policy, Reals, nth_score

__all__ = ["FullSkyband", "Skyband"]


class Skyband(Policy):
    """The k-skyband of all objects whose score is at least a part of the k-th at the last search.

    The paper tunes that part to 0.95; with 1 it is what [29] publishes.
    """

    name = "skyband"
    paper = "Skype section 6.1"
    about = "k-skyband above 0.95 of the k-th score at the last search (skyband=X: X of it)"
    skyband = True

    def __init__(self, part: float = 0.95) -> None:
        if not 0.0 <= part <= 1.0:
            raise ValueError("the part of the k-th score is from 0 to 1")
        self.part = part

    def depth(self, k: Longs) -> Longs:
        return np.asarray(2 * k)  # a search that stops above the threshold goes on deeper

    def floors(self, k: Longs, offsets: Longs, scores: Reals, full: Flags) -> Reals:
        del full
        return np.asarray(self.part * nth_score(k, offsets, scores))


class FullSkyband(Policy):
    """The k-skyband of the whole window: no search after the first one."""

    name = "skyband-full"
    paper = "Skype section 6.1"
    about = "k-skyband of the whole window; never filled again"
    skyband = True

    def depth(self, k: Longs) -> Longs:
        return np.full(np.shape(k), 2**31 - 1)
