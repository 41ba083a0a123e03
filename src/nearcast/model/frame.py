"""What a run says to its kinds besides the space: its sliding window, and how it scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["NO_IDF", "UNFITTED", "WINDOW", "Frame", "Idf", "Weights", "Window"]

_NEVER = -(2**62)


@dataclass(frozen=True, slots=True)
class Window:
    """The sliding window of a run: its latest `count` objects, or those younger than `span_ms`."""

    count: int = 0  # in object order; 0: it is a window of time
    span_ms: int = 0

    def __post_init__(self) -> None:
        if (self.count > 0) == (self.span_ms > 0) or min(self.count, self.span_ms) < 0:
            raise ValueError("a window has a count or a span, and it is 1 or more")

    def after(self, now: int) -> int:
        """Objects of the window have later times."""
        return now - self.span_ms if self.span_ms else _NEVER

    def first_rank(self, published: int) -> int:
        """The lowest rank of the window, after so many objects of the run."""
        return max(published - self.count, 0) if self.count else 0

    def holds(self, time: int, rank: int, now: int, published: int) -> bool:
        """Whether an object is in the window."""
        return time > self.after(now) and rank >= self.first_rank(published)


WINDOW = Window(count=1_000_000)
"""Of a run that names none."""


class Idf(NamedTuple):
    """A run's fitted table, by hash of keyword."""

    words: NDArray[np.uint64]  # ascending
    values: NDArray[np.float64]
    other: float  # the idf of a word that is not there

    def of_words(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The idf of each word."""
        if not len(self.words):
            return np.full(len(words), self.other)
        at = np.minimum(np.searchsorted(self.words, words), len(self.words) - 1)
        return np.where(self.words[at] == words, self.values[at], self.other)


NO_IDF = Idf(np.empty(0, np.uint64), np.empty(0), 1.0)


class Weights(Protocol):
    """The idf of keywords."""

    @property
    def hashed(self) -> Idf:
        """By hash, for kernels."""

    def of(self, word: Any) -> float:
        """Of one keyword, as text or as hash."""


class _Unfitted:
    """Without a table, every keyword weighs the same."""

    hashed = NO_IDF

    def of(self, word: Any) -> float:
        """Of any keyword."""
        del word  # N = 0, and no object holds it: ln 1 + 1
        return 1.0


UNFITTED: Weights = _Unfitted()


@dataclass(frozen=True, slots=True)
class Frame:
    """What a run says to its kinds."""

    window: Window = WINDOW
    maxdist: float | None = None  # where a query does not say; None: what is usual in the space
    idf: Weights = field(default=UNFITTED, compare=False)
