"""Word use that differs by region: a seeded rotation of the ranks of a share of the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearcast.workload.powerlaw import PowerLaw
from nearcast.workload.ragged import Floats, Ids, Longs

_PER_MILLE = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Dialects:
    """Turns ranks into word ids, region by region.

    A ``local_per_mille`` share of the ranks, evenly spread, belongs to local words; region g gives
    local rank j to local word (j + shifts[g]) mod J. So every region keeps the same law, the words
    of the other ranks mean the same everywhere (the "and" and "the" of the corpus), and each
    region has favourites of its own.
    """

    law: PowerLaw
    local_per_mille: int
    shifts: Longs

    @property
    def local_words(self) -> int:
        """How many words are local."""
        return self.law.size * self.local_per_mille // _PER_MILLE

    def draw(self, regions: Longs, rng: np.random.Generator) -> Ids:
        """One word id for each entry of ``regions``, by that region's frequencies."""
        return self.words(self.law.draw(len(regions), rng), regions)

    def words(self, ranks: Longs, regions: Longs) -> Ids:
        """The word that has this rank in this region."""
        share, total = self.local_per_mille, self.local_words
        if total == 0:
            return ranks.astype(np.int32)
        index = ranks * share // _PER_MILLE
        local = np.flatnonzero((ranks + 1) * share // _PER_MILLE > index)
        rotated = (index[local] + self.shifts[regions[local]]) % total
        words = ranks.astype(np.int32)
        # The r whose local index is j is the smallest with (r + 1) * share >= (j + 1) * 1000.
        words[local] = -(-(rotated + 1) * _PER_MILLE // share) - 1
        return words

    def frequencies(self, weights: Floats) -> Floats:
        """The share of every word among all drawn, where region g is drawn with ``weights[g]``."""
        overall = self.law.probabilities()
        ranks = np.arange(self.law.size, dtype=np.int64) * self.local_per_mille
        local = (ranks + self.local_per_mille) // _PER_MILLE > ranks // _PER_MILLE
        by_rank = overall[local]
        mixed = np.zeros_like(by_rank)
        for weight, shift in zip(weights, self.shifts, strict=True):
            mixed += weight * np.roll(by_rank, int(shift))
        overall[local] = mixed
        return overall
