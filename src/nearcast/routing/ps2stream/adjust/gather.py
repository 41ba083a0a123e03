"""`CellStats` of a shard from what it holds and saw: what an engine keeps up batch by batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.model.jit import njit
from nearcast.routing.grid.survey import RangeSurvey
from nearcast.routing.grid.table import GridTable, column_of, hooks, line_of, owner_in
from nearcast.routing.ps2stream.adjust.stats import (
    CellStats,
    Costs,
    Numbers,
    Reals,
    Words,
    load_of,
)


class Seen(NamedTuple):
    """A period of one shard."""

    held: RangeSurvey  # at its end
    size: Numbers  # bytes of each
    came: NDArray[np.bool_]  # which of them were inserted in the period
    gone: RangeSurvey  # deleted in the period
    objects: Numbers  # the cell of each object that came


def cell_stats(table: GridTable, shard: int, seen: Seen, costs: Costs, p: int) -> CellStats:
    """One row a cell; words only of the `p` most loaded ones, which Phase I looks at."""
    cells = table.cells.size
    row, cell, word = touched(table, shard, seen.held)
    first = np.ones(len(row), bool)  # of a subscription in a cell; under other words follow
    first[1:] = (row[1:] != row[:-1]) | (cell[1:] != cell[:-1])
    once, at = row[first], cell[first]
    objects = np.bincount(seen.objects, minlength=cells).astype(np.float64)
    held = np.bincount(at, minlength=cells).astype(np.float64)
    size = np.bincount(at, seen.size[once], minlength=cells).astype(np.int64)
    inserted = np.bincount(at, seen.came[once], minlength=cells).astype(np.float64)
    ended, ended_at, _ = touched(table, shard, seen.gone)
    new = np.ones(len(ended), bool)
    new[1:] = (ended[1:] != ended[:-1]) | (ended_at[1:] != ended_at[:-1])
    deleted = np.bincount(ended_at[new], minlength=cells).astype(np.float64)
    used = np.flatnonzero((held > 0) | (objects > 0))
    counts = objects[used], held[used], inserted[used], deleted[used]
    loads = load_of(*counts, costs)
    top = used[np.argsort(-loads, kind="stable")[:p]]
    mine = np.isin(cell, top)
    words = _words(used, cell[mine], word[mine], seen.size[row[mine]])
    return CellStats(used, *counts, size[used], *words)


def _words(
    cells: Numbers, cell: Numbers, word: Words, size: Numbers
) -> tuple[Numbers, Words, Numbers, Numbers]:
    """(offsets, words, held, bytes) of the words of each of `cells`, from single hangings."""
    order = np.lexsort((word, cell))
    cell, word, size = cell[order], word[order], size[order]
    new = np.ones(len(word), bool)
    new[1:] = (cell[1:] != cell[:-1]) | (word[1:] != word[:-1])
    group = np.cumsum(new) - 1
    total = int(new.sum())
    lengths = np.bincount(np.searchsorted(cells, cell[new]), minlength=len(cells))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    held = np.bincount(group, minlength=total).astype(np.int64)
    return offsets, word[new], held, np.bincount(group, size, minlength=total).astype(np.int64)


def object_cells(table: GridTable, x: Reals, y: Reals) -> Numbers:
    """The cell of each position: row · side + column."""
    return _object_cells(table, x, y)


@njit
def _object_cells(t: GridTable, x: Reals, y: Reals) -> Numbers:
    out = np.empty(len(x), np.int64)
    for i in range(len(x)):
        out[i] = line_of(t, y[i]) * t.cells.shape[1] + column_of(t, x[i])
    return out


@njit(lean=True)
def _touch(
    t: GridTable,
    shard: int,
    s: RangeSurvey,
    row: int,
    out: tuple[Numbers, Numbers, Words],
    top: int,
) -> int:
    """Write where a subscription hangs at the shard behind `top`, if there is room; the end."""
    first, stop = s.word_offsets[row], s.word_offsets[row + 1]
    first, stop = hooks(t, s.words, first, stop, s.conjunction[row])
    for b in range(s.box_offsets[row], s.box_offsets[row + 1]):
        left, right = column_of(t, s.boxes[b, 0]), column_of(t, s.boxes[b, 2])
        for line in range(line_of(t, s.boxes[b, 1]), line_of(t, s.boxes[b, 3]) + 1):
            for column in range(left, right + 1):
                for i in range(first, max(stop, first + 1)):
                    word = s.words[i] if first < stop else UNIVERSAL
                    if owner_in(t, t.cells[line, column], word) != shard:
                        continue
                    if top < len(out[0]):
                        out[0][top] = row
                        out[1][top] = line * t.cells.shape[1] + column
                        out[2][top] = word
                    top += 1
    return top


@njit
def touched(t: GridTable, shard: int, s: RangeSurvey) -> tuple[Numbers, Numbers, Words]:
    """(row, cell, word) of all that hangs at `shard`, by row, then cell."""
    out = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint64)
    for _ in range(2):  # count, then write
        top = 0
        for row in range(len(s.conjunction)):
            top = _touch(t, shard, s, row, out, top)
        if len(out[0]) == top:
            break
        out = np.empty(top, np.int64), np.empty(top, np.int64), np.empty(top, np.uint64)
    return out
