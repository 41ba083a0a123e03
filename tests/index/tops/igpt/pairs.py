"""Subscriptions and messages with their exact scores, for tests of Skype's bounds."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.igpt import bounds
from nearcast.model.score import blend, near, plain_sum
from nearcast.model.space import Space, distance

Floats = NDArray[np.float64]
WORDS = 12  # numbers of words are their order


def unit(weights: dict[int, float]) -> dict[int, float]:
    """The same with a norm of 1."""
    norm = plain_sum(w * w for w in weights.values()) ** 0.5
    return {word: w / norm for word, w in weights.items()}


def suffixes(weights: dict[int, float]) -> tuple[list[int], Floats, Floats]:
    """Words in order, wtsum and maxwt from each on, and a zero behind the last."""
    words = sorted(weights)
    own = np.array([weights[w] for w in words])
    sums, maxima = np.empty(len(words) + 1), np.empty(len(words) + 1)
    bounds.suffix_sums(own, len(words), sums)
    bounds.suffix_maxima(own, len(words), maxima)
    return words, sums, maxima


@dataclass
class Pair:
    """A subscription and a message; words are numbered in the order of all keywords."""

    space: Space
    alpha: float
    maxdist: float
    s_at: tuple[float, float]
    m_at: tuple[float, float]
    s: dict[int, float]
    m: dict[int, float]

    @property
    def near(self) -> float:
        """SSim, as in the contract."""
        return near(distance(self.space.code, *self.s_at, *self.m_at), self.maxdist)

    @property
    def cosine(self) -> float:
        """TSim, as in the contract."""
        return plain_sum(w * self.m[word] for word, w in self.s.items() if word in self.m)

    @property
    def score(self) -> float:
        """As in the contract."""
        return blend(self.alpha, self.near, self.cosine)

    @property
    def shared(self) -> list[int]:
        """Words of both, in order."""
        return sorted(set(self.s) & set(self.m))

    def needed(self, threshold: float, ssim: float | None = None) -> float:
        """lambda_T at a spatial bound; the exact one by default."""
        kscore = bounds.kscore_star(threshold, self.alpha)
        own = self.near if ssim is None else ssim
        return bounds.lambda_t(kscore, bounds.alpha_star(self.alpha), own)


def place(rng: Random, space: Space) -> tuple[float, float]:
    """Anywhere, also at borders and poles."""
    if space is Space.PLANAR:
        return rng.choice((0.0, 10.0, rng.uniform(-10, 10))), rng.uniform(-10, 10)
    lon = rng.choice((-180.0, 180.0, 179.99, rng.uniform(-180, 180), rng.uniform(-2, 2)))
    return lon, rng.choice((-90.0, 90.0, rng.uniform(-90, 90), rng.uniform(-2, 2)))


def words(rng: Random) -> dict[int, float]:
    """Some words with weights, in any order, which is that of the sums."""
    some = rng.sample(range(WORDS), rng.randint(1, 6))
    return unit({word: rng.choice((1.0, 1.0, rng.uniform(1, 9))) for word in some})


def pair(seed: int) -> Pair:
    """A subscription and a message that share a word."""
    rng = Random(seed)
    space = rng.choice(list(Space))
    far = 2.1e7 if space is Space.GEOGRAPHIC else 30.0
    alpha = rng.choice((0.0, 1.0, 1.0 - 1e-9, 1e-9, rng.random(), rng.random()))
    maxdist = rng.choice((far, far, far / 10, far / 1000))
    s, m = words(rng), words(rng)
    while not set(s) & set(m):
        m = words(rng)
    return Pair(space, alpha, maxdist, place(rng, space), place(rng, space), s, m)
