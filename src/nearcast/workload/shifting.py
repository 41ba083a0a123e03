"""A stream whose hot spot jumps: most objects fall around one place, later around another.

Boxes and words are those of `range_queries`. Subscriptions stand; with churn, some end in every
batch and as many begin, most of them around the hot spot of the day.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nearcast.workload.range_queries import Places, Queries, more_objects, more_queries


@lru_cache(maxsize=1)
def _standing(n: int, side_max: float, seed: int) -> Queries:
    return more_queries(n, side_max, seed)


@dataclass(frozen=True, slots=True)
class Shifting:
    """What the stream is like."""

    queries: int = 500_000
    batch: int = 150_000  # objects per batch
    phase: int = 15  # batches from one jump to the next
    share: float = 0.8  # of objects around the hot spot
    spread: float = 0.03  # of them, in each direction; the space is a unit square
    side_max: float = 0.02  # of the boxes of subscriptions
    churn: int = 0  # subscriptions that end in each batch, and as many that begin
    seed: int = 7

    def spot(self, batch: int) -> NDArray[np.float64]:
        """The hot spot of a batch: where some subscription is, so most likely where many are."""
        boxes = self.standing().boxes
        rng = np.random.default_rng([self.seed, 4, batch // self.phase])
        box = boxes[rng.integers(len(boxes))]
        return np.asarray(0.5 * (box[:2] + box[2:]))

    def standing(self) -> Queries:
        """The subscriptions of the start."""
        return _standing(self.queries, self.side_max, self.seed)

    def arriving(self, batch: int) -> Queries:
        """The subscriptions that begin in a batch."""
        new = more_queries(self.churn, self.side_max, self.seed * 1000 + batch)
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
