"""The loose prefix of a subscription (DSkype, definition 12), which says where it must be.

Keywords of a subscription are in the order of their frequency, the rarest first. A message that
holds none of the first p of them has at most the cosine wtsum of the rest; however near it is, its
score is at most alpha + (1 - alpha)·wtsum. While that is less than the k-th score it changes
nothing (lemma 7).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.skype.words import Hashes, Longs, Ragged, WordSets, frequency_of, rows_at

Reals = NDArray[np.float64]

_SLACK = 1e-12  # scores are float64 sums of a few dozen products


class Wanted(NamedTuple):
    """Subscriptions as they are dealt; weights are normalised, parallel to words."""

    x: Reals
    y: Reals
    alpha: Reals
    offsets: Longs
    words: Hashes
    weights: Reals
    id_hash: Hashes

    @property
    def ragged(self) -> Ragged:
        """Their words alone."""
        return Ragged(self.offsets, self.words)

    def take(self, rows: Longs) -> Wanted:
        """Some of them."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.append(0, np.cumsum(lengths))
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        own = (self.x[rows], self.y[rows], self.alpha[rows])
        return Wanted(*own, offsets, self.words[at], self.weights[at], self.id_hash[rows])


def in_order(of: Wanted, sets: WordSets) -> Wanted:
    """The same with the rarest word of each first."""
    order = np.lexsort((of.words, frequency_of(sets, of.words), of.ragged.rows))
    return of._replace(words=of.words[order], weights=of.weights[order])


def highest(alpha: Reals, wtsum: Reals) -> Reals:
    """The highest score of a message that shares only words whose weights sum up to `wtsum`.

    Without any it shares none, and is not taken: minus infinity.
    """
    most = alpha + (1.0 - alpha) * (wtsum * (1.0 + _SLACK)) + _SLACK
    return np.where(wtsum > 0.0, most, -np.inf)


def prefix_lengths(of: Wanted, kscore: Reals) -> Longs:
    """How many words of each, in their order, the loose prefix has: p of definition 12.

    `kscore`: the k-th score; minus infinity, while there are fewer than k: then it has all words.
    """
    rows = rows_at(of.offsets)
    total = np.append(0.0, np.cumsum(of.weights))
    rest = total[of.offsets[1:]][rows] - total[1:]  # of what comes behind each word
    last = np.arange(len(rows)) + 1 == of.offsets[1:][rows]
    rest = np.where(last, 0.0, np.maximum(rest, 0.0) + _SLACK * len(rows))
    needed = highest(of.alpha[rows], rest) >= kscore[rows]
    return np.bincount(rows[needed], minlength=len(kscore)) + 1


def prefixes(of: Wanted, kscore: Reals) -> Ragged:
    """The words of loose prefixes."""
    rows = rows_at(of.offsets)
    place = np.arange(len(rows)) - of.offsets[:-1][rows]
    lengths = np.minimum(prefix_lengths(of, kscore), np.diff(of.offsets))
    return Ragged(np.append(0, np.cumsum(lengths)), of.words[place < lengths[rows]])
