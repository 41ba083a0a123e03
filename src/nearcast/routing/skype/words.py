"""Who owns a word: the sets of keywords that DSkype deals to shards (section 7.3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.hashing import mix64_array
from nearcast.routing.arrays import Arrays, typed

Longs = NDArray[np.int64]
Hashes = NDArray[np.uint64]


def rows_at(offsets: Longs) -> Longs:
    """The row of each of the values that `offsets` divide."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


class Ragged(NamedTuple):
    """Rows of words: those of row i are `words[offsets[i]:offsets[i + 1]]`."""

    offsets: Longs
    words: Hashes

    @property
    def rows(self) -> Longs:
        """The row of each word."""
        return rows_at(self.offsets)


class WordSets(NamedTuple):
    """Sets of words, numbered from 0; how often each word is in messages orders prefixes."""

    words: Hashes  # ascending
    set: Longs  # of each word
    frequency: Longs  # of each word, in the sample that the sets were made from


_TYPES: Mapping[str, type[np.generic]] = {
    "words": np.uint64, "set": np.int64, "frequency": np.int64,
}  # fmt: skip


def of_arrays(named: Arrays) -> WordSets:
    """Sets by the names of their arrays."""
    return WordSets(**typed(named, _TYPES, "sets of words"))


def _places(sets: WordSets, words: Hashes) -> tuple[Longs, NDArray[np.bool_]]:
    at = np.minimum(np.searchsorted(sets.words, words), max(len(sets.words) - 1, 0))
    known = sets.words[at] == words if len(sets.words) else np.zeros(len(words), bool)
    return at, known


def set_of(sets: WordSets, words: Hashes, number: int) -> Longs:
    """The set of each word, out of `number` sets.

    A word that the sets were not made from is dealt by its hash: all words that are new to a
    stream in one set, the rarest, would load one shard.
    """
    at, known = _places(sets, words)
    dealt = (mix64_array(words) % np.uint64(number)).astype(np.int64)
    return np.where(known, sets.set[at] if len(sets.set) else 0, dealt)


def frequency_of(sets: WordSets, words: Hashes) -> Longs:
    """How often each word was in the sample."""
    at, known = _places(sets, words)
    return np.where(known, sets.frequency[at] if len(sets.set) else 0, 0)


def sets_of_rows(sets: WordSets, of: Ragged, number: int) -> tuple[Longs, Longs]:
    """(rows, sets): every set that has a word of a row, each once, by row."""
    owner = set_of(sets, of.words, number)
    pairs = np.unique(of.rows * number + owner)
    return pairs // number, pairs % number
