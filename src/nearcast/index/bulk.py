"""Many new knn subscriptions against many objects at once: a search each, not an offer an object.

Objects hang in one small grid a word, its cells holding about two of them. A subscription looks
into the grids of its words, in rings around its place until it has k objects, then wherever its
ball still reaches. That is the result it would have after being offered the objects one by one;
only the changes in between are never made, so this is for runs that tell net changes, and for
loading.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.knn_match import put_name
from nearcast.index.posting import UNIVERSAL, Index, hooks
from nearcast.index.range_match import where_holds
from nearcast.kernels import results as rs
from nearcast.kernels import slots as sl
from nearcast.kernels.results import Results
from nearcast.model.extent import circle_boxes
from nearcast.model.jit import njit
from nearcast.model.space import distance
from nearcast.wire.tables import ObjectColumns

_A_CELL = 2.0  # objects


class Grids(NamedTuple):
    """A grid a word over the objects that hold it."""

    words: NDArray[np.uint64]  # ascending
    corner: NDArray[np.float64]  # [words, 4]: minx, miny, cells a unit of x, cells a unit of y
    cells: NDArray[np.int64]  # [words]: a side
    first: NDArray[np.int64]  # [words]: its first cell in `starts`
    starts: NDArray[np.int64]  # [cells + 1]: first of its objects
    number: NDArray[np.int32]  # of the objects, cell by cell


def make_grids(objects: ObjectColumns, universal: bool) -> Grids:
    """The grids of all words of `objects`; with `universal`, also one of all objects."""
    counts = np.diff(objects.word_offsets)[objects.order]
    number = np.repeat(np.arange(len(objects.order), dtype=np.int32), counts)
    at = np.repeat(objects.word_offsets[:-1][objects.order] - _before(counts), counts)
    held = objects.words[at + np.arange(len(at))]
    if universal:
        held = np.concatenate([held, np.full(len(objects.order), UNIVERSAL)])
        number = np.concatenate([number, np.arange(len(objects.order), dtype=np.int32)])
    sort = np.argsort(held, kind="stable")
    number = number[sort]
    words, first = np.unique(held[sort], return_index=True)
    bounds = np.append(first, len(number))
    rows = objects.order[number]
    return _fill(words, bounds, objects.x[rows], objects.y[rows], number)


def _before(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.cumsum(counts) - counts


@njit
def _fill(
    words: NDArray[np.uint64],
    bounds: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    number: NDArray[np.int32],
) -> Grids:
    n = len(words)
    corner = np.empty((n, 4))
    cells = np.empty(n, np.int64)
    first = np.empty(n, np.int64)
    total = 0
    for w in range(n):
        a, b = bounds[w], bounds[w + 1]
        cells[w] = max(int(np.sqrt((b - a) / _A_CELL)), 1)
        corner[w, 0], corner[w, 1] = x[a:b].min(), y[a:b].min()
        width, height = x[a:b].max() - corner[w, 0], y[a:b].max() - corner[w, 1]
        corner[w, 2] = cells[w] / width if width > 0.0 else 0.0
        corner[w, 3] = cells[w] / height if height > 0.0 else 0.0
        first[w] = total
        total += cells[w] * cells[w]
    starts = np.zeros(total + 1, np.int64)
    grids = Grids(words, corner, cells, first, starts, np.empty(len(number), np.int32))
    for w in range(n):
        for e in range(bounds[w], bounds[w + 1]):
            starts[_cell(grids, w, x[e], y[e]) + 1] += 1
    for c in range(total):
        starts[c + 1] += starts[c]
    place = starts[:-1].copy()
    for w in range(n):
        for e in range(bounds[w], bounds[w + 1]):
            c = _cell(grids, w, x[e], y[e])
            grids.number[place[c]] = number[e]
            place[c] += 1
    return grids


@njit
def _column(g: Grids, w: int, axis: int, value: float) -> int:
    """Column (axis 0) or row (axis 1) of a value in grid `w`, the nearest one if it is outside."""
    c = (value - g.corner[w, axis]) * g.corner[w, 2 + axis]
    last = g.cells[w] - 1
    if not c > 0.0:  # also what is no number: infinity times zero
        return 0
    return int(last) if c >= last else int(c)


@njit
def _cell(g: Grids, w: int, x: float, y: float) -> int:
    return int(g.first[w] + _column(g, w, 1, y) * g.cells[w] + _column(g, w, 0, x))


class Best(NamedTuple):
    """The k nearest found so far, by (distance, number)."""

    distance: NDArray[np.float64]
    number: NDArray[np.int32]
    counts: NDArray[np.int64]  # [3]: how many there are, objects examined, grids searched


@njit
def _consider(best: Best, k: int, dist: float, number: int) -> None:
    """Put an object among the best, if it is and is not there already."""
    n = best.counts[0]
    if n == k and not (
        dist < best.distance[k - 1]
        or (dist == best.distance[k - 1] and number < best.number[k - 1])
    ):
        return
    at = n
    while at > 0 and (
        best.distance[at - 1] > dist
        or (best.distance[at - 1] == dist and best.number[at - 1] > number)
    ):
        at -= 1
    if at > 0 and best.number[at - 1] == number:  # it holds two words of the subscription
        return
    if n < k:
        best.counts[0] = n + 1
    for j in range(min(n, k - 1), at, -1):
        best.distance[j] = best.distance[j - 1]
        best.number[j] = best.number[j - 1]
    best.distance[at] = dist
    best.number[at] = np.int32(number)


@njit
def _search_row(
    ix: Index, r: Results, space: int, o: ObjectColumns, g: Grids, slot: int,
    w: int, line: int, left: int, right: int, best: Best,
) -> None:  # fmt: skip
    """Consider the objects of the cells `left` to `right` of one row of grid `w`."""
    base = g.first[w] + line * g.cells[w]
    x, y, k = r.reals[slot, rs.X], r.reals[slot, rs.Y], min(r.rows[slot, rs.K], len(o.order))
    for e in range(g.starts[base + left], g.starts[base + right + 1]):
        i = int(g.number[e])
        row = o.order[i]
        dist = distance(space, x, y, o.x[row], o.y[row])
        best.counts[1] += 1
        if best.counts[0] == k and dist > best.distance[k - 1]:
            continue
        if sl.sees(ix.slots, slot, i, o.time[row], o.until[row]) and where_holds(ix, slot, o, row):
            _consider(best, k, dist, i)


@njit
def _search(
    ix: Index, r: Results, space: int, o: ObjectColumns, g: Grids, slot: int,
    w: int, best: Best, boxes: NDArray[np.float64],
) -> None:  # fmt: skip
    """Consider all objects of grid `w` that may be among the best."""
    best.counts[2] += 1
    k = min(r.rows[slot, rs.K], len(o.order))
    column = _column(g, w, 0, r.reals[slot, rs.X])
    line = _column(g, w, 1, r.reals[slot, rs.Y])
    last = g.cells[w] - 1
    ring = -1  # rings around the cell that are done
    while best.counts[0] < k and ring < last:
        ring += 1
        left, right = max(column - ring, 0), min(column + ring, last)
        for j in range(max(line - ring, 0), min(line + ring, last) + 1):
            if abs(j - line) == ring:
                _search_row(ix, r, space, o, g, slot, w, j, left, right, best)
                continue
            if column - ring >= 0:
                c = column - ring
                _search_row(ix, r, space, o, g, slot, w, j, c, c, best)
            if column + ring <= last:
                c = column + ring
                _search_row(ix, r, space, o, g, slot, w, j, c, c, best)
    if ring == last:
        return
    reach = best.distance[k - 1]
    n = circle_boxes(space, r.reals[slot, rs.X], r.reals[slot, rs.Y], reach, boxes)
    for b in range(n):
        left, right = _column(g, w, 0, boxes[b, 0]), _column(g, w, 0, boxes[b, 2])
        for j in range(_column(g, w, 1, boxes[b, 1]), _column(g, w, 1, boxes[b, 3]) + 1):
            if abs(j - line) > ring:
                _search_row(ix, r, space, o, g, slot, w, j, left, right, best)
                continue
            if left < column - ring:
                stop = min(right, column - ring - 1)
                _search_row(ix, r, space, o, g, slot, w, j, left, stop, best)
            if right > column + ring:
                start = max(left, column + ring + 1)
                _search_row(ix, r, space, o, g, slot, w, j, start, right, best)


@njit
def _keep(
    r: Results, o: ObjectColumns, slot: int, best: Best, names: NDArray[np.int64], tell: bool
) -> None:
    """Make the best the result of `slot`. Room for its list, names and changes has been made."""
    n = best.counts[0]
    rs.make_room(r, slot, n)
    for j in range(n):
        i = int(best.number[j])
        row = o.order[i]
        if names[i] < 0:
            names[i] = put_name(r, o, row)
            r.meta[rs.NAMES_TOP] += 2 + o.id_offsets[row + 1] - o.id_offsets[row]
        rs.put(r, r.rows[slot, rs.LIST], j, j, best.distance[j], o.time[row], names[i])
        if tell:
            rs.tell(r, i, slot, rs.ENTER, o.time[row], names[i], best.distance[j])
    r.half[slot, rs.LENGTH] = np.int32(n)
    rs.touch(r, slot)


@njit
def find_all(
    ix: Index,
    r: Results,
    space: int,
    o: ObjectColumns,
    g: Grids,
    start: int,
    best: Best,
    names: NDArray[np.int64],
    tell: bool,
) -> None:
    """Find the results of all slots from `start` on, which have none yet and no window."""
    boxes = np.empty((2, 4))
    for slot in range(start, ix.slots.meta[sl.COUNT]):
        best.counts[0] = 0
        first, words = hooks(ix, slot, False)
        for i in range(first, first + words):
            word = ix.slots.heap[i] if i >= 0 else UNIVERSAL
            w = int(np.searchsorted(g.words, word))
            if w < len(g.words) and g.words[w] == word:
                _search(ix, r, space, o, g, slot, w, best, boxes)
        if best.counts[0] > 0:
            _keep(r, o, slot, best, names, tell)
