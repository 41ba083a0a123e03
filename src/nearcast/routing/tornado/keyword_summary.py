"""The textual summary of an evaluator (Tornado 3 and 3.1): the words that its queries hang under.

The paper keeps a hash set in the routing units, to which new words are added, and from which
evaluators have expired ones removed from time to time. A word that a new query brings while its
removal is under way would be lost. Here every word has the number of its queries, and reports of
evaluators name the word of each query that ended: it does not matter how late they come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.postings import find
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit

Words = NDArray[np.uint64]
_WORD, _QUERIES = 0, 1
_LEAST = 64


class KeywordSummary:
    """Words with the number of queries under each; a conjunction gives one of its words.

    A query that any object may match hangs under `UNIVERSAL`.
    """

    def __init__(self) -> None:
        self._table = np.zeros((_LEAST, 2), np.uint64)
        self._rows = 0  # in use, words without queries among them
        self.words = 0  # with queries
        self.checked = 0  # objects asked about
        self.dropped = 0  # of them, objects that none of the queries can match

    @property
    def room(self) -> int:
        """Rows of the table, of 16 bytes each."""
        return len(self._table)

    def add(self, words: Words) -> Words:
        """Queries under `words` came; the words that are new, for other routing units."""
        self._make_room(len(words))
        new = np.empty(len(words), np.uint64)
        rows, count = _add(self._table, frozen(words), new)
        self._rows += rows
        self.words += count
        return new[:count].copy()

    def remove(self, words: Words) -> Words:
        """Queries under `words` ended, as evaluators report; the words that have none now."""
        gone = np.empty(len(words), np.uint64)
        count, unknown = _remove(self._table, frozen(words), gone)
        self.words -= count
        if unknown:
            raise ValueError(f"{unknown} queries ended that were never added")
        return gone[:count].copy()

    def may_match(self, offsets: NDArray[np.int64], words: Words) -> NDArray[np.bool_]:
        """Whether objects, as (offsets, words), may match a query; others can be dropped."""
        found = _may_match(self._table, frozen(offsets), frozen(words))
        self.checked += len(found)
        self.dropped += len(found) - int(found.sum())
        return found

    def __contains__(self, word: int) -> bool:
        """Whether queries hang under the word."""
        row = find(self._table, np.uint64(word))
        return row >= 0 and bool(self._table[row, _QUERIES] > 0)

    def _make_room(self, more: int) -> None:
        """Keep the table at most half full; words without queries are left behind."""
        if 2 * (self._rows + more) <= len(self._table):
            return
        size = _LEAST
        while size < 4 * (self.words + more):
            size *= 2
        larger = np.zeros((size, 2), np.uint64)
        self._rows = _keep(self._table, larger)
        self._table = larger


@njit(lean=True)
def _add(table: Words, words: Words, new: Words) -> tuple[int, int]:
    """(rows taken, words that had no queries, written to `new`)."""
    rows, count = 0, 0
    for i in range(len(words)):
        row = find(table, words[i])
        if row < 0:
            row = -1 - row
            table[row, _WORD] = words[i]
            rows += 1
        if table[row, _QUERIES] == np.uint64(0):
            new[count] = words[i]
            count += 1
        table[row, _QUERIES] += np.uint64(1)
    return rows, count


@njit(lean=True)
def _remove(table: Words, words: Words, gone: Words) -> tuple[int, int]:
    """(words that have no queries now, written to `gone`; ends of what never began)."""
    count, unknown = 0, 0
    for i in range(len(words)):
        row = find(table, words[i])
        if row < 0 or table[row, _QUERIES] == np.uint64(0):
            unknown += 1
            continue
        table[row, _QUERIES] -= np.uint64(1)
        if table[row, _QUERIES] == np.uint64(0):
            gone[count] = words[i]
            count += 1
    return count, unknown


@njit(lean=True)
def _keep(old: Words, new: Words) -> int:
    """Put the words with queries into the empty `new`; how many."""
    kept = 0
    for i in range(len(old)):
        if old[i, _QUERIES] > np.uint64(0):
            row = -1 - find(new, old[i, _WORD])
            new[row, _WORD] = old[i, _WORD]
            new[row, _QUERIES] = old[i, _QUERIES]
            kept += 1
    return kept


@njit(lean=True)
def _holds(table: Words, word: np.uint64) -> bool:
    row = find(table, word)
    return row >= 0 and table[row, _QUERIES] > np.uint64(0)


@njit
def _may_match(table: Words, offsets: NDArray[np.int64], words: Words) -> NDArray[np.bool_]:
    out = np.empty(len(offsets) - 1, np.bool_)
    always = _holds(table, UNIVERSAL)
    for i in range(len(out)):
        out[i] = always
        for j in range(offsets[i], offsets[i + 1]):
            if out[i]:
                break
            out[i] = _holds(table, words[j])
    return out
