"""Equations (1) to (3) of Tornado: what objects cost in cells, and cells in partitions.

q_l, the number of queries that an object is held against, counts a query once for each word that
it hangs under and the object has, where its range touches the object's cell: that is what an index
of such words reads. A query of the paper is a conjunction and hangs under one word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.grid.cells import summed
from nearcast.routing.tornado.a_grid import Partitions, Ranges

Costs = NDArray[np.int64]  # [side, side]
Words = NDArray[np.uint64]


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
    queries with `ranges`. A query for any object hangs under a word that all objects are given.
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


def partition_costs(costs: Costs, partitions: Partitions) -> NDArray[np.int64]:
    """Equation (2) for every partition."""
    sums = summed(costs)
    x1, y1, x2, y2 = partitions[:, 0], partitions[:, 1], partitions[:, 2] + 1, partitions[:, 3] + 1
    found = sums[y2, x2] - sums[y1, x2] - sums[y2, x1] + sums[y1, x1]
    return np.asarray(np.where(x1 < x2, found, 0))


def largest_cost(costs: Costs, partitions: Partitions) -> int:
    """Equation (3): alpha, the cost of the dearest partition."""
    return int(partition_costs(costs, partitions).max(initial=0))
