"""H2 of the grid^t: the terms that registered subscriptions are posted under, cell by cell.

A dispatcher of the paper sends an object only to the owners of those of its words that H2 of its
cell holds, and discards it if there is none (section IV-C). The engine does not: it routes the
splits of a batch side by side, and a subscription that another split of the same batch brings is
not in anybody's H2 yet. Experiments dispatch by it as the paper does.
"""

from __future__ import annotations

import numpy as np

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.hashing import mix64
from nearcast.model.jit import njit
from nearcast.routing.grid.counted import Counted, Table, holds
from nearcast.routing.grid.survey import Numbers, Reals, RegionSurvey, Words
from nearcast.routing.grid.table import (
    GridTable,
    Pairs,
    column_of,
    line_of,
    meet,
    owner_in,
    posting_words,
    shards_of,
    with_room,
    write_seen,
)


class Registered:
    """How many subscriptions are posted under each word in each cell of a table.

    `side`: cells along each axis, at most; several cells of a finer table then share theirs, which
    lets more objects through and takes less memory. 0: those of the table.
    """

    def __init__(self, table: GridTable, side: int = 0) -> None:
        self.table = table
        self._counted = Counted()
        self._shift = 0
        while side and max(table.cells.shape) >> self._shift > side:
            self._shift += 1

    def add(self, survey: RegionSurvey) -> None:
        """Subscriptions begin."""
        self._counted.add(_keys(self.table, self._shift, survey))

    def remove(self, survey: RegionSurvey) -> None:
        """Subscriptions end; they must have been added."""
        self._counted.remove(_keys(self.table, self._shift, survey))

    def follow(self, table: GridTable) -> bool:
        """Go by another table from now on, if only owners are new in it; whether that is so.

        H2 says which words subscriptions of a cell want; H1 of the table, which shard owns them.
        """
        old = self.table
        same = old.cells.shape == table.cells.shape and all(
            np.array_equal(getattr(old, name), getattr(table, name))
            for name in ("bounds", "words", "counts")
        )
        if same:
            self.table = table
        return same

    def __len__(self) -> int:
        """Entries of H2 over all cells."""
        return len(self._counted)

    @property
    def bytes(self) -> int:
        """Memory of H2."""
        return self._counted.bytes

    def wanted(self, x: Reals, y: Reals, word_offsets: Numbers, words: Words) -> Pairs:
        """(rows, shards) as `route_rows` has them, of what H2 lets through."""
        return _wanted(self.table, self._counted.table, self._shift, x, y, word_offsets, words)


@njit(lean=True)
def _key(line: int, column: int, word: np.uint64) -> np.uint64:
    """Of a cell and a word, not 0; two of them share a key as seldom as two words share a hash."""
    place = np.uint64(line) << np.uint64(32) | np.uint64(column)
    return mix64(word ^ mix64(place)) | np.uint64(1)


@njit(lean=True)
def _write_keys(t: GridTable, shift: int, s: RegionSurvey, row: int, out: Words, top: int) -> int:
    """Write the keys of a subscription behind `top`, if `out` has room; where they end."""
    first, stop = s.word_offsets[row], s.word_offsets[row + 1]
    first, stop = posting_words(t, s.words, first, stop, s.conjunction[row])
    for b in range(s.box_offsets[row], s.box_offsets[row + 1]):
        left, right = column_of(t, s.boxes[b, 0]) >> shift, column_of(t, s.boxes[b, 2]) >> shift
        low, high = line_of(t, s.boxes[b, 1]) >> shift, line_of(t, s.boxes[b, 3]) >> shift
        for line in range(low, high + 1):
            for column in range(left, right + 1):
                for i in range(first, max(stop, first + 1)):
                    if top < len(out):
                        word = s.words[i] if first < stop else UNIVERSAL
                        out[top] = _key(line, column, word)
                    top += 1
    return top


@njit
def _keys(t: GridTable, shift: int, s: RegionSurvey) -> Words:
    """The keys of all (cell, posting word) of subscriptions, a cell once per box."""
    out = np.empty(0, np.uint64)
    for _ in range(2):  # count, then write
        top = 0
        for row in range(len(s.conjunction)):
            top = _write_keys(t, shift, s, row, out, top)
        if len(out) == top:
            break
        out = np.empty(top, np.uint64)
    return out


@njit
def _wanted(
    t: GridTable,
    counted: Table,
    shift: int,
    x: Reals,
    y: Reals,
    word_offsets: Numbers,
    words: Words,
) -> Pairs:
    seen = np.full(shards_of(t), -1)
    rows, shards = np.empty(len(x) + 16, np.int64), np.empty(len(x) + 16, np.int64)
    top = 0
    for row in range(len(x)):
        line, column = line_of(t, y[row]), column_of(t, x[row])
        cell = t.cells[line, column]
        found = 0
        for i in range(word_offsets[row] - 1, word_offsets[row + 1]):
            word = words[i] if i >= word_offsets[row] else UNIVERSAL
            if holds(counted, _key(line >> shift, column >> shift, word)):
                found += meet(seen, row, owner_in(t, cell, word))
                if cell >= 0:
                    break
        if found:
            rows, shards = with_room(rows, top, found), with_room(shards, top, found)
            top = write_seen(rows, shards, top, row, seen)
    return rows[:top], shards[:top]
