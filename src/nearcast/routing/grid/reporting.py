"""Which copy of a subscription tells a match: the one at the owner of the object's cell and hook.

Copies may see the same object, by another word or because another kind wanted it at their shard.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nearcast.index.base import Asked
from nearcast.model.jit import njit
from nearcast.routing.grid.survey import Numbers, Words
from nearcast.routing.grid.table import GridTable, column_of, held_hook, line_of, owner_in
from nearcast.wire.tables import ObjectColumns


def tells(
    table: GridTable,
    shard: int,
    objects: ObjectColumns,
    rows: Numbers,
    slots: Numbers,
    asked: Callable[[Numbers], Asked],
) -> NDArray[np.bool_]:
    """Which matches (object row, slot) `shard` tells; `asked` says what slots ask for."""
    cells = _cells(table, objects, rows)
    told: NDArray[np.bool_] = cells == shard
    by_word = np.flatnonzero(cells < 0)
    if len(by_word):
        offsets, words, conjunction = asked(slots[by_word])
        told[by_word] = _by_word(
            table, shard, objects, rows[by_word], cells[by_word], offsets, words, conjunction
        )
    return told


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
        hook = held_hook(t, words, offsets[i], offsets[i + 1], conjunction[i], o.words, start, end)
        out[i] = owner_in(t, cells[i], hook) == shard
    return out
