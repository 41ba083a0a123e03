"""H2 of the grid^t: the terms that registered subscriptions hang under, cell by cell.

A dispatcher of the paper sends an object only to the owners of those of its words that H2 of its
cell holds, and discards it if there is none (section IV-C). The engine does not: it routes the
splits of a batch side by side, and a subscription that another split of the same batch brings is
not in anybody's H2 yet. Experiments count here what a dispatcher would have left out.
"""

from __future__ import annotations

import numpy as np

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.hashing import mix64
from nearcast.model.jit import njit
from nearcast.routing.grid.survey import Numbers, RangeSurvey, Reals, Words
from nearcast.routing.grid.table import (
    GridTable,
    Pairs,
    column_of,
    find_word,
    hooks,
    line_of,
    owner_in,
)


class Registered:
    """How many subscriptions hang under each word in each cell of a table."""

    def __init__(self, table: GridTable) -> None:
        self.table = table
        self._keys = np.empty(0, np.uint64)  # of cell and word, ascending
        self._counts = np.empty(0, np.int64)

    def add(self, survey: RangeSurvey) -> None:
        """Subscriptions begin."""
        self._change(survey, 1)

    def remove(self, survey: RangeSurvey) -> None:
        """Subscriptions end; they must have been added."""
        self._change(survey, -1)

    def __len__(self) -> int:
        """Entries of H2 over all cells."""
        return len(self._keys)

    def _change(self, survey: RangeSurvey, by: int) -> None:
        keys = np.concatenate([self._keys, _keys(self.table, survey)])
        steps = np.full(len(keys), by)
        steps[: len(self._keys)] = self._counts
        known, place = np.unique(keys, return_inverse=True)
        counts = np.zeros(len(known), np.int64)
        np.add.at(counts, place, steps)
        self._keys, self._counts = known[counts > 0], counts[counts > 0]

    def wanted(self, x: Reals, y: Reals, word_offsets: Numbers, words: Words) -> Pairs:
        """(rows, shards) as `route_rows` has them, of what H2 lets through."""
        at, shards = _wanted(self.table, self._keys, x, y, word_offsets, words)
        pairs = np.unique(np.stack([at, shards], axis=1), axis=0)
        return pairs[:, 0], pairs[:, 1]


@njit(lean=True)
def _key(line: int, column: int, word: np.uint64) -> np.uint64:
    """Of a cell and a word; two of them share a key as seldom as two words share a hash."""
    return mix64(word ^ mix64(np.uint64(line) << np.uint64(32) | np.uint64(column)))


@njit(lean=True)
def _write_keys(t: GridTable, s: RangeSurvey, row: int, out: Words, top: int) -> int:
    """Write the keys of a subscription behind `top`, if `out` has room; where they end."""
    first, stop = s.word_offsets[row], s.word_offsets[row + 1]
    first, stop = hooks(t, s.words, first, stop, s.conjunction[row])
    for b in range(s.box_offsets[row], s.box_offsets[row + 1]):
        left, right = column_of(t, s.boxes[b, 0]), column_of(t, s.boxes[b, 2])
        for line in range(line_of(t, s.boxes[b, 1]), line_of(t, s.boxes[b, 3]) + 1):
            for column in range(left, right + 1):
                for i in range(first, max(stop, first + 1)):
                    if top < len(out):
                        word = s.words[i] if first < stop else UNIVERSAL
                        out[top] = _key(line, column, word)
                    top += 1
    return top


@njit
def _keys(t: GridTable, s: RangeSurvey) -> Words:
    """The keys of all (cell, hook) of subscriptions, a cell once a box."""
    out = np.empty(0, np.uint64)
    for _ in range(2):  # count, then write
        top = 0
        for row in range(len(s.conjunction)):
            top = _write_keys(t, s, row, out, top)
        if len(out) == top:
            break
        out = np.empty(top, np.uint64)
    return out


@njit
def _wanted(
    t: GridTable, keys: Words, x: Reals, y: Reals, word_offsets: Numbers, words: Words
) -> Pairs:
    rows = np.empty(len(words) + len(x), np.int64)
    shards = np.empty(len(words) + len(x), np.int64)
    top = 0
    for row in range(len(x)):
        line, column = line_of(t, y[row]), column_of(t, x[row])
        for i in range(word_offsets[row] - 1, word_offsets[row + 1]):
            word = words[i] if i >= word_offsets[row] else UNIVERSAL
            if find_word(keys, 0, len(keys), _key(line, column, word)) >= 0:
                rows[top], shards[top] = row, owner_in(t, t.cells[line, column], word)
                top += 1
    return rows[:top], shards[:top]
