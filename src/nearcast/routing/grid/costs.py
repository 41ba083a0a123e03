"""What the objects of each cell cost (equation 1 of Tornado), for plans and for the balance.

q_l is the number of queries that an object is checked against. It counts a query once for each
word that the query is posted under and the object has, if its range touches the object's cell:
that is what an index of such words reads. A query of the paper is a conjunction and is posted
under one word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.base import Sample
from nearcast.routing.grid.survey import Numbers, Reals, RegionSurvey, Words
from nearcast.routing.grid.table import GridTable, column_of, line_of, posting_words

Costs = NDArray[np.int64]  # [side, side]
Ranges = NDArray[np.int32]  # [q, 4]: xcellmin, ycellmin, xcellmax, ycellmax, all inclusive


class Places(NamedTuple):
    """What has a word, sorted by word: objects by their cell, or queries by their range."""

    words: Words  # [n] ascending
    boxes: Ranges  # [n, 4]


def cell_costs(
    side: int,
    columns: NDArray[np.int32],
    rows: NDArray[np.int32],
    objects: tuple[NDArray[np.int64], Words],
    ranges: Ranges,
    queries: tuple[NDArray[np.int64], Words],
    each: int = 0,
) -> Costs:
    """Equation (1) for every cell: the sum of q_l over the objects in it.

    `objects` and `queries`: (offsets, words) of the objects in cells (`columns`, `rows`) and of the
    queries with `ranges`. A query for any object is posted under a word that all objects are given.
    `each`: what an object costs besides.
    """
    points = np.stack([columns, rows, columns, rows], axis=1).astype(np.int32)
    costs = np.zeros((side, side), np.int64)
    np.add.at(costs, (rows, columns), each)
    _count(_places(points, *objects), _places(np.asarray(ranges, np.int32), *queries), costs)
    return costs


def _places(boxes: Ranges, offsets: NDArray[np.int64], words: Words) -> Places:
    order = np.argsort(words, kind="stable")
    owner = np.repeat(np.arange(len(boxes)), np.diff(offsets))
    return Places(frozen(words[order]), frozen(boxes[owner[order]]))


@njit(lean=True)
def _run(words: Words, start: int) -> int:
    """Where the run of equal words from `start` on ends."""
    stop = start
    while stop < len(words) and words[stop] == words[start]:
        stop += 1
    return stop


@njit
def _count(objects: Places, queries: Places, costs: Costs) -> None:
    """Word by word: pairs one by one, or over the whole grid where that is less work."""
    difference = np.empty((len(costs) + 1, len(costs) + 1), np.int64)
    o, q = 0, 0
    while o < len(objects.words) and q < len(queries.words):
        if objects.words[o] < queries.words[q]:
            o += 1
            continue
        if objects.words[o] > queries.words[q]:
            q += 1
            continue
        o_stop, q_stop = _run(objects.words, o), _run(queries.words, q)
        if (o_stop - o) * (q_stop - q) > 4 * difference.size:
            _over_grid(objects.boxes[o:o_stop], queries.boxes[q:q_stop], difference, costs)
        else:
            _pairs(objects.boxes[o:o_stop], queries.boxes[q:q_stop], costs)
        o, q = o_stop, q_stop


@njit(lean=True)
def _pairs(points: Ranges, ranges: Ranges, costs: Costs) -> None:
    for i in range(len(points)):
        x, y = points[i, 0], points[i, 1]
        count = 0
        for j in range(len(ranges)):
            across = ranges[j, 0] <= x and x <= ranges[j, 2]
            count += across and ranges[j, 1] <= y and y <= ranges[j, 3]
        costs[y, x] += count


@njit(lean=True)
def _over_grid(points: Ranges, ranges: Ranges, difference: Costs, costs: Costs) -> None:
    """The number of ranges over every cell first: corners, then sums along both axes."""
    side = len(costs)
    for y in range(side + 1):
        for x in range(side + 1):
            difference[y, x] = 0
    for j in range(len(ranges)):
        x1, y1, x2, y2 = ranges[j, 0], ranges[j, 1], ranges[j, 2] + 1, ranges[j, 3] + 1
        difference[y1, x1] += 1
        difference[y1, x2] -= 1
        difference[y2, x1] -= 1
        difference[y2, x2] += 1
    for y in range(side):
        line = 0
        for x in range(side):
            line += difference[y, x]
            difference[y, x] = line + (difference[y - 1, x] if y > 0 else 0)
    for i in range(len(points)):
        costs[points[i, 1], points[i, 0]] += difference[points[i, 1], points[i, 0]]


def sample_costs(table: GridTable, sample: Sample, survey: RegionSurvey, each: int) -> Costs:
    """Equation (1) for every cell of the table, by a sample of objects and queries."""
    columns, rows = object_cells(table, frozen(sample.x), frozen(sample.y))
    owner = np.repeat(np.arange(len(survey.conjunction)), np.diff(survey.box_offsets))
    return cell_costs(
        len(table.cells),
        columns,
        rows,
        _with_universal(sample),
        ranges_of(table, frozen(survey.boxes)),
        box_posting_words(table, survey, frozen(owner)),
        each,
    )


def _with_universal(sample: Sample) -> tuple[Numbers, Words]:
    """The words of every object, and the one that queries for any object are posted under."""
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
def _posting_words(t: GridTable, s: RegionSurvey, row: int) -> tuple[int, int]:
    """(first, stop) of the words in `s.words` that a subscription is posted under."""
    return posting_words(
        t, s.words, s.word_offsets[row], s.word_offsets[row + 1], s.conjunction[row]
    )


@njit
def box_posting_words(t: GridTable, s: RegionSurvey, owner: Numbers) -> tuple[Numbers, Words]:
    """(offsets, words) of each box: the words that its subscription is posted under."""
    offsets = np.zeros(len(owner) + 1, np.int64)
    for b in range(len(owner)):
        first, stop = _posting_words(t, s, owner[b])
        offsets[b + 1] = offsets[b] + max(stop - first, 1)
    words = np.full(offsets[-1], UNIVERSAL)
    for b in range(len(owner)):
        first, stop = _posting_words(t, s, owner[b])
        for i in range(first, stop):
            words[offsets[b] + i - first] = s.words[i]
    return offsets, words
