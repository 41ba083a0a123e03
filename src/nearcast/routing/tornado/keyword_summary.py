"""The textual summary of an evaluator (Tornado 3 and 3.1): its queries' posting words.

The paper keeps a hash set in the routing units; here it counts (`grid.counted`), and reports of
evaluators name the word of each query that ended: it does not matter how late they come.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.grid.counted import Counted, Keys, Table, holds

_HALF = np.uint64(32)


@njit(lean=True)
def _turn(word: np.uint64) -> np.uint64:
    """Both halves of a hash exchanged.

    Of equally rare words a query is posted under the one with the smallest hash. A table that puts
    words in the order of their hashes would be crowded at its beginning.
    """
    return np.uint64((word << _HALF) | (word >> _HALF))


def _turned(words: Keys) -> Keys:
    """`_turn` for each; twice is the same as never."""
    return (words << _HALF) | (words >> _HALF)


class KeywordSummary(Counted):
    """Words with the number of queries under each; a conjunction gives one of its words.

    A query that any object may match is posted under `UNIVERSAL`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.checked = 0  # objects looked up
        self.dropped = 0  # of them, objects that none of the queries can match

    @property
    def words(self) -> int:
        """Words with queries."""
        return len(self)

    def __contains__(self, word: int) -> bool:
        return bool(holds(self.table, _turned(np.array([word], np.uint64))[0]))

    def add(self, keys: Keys) -> Keys:
        """Queries began, by the word of each; the words that are new."""
        return _turned(super().add(_turned(keys)))

    def remove(self, keys: Keys) -> Keys:
        """Queries ended, by the word of each; an end of what is not there does nothing."""
        return _turned(self._remove(_turned(keys))[0])

    def may_match(self, offsets: NDArray[np.int64], words: Keys) -> NDArray[np.bool_]:
        """Whether objects, as (offsets, words), may match a query; others can be dropped."""
        every = np.arange(len(offsets) - 1)
        mine = Joined(self.table, np.array([0, len(self.table)]))
        found = may_match(mine, every, np.zeros_like(every), frozen(offsets), frozen(words))
        self.checked += len(found)
        self.dropped += len(found) - int(found.sum())
        return found


class Joined(NamedTuple):
    """The tables of some summaries, one behind the other."""

    rows: Table
    offsets: NDArray[np.int64]


@njit
def may_match(
    joined: Joined,
    rows: NDArray[np.int64],
    summaries: NDArray[np.int64],
    word_offsets: NDArray[np.int64],
    words: Keys,
) -> NDArray[np.bool_]:
    """Whether each object (row) may match a query of a summary."""
    out = np.empty(len(rows), np.bool_)
    for i in range(len(rows)):
        table = joined.rows[joined.offsets[summaries[i]] : joined.offsets[summaries[i] + 1]]
        out[i] = holds(table, _turn(UNIVERSAL))
        at, stop = word_offsets[rows[i]], word_offsets[rows[i] + 1]
        while at < stop and not out[i]:
            out[i] = holds(table, _turn(words[at]))
            at += 1
    return out
