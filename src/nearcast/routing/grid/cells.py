"""Cells of a table as a whole: finer ones, which ones differ between two tables, who touches them.

No subscription is looked at unless a change concerns it: a move of a few cells must not cost what
a plan costs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.grid.survey import Numbers, Reals, RegionSurvey, Words
from nearcast.routing.grid.table import (
    GridTable,
    column_of,
    line_of,
    owner_in,
    posting_words,
    sealed,
)

Mask = NDArray[np.bool_]


def refined(table: GridTable, side: int) -> GridTable:
    """The same table with at least `side` cells along each axis.

    Every owner stays: sides grow by powers of two, and by these a position falls into the finer
    cell within its coarser one, to the last bit.
    """
    times = 1
    while len(table.cells) * times < side:
        times *= 2
    if times == 1:
        return table
    return sealed(table._replace(cells=table.cells.repeat(times, axis=0).repeat(times, axis=1)))


def changed(old: GridTable, new: GridTable) -> Mask | None:
    """[side, side] of `new`: which cells have other owners than in `old`.

    None: the tables differ in more than owners (bounds, or what words are counted as rare), so that
    anything may have.
    """
    ratio, rest = divmod(len(new.cells), len(old.cells))
    same = all(
        np.array_equal(getattr(old, name), getattr(new, name))
        for name in ("bounds", "words", "counts")
    )
    if rest or ratio & (ratio - 1) or not same:
        return None
    before, after = refined(old, len(new.cells)).cells.ravel(), new.cells.ravel()
    out = before != after
    texts = np.flatnonzero((before < 0) | (after < 0))  # numbers of maps say nothing by themselves
    pairs = np.stack([before[texts], after[texts]], axis=1).view(np.int64).ravel()
    known, place = np.unique(pairs, return_inverse=True)
    held = known.view(np.int32).reshape(-1, 2).tolist()
    differ = [not _alike(old, a, new, b) for a, b in held]
    out[texts] = np.array(differ, bool)[place]
    return np.asarray(out.reshape(new.cells.shape))


def _alike(old: GridTable, a: int, new: GridTable, b: int) -> bool:
    """Whether what two cells hold means the same owners."""
    if a >= 0 or b >= 0:
        return a == b
    return all(np.array_equal(x, y) for x, y in zip(map_of(old, -1 - a), map_of(new, -1 - b)))


Map = tuple[Words, NDArray[np.int32], NDArray[np.int32]]  # words, shards of these, workers


def map_of(table: GridTable, n: int) -> Map:
    """Text map n: (words, their shards, the workers of all others)."""
    first, stop = table.map_offsets[n : n + 2]
    at, end = table.worker_offsets[n : n + 2]
    return table.map_words[first:stop], table.map_shards[first:stop], table.workers[at:end]


def summed(values: NDArray[Any]) -> Numbers:
    """[lines + 1, columns + 1]: the sum of all cells before a line and a column."""
    out = np.zeros((values.shape[0] + 1, values.shape[1] + 1), np.int64)
    out[1:, 1:] = values.cumsum(axis=0, dtype=np.int64).cumsum(axis=1)
    return out


def touching(table: GridTable, cells: Mask, box_offsets: Numbers, boxes: Reals) -> Mask:
    """Which subscriptions, by their outer boxes, touch any of the cells."""
    return _touching(table, frozen(summed(cells)), frozen(box_offsets), frozen(boxes))


@njit(lean=True)
def any_in(sums: Numbers, left: int, low: int, right: int, high: int) -> bool:
    """Whether a rectangle of cells, all ends included, has any of those that `sums` adds up."""
    inner = sums[high + 1, right + 1] + sums[low, left]
    return bool(inner != sums[low, right + 1] + sums[high + 1, left])


@njit
def _touching(t: GridTable, sums: Numbers, box_offsets: Numbers, boxes: Reals) -> Mask:
    out = np.zeros(len(box_offsets) - 1, np.bool_)
    for row in range(len(out)):
        for b in range(box_offsets[row], box_offsets[row + 1]):
            left, right = column_of(t, boxes[b, 0]), column_of(t, boxes[b, 2])
            low, high = line_of(t, boxes[b, 1]), line_of(t, boxes[b, 3])
            if any_in(sums, left, low, right, high):
                out[row] = True
                break
    return out


def only_posting_words(table: GridTable, survey: RegionSurvey) -> RegionSurvey:
    """The same survey with only the words that each subscription is posted under.

    So the rarest word of a conjunction is looked up once, however often it is needed.
    """
    offsets, words = _only_posting_words(table, survey)
    none = np.zeros(len(survey.conjunction), bool)
    return survey._replace(
        word_offsets=frozen(offsets), words=frozen(words), conjunction=frozen(none)
    )


@njit
def _only_posting_words(t: GridTable, s: RegionSurvey) -> tuple[Numbers, Words]:
    n = len(s.conjunction)
    offsets, words = np.zeros(n + 1, np.int64), np.empty(len(s.words), np.uint64)
    top = 0
    for row in range(n):
        first, stop = s.word_offsets[row], s.word_offsets[row + 1]
        first, stop = posting_words(t, s.words, first, stop, s.conjunction[row])
        for i in range(first, stop):
            words[top] = s.words[i]
            top += 1
        offsets[row + 1] = top
    return offsets, words[:top].copy()


@njit
def cells_at(t: GridTable, x: Reals, y: Reals) -> Numbers:
    """The cell of each position: line · side + column."""
    out = np.empty(len(x), np.int64)
    for i in range(len(x)):
        out[i] = line_of(t, y[i]) * t.cells.shape[1] + column_of(t, x[i])
    return out


@njit
def comes_to(
    t: GridTable, shard: int, x: Reals, y: Reals, word_offsets: Numbers, words: Words
) -> Mask:
    """Which objects a table sends to a shard."""
    out = np.zeros(len(x), np.bool_)
    for i in range(len(x)):
        cell = t.cells[line_of(t, y[i]), column_of(t, x[i])]
        out[i] = owner_in(t, cell, UNIVERSAL) == shard
        if cell < 0:
            for at in range(word_offsets[i], word_offsets[i + 1]):
                if out[i]:
                    break
                out[i] = owner_in(t, cell, words[at]) == shard
    return out
