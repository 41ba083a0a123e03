"""Which copy of a subscription reports a match.

It is the copy at the owner of (the object's cell, a posting word that the object holds). Others
may see the same object, by another word or because another kind needs it at their shard.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nearcast.index.base import WantedWords
from nearcast.model.jit import njit
from nearcast.routing.grid.survey import Numbers, Words
from nearcast.routing.grid.table import GridTable, column_of, held_posting_word, line_of, owner_in
from nearcast.wire.tables import ObjectColumns


def reported_by(
    table: GridTable,
    shard: int,
    objects: ObjectColumns,
    rows: Numbers,
    slots: Numbers,
    wanted: Callable[[Numbers], WantedWords],
) -> NDArray[np.bool_]:
    """Which matches (object row, slot) `shard` reports; `wanted` gives the words of slots."""
    cells = _cells(table, objects, rows)
    reported: NDArray[np.bool_] = cells == shard
    by_word = np.flatnonzero(cells < 0)
    if len(by_word):
        offsets, words, conjunction = wanted(slots[by_word])
        reported[by_word] = _by_word(
            table, shard, objects, rows[by_word], cells[by_word], offsets, words, conjunction
        )
    return reported


@njit
def _cells(t: GridTable, o: ObjectColumns, rows: Numbers) -> Numbers:
    out = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        out[i] = t.cells[line_of(t, o.y[rows[i]]), column_of(t, o.x[rows[i]])]
    return out


@njit
def _by_word(
    t: GridTable,
    shard: int,
    o: ObjectColumns,
    rows: Numbers,
    cells: Numbers,
    offsets: Numbers,
    words: Words,
    conjunction: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    out = np.empty(len(rows), np.bool_)
    for i in range(len(rows)):
        start, end = o.word_offsets[rows[i]], o.word_offsets[rows[i] + 1]
        word = held_posting_word(
            t, words, offsets[i], offsets[i + 1], conjunction[i], o.words, start, end
        )
        out[i] = owner_in(t, cells[i], word) == shard
    return out
