"""What shards report of their cells, and the loads that follow (Definitions 1 and 3).

A shard gathers one row for each cell in which it holds a subscription or saw an object: counters
that it adds to as objects and subscriptions come, and `held`, of which it keeps the mean over the
period. Words are only needed for the cells that Phase I looks at, the p most loaded of a shard;
elsewhere a row has none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]
Reals = NDArray[np.float64]


class Costs(NamedTuple):
    """The constants of Definition 1, in any one unit."""

    c1: float  # of checking an object against a subscription
    c2: float  # of handling an object
    c3: float  # of an insertion
    c4: float  # of a deletion


DEFINITION_3 = Costs(1.0, 0.0, 0.0, 0.0)  # L_g = n_o · n_q


class CellStats(NamedTuple):
    """The cells of one shard in a period: one row each, ascending, none twice.

    A subscription counts in each cell that it touches. In a cell that is partitioned by text the
    row is about this shard's part of it. Counts are float64, since forecasts have fractions.
    """

    cells: Numbers  # [n] row of the grid · side + column
    objects: Reals  # [n] n_o, those that came to this shard
    held: Reals  # [n] n_q, the average number of subscriptions
    inserted: Reals  # [n]
    deleted: Reals  # [n]
    size: Numbers  # [n] S_g, bytes of the subscriptions
    word_offsets: Numbers  # [n + 1]
    words: Words  # that subscriptions of the cell are posted under, ascending; UNIVERSAL among them
    word_held: Numbers  # how many under each; one under several words counts under each
    word_size: Numbers  # their bytes


class CellObjects(NamedTuple):
    """A recent sample of objects, those of a cell one after the other."""

    cells: Numbers  # [n] ascending
    word_offsets: Numbers  # [n + 1]
    words: Words


def cell_objects(cells: Numbers, word_offsets: Numbers, words: Words) -> CellObjects:
    """Objects in any order, sorted by cell."""
    order = np.argsort(cells, kind="stable")
    offsets, at = _runs(word_offsets, order)
    return CellObjects(cells[order], offsets, words[at])


def cell_loads(stats: CellStats, costs: Costs) -> Reals:
    """L_g of each row: Definition 1 for the cell alone; with `DEFINITION_3`, Definition 3."""
    return load_of(stats.objects, stats.held, stats.inserted, stats.deleted, costs)


def load_of(objects: Reals, held: Reals, inserted: Reals, deleted: Reals, c: Costs) -> Reals:
    """Definition 1. Objects are checked against what is held, not only what was inserted."""
    matching = c.c1 * (objects * held) + c.c2 * objects
    return matching + (c.c3 * inserted + c.c4 * deleted)


def worker_load(stats: CellStats, costs: Costs) -> float:
    """The load of a shard, the sum of its cells': an object meets subscriptions of its own cell."""
    return float(cell_loads(stats, costs).sum())


def row_of(stats: CellStats, cell: int) -> int:
    """The row of a cell; -1: it has none."""
    at = int(np.searchsorted(stats.cells, cell))
    return at if at < len(stats.cells) and stats.cells[at] == cell else -1


def take(stats: CellStats, rows: Numbers) -> CellStats:
    """Some of the rows, in ascending order."""
    offsets, at = _runs(stats.word_offsets, rows)
    counts = (column[rows] for column in stats[:6])
    words = (column[at] for column in stats[7:])
    return CellStats._make([*counts, offsets, *words])


def without(stats: CellStats, rows: Numbers) -> CellStats:
    """All rows but these."""
    return take(stats, np.setdiff1d(np.arange(len(stats.cells)), rows))


def join(a: CellStats, b: CellStats) -> CellStats:
    """Both: what they say of the same cell, and the same word in it, is added up."""
    cells, row = np.unique(np.concatenate([a.cells, b.cells]), return_inverse=True)
    counts = (
        _sums(np.concatenate([x, y]), row, len(cells)) for x, y in zip(a[1:6], b[1:6], strict=True)
    )
    rows = np.concatenate([_rows(a), _rows(b) + len(a.cells)])
    return CellStats._make([cells, *counts, *_join_words(a, b, row[rows], len(cells))])


def _join_words(
    a: CellStats, b: CellStats, row: Numbers, rows: int
) -> tuple[Numbers, Words, Numbers, Numbers]:
    """The words of each of `rows` rows, from those of both, which are in `row`."""
    words = np.concatenate([a.words, b.words])
    order = np.lexsort((words, row))
    row, words = row[order], words[order]
    new = np.ones(len(words), bool)
    new[1:] = (row[1:] != row[:-1]) | (words[1:] != words[:-1])
    group = np.cumsum(new) - 1
    total = int(new.sum())
    held = np.concatenate([a.word_held, b.word_held])[order]
    size = np.concatenate([a.word_size, b.word_size])[order]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row[new], minlength=rows))])
    return (
        offsets.astype(np.int64),
        words[new],
        _sums(held, group, total),
        _sums(size, group, total),
    )


def _sums(values: NDArray[Any], group: Numbers, groups: int) -> NDArray[Any]:
    out = np.zeros(groups, values.dtype)
    np.add.at(out, group, values)
    return out


def _rows(stats: CellStats) -> Numbers:
    """The row of each word."""
    return np.repeat(np.arange(len(stats.cells)), np.diff(stats.word_offsets))


def _runs(offsets: Numbers, rows: Numbers) -> tuple[Numbers, Numbers]:
    """(offsets, places) of the runs of `rows`."""
    lengths = np.diff(offsets)[rows]
    made = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return made, np.repeat(offsets[rows] - made[:-1], lengths) + np.arange(made[-1])
