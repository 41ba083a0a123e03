"""Tornado's partitions and its baselines as the common routing table (`routing.grid.table`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.base import Sample
from nearcast.routing.grid.survey import Numbers, RangeSurvey, Reals, Words
from nearcast.routing.grid.table import GridTable, column_of, hooks, line_of, sealed
from nearcast.routing.tornado.a_grid import Cells, Partitions, Ranges, cells_of
from nearcast.routing.tornado.costs import Costs, cell_costs
from nearcast.routing.tornado.decision import Decision, cells_after
from nearcast.routing.tornado.initialization import initial_partitions
from nearcast.routing.tornado.uniform import uniform_partitions


def tornado_table(
    sample: Sample, survey: RangeSurvey, bounds: Reals, side: int, shards: int, each: int = 1
) -> GridTable:
    """Section 4.1 from a sample of objects and queries; an object costs `each` besides q_l."""
    table = space_table(sample, bounds, np.zeros((side, side), np.int32))
    partitions = initial_partitions(sample_costs(table, sample, survey, each), shards)
    return with_partitions(table, partitions)


def uniform_table(sample: Sample, bounds: Reals, side: int, shards: int) -> GridTable:
    """Uni-Space-Rout (section 5.1): equal parts of the space."""
    return space_table(sample, bounds, cells_of(uniform_partitions(side, shards), side))


def text_table(sample: Sample, bounds: Reals, shards: int) -> GridTable:
    """Text-Rout (section 5.1): words are dealt to evaluators by their hash, wherever they are."""
    everywhere = np.full((1, 1), -1, np.int32)
    table = space_table(sample, bounds, everywhere)
    return sealed(
        table._replace(
            map_offsets=np.zeros(2, np.int64),
            worker_offsets=np.array([0, shards], np.int64),
            workers=np.arange(shards, dtype=np.int32),
        )
    )


def space_table(sample: Sample, bounds: Reals, cells: Cells) -> GridTable:
    """A table by place alone, with the words of the sample."""
    words, counts = np.unique(sample.words, return_counts=True)
    return sealed(
        GridTable(
            bounds=np.asarray(bounds),
            cells=cells,
            map_offsets=np.zeros(1, np.int64),
            map_words=np.empty(0, np.uint64),
            map_shards=np.empty(0, np.int32),
            worker_offsets=np.zeros(1, np.int64),
            workers=np.empty(0, np.int32),
            words=words,
            counts=counts,
        )
    )


def with_partitions(table: GridTable, partitions: Partitions) -> GridTable:
    """The table with these partitions, all else as it is."""
    return sealed(table._replace(cells=cells_of(partitions, len(table.cells))))


def after(table: GridTable, decision: Decision) -> GridTable:
    """The next version of a table: as it is when the moves of a decision are made."""
    return sealed(table._replace(cells=cells_after(table.cells, decision)))


def sample_costs(table: GridTable, sample: Sample, survey: RangeSurvey, each: int) -> Costs:
    """Equation (1) for every cell of the table, by a sample of objects and queries."""
    columns, rows = object_cells(table, frozen(sample.x), frozen(sample.y))
    owner = np.repeat(np.arange(len(survey.conjunction)), np.diff(survey.box_offsets))
    return cell_costs(
        len(table.cells),
        columns,
        rows,
        _with_universal(sample),
        ranges_of(table, frozen(survey.boxes)),
        box_hooks(table, survey, frozen(owner)),
        each,
    )


def _with_universal(sample: Sample) -> tuple[Numbers, Words]:
    """The words of every object, and the one that queries for any object hang under."""
    offsets = sample.word_offsets + np.arange(len(sample.word_offsets))
    return offsets, np.insert(sample.words, sample.word_offsets[1:], UNIVERSAL)


@njit
def object_cells(t: GridTable, x: Reals, y: Reals) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(columns, rows) of positions."""
    columns, rows = np.empty(len(x), np.int32), np.empty(len(x), np.int32)
    for i in range(len(x)):
        columns[i], rows[i] = column_of(t, x[i]), line_of(t, y[i])
    return columns, rows


@njit
def ranges_of(t: GridTable, boxes: Reals) -> Ranges:
    """The cells that boxes touch."""
    out = np.empty((len(boxes), 4), np.int32)
    for i in range(len(boxes)):
        out[i, 0], out[i, 1] = column_of(t, boxes[i, 0]), line_of(t, boxes[i, 1])
        out[i, 2], out[i, 3] = column_of(t, boxes[i, 2]), line_of(t, boxes[i, 3])
    return out


@njit(lean=True)
def _hooks(t: GridTable, s: RangeSurvey, row: int) -> tuple[int, int]:
    """(first, stop) of the words in `s.words` that a subscription hangs under."""
    return hooks(t, s.words, s.word_offsets[row], s.word_offsets[row + 1], s.conjunction[row])


@njit
def box_hooks(t: GridTable, s: RangeSurvey, owner: Numbers) -> tuple[Numbers, Words]:
    """(offsets, words) that each box hangs under, those of the subscription it belongs to."""
    offsets = np.zeros(len(owner) + 1, np.int64)
    for b in range(len(owner)):
        first, stop = _hooks(t, s, owner[b])
        offsets[b + 1] = offsets[b] + max(stop - first, 1)
    words = np.full(offsets[-1], UNIVERSAL)
    for b in range(len(owner)):
        first, stop = _hooks(t, s, owner[b])
        for i in range(first, stop):
            words[offsets[b] + i - first] = s.words[i]
    return offsets, words
