"""A stream whose hot spot jumps: most objects fall around one place, later around another.

Boxes and words are those of `range_queries`. Subscriptions stand; with churn, some end in every
batch and as many begin, most of them around the hot spot of the day.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearcast.workload.range_queries import Places, Queries, more_objects, more_queries


@dataclass(frozen=True, slots=True)
class Shifting:
    """What the stream is like."""

    queries: int = 200_000
    batch: int = 20_000  # objects a batch
    phase: int = 20  # batches from one jump to the next
    share: float = 0.8  # of objects around the hot spot
    spread: float = 0.03  # of them, in each direction; the space is a unit square
    churn: int = 0  # subscriptions that end in each batch, and as many that begin
    seed: int = 7

    def spot(self, batch: int) -> NDArray[np.float64]:
        """The hot spot of a batch."""
        rng = np.random.default_rng([self.seed, 4, batch // self.phase])
        return rng.uniform(0.08, 0.92, size=2)

    def standing(self) -> Queries:
        """The subscriptions of the start."""
        return more_queries(self.queries, seed=self.seed)

    def arriving(self, batch: int) -> Queries:
        """The subscriptions that begin in a batch."""
        new = more_queries(self.churn, seed=self.seed * 1000 + batch)
        side = new.boxes[:, 2:] - new.boxes[:, :2]
        rng = np.random.default_rng([self.seed, 5, batch])
        low = np.clip(self._around(rng, batch, new.boxes[:, :2]), 0.0, 1.0 - side)
        return Queries(np.hstack([low, low + side]), new.words)

    def leaving(self, batch: int) -> NDArray[np.int64]:
        """The numbers of those that end: the oldest."""
        return np.arange(batch * self.churn, (batch + 1) * self.churn)

    def objects(self, batch: int) -> Places:
        """The objects of a batch."""
        usual = more_objects(self.batch, self.seed, batch)
        rng = np.random.default_rng([self.seed, 6, batch])
        return Places(np.clip(self._around(rng, batch, usual.at), 0.0, 1.0), usual.words)

    def _around(
        self, rng: np.random.Generator, batch: int, usual: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """A share of the places moved to the hot spot."""
        hot = rng.uniform(size=len(usual)) < self.share
        near = self.spot(batch) + rng.normal(size=usual.shape) * self.spread
        moved: NDArray[np.float64] = np.where(hot[:, None], near, usual)
        return np.round(moved, 9)
