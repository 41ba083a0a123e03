"""The textual summary of an evaluator (Tornado 3 and 3.1): the words that its queries hang under.

The paper keeps a hash set in the routing units; here it counts (`grid.counted`), and reports of
evaluators name the word of each query that ended: it does not matter how late they come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.grid.counted import Counted, Keys, Table, holds


class KeywordSummary(Counted):
    """Words with the number of queries under each; a conjunction gives one of its words.

    A query that any object may match hangs under `UNIVERSAL`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.checked = 0  # objects asked about
        self.dropped = 0  # of them, objects that none of the queries can match

    @property
    def words(self) -> int:
        """Words with queries."""
        return len(self)

    def may_match(self, offsets: NDArray[np.int64], words: Keys) -> NDArray[np.bool_]:
        """Whether objects, as (offsets, words), may match a query; others can be dropped."""
        found = _may_match(self.table, frozen(offsets), frozen(words))
        self.checked += len(found)
        self.dropped += len(found) - int(found.sum())
        return found


@njit
def _may_match(table: Table, offsets: NDArray[np.int64], words: Keys) -> NDArray[np.bool_]:
    out = np.empty(len(offsets) - 1, np.bool_)
    always = holds(table, UNIVERSAL)
    for i in range(len(out)):
        out[i] = always
        for j in range(offsets[i], offsets[i + 1]):
            if out[i]:
                break
            out[i] = holds(table, words[j])
    return out
