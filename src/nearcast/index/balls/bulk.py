"""Many new subscriptions against many objects at once: one search each, not one offer per object.

Objects stand in one k-d tree per word. A subscription searches the trees of its words, nearest
first, as far as its ball still reaches. That is the result it would have after being offered the
objects one by one. Only the changes in between are never made, so this is for runs that report net
changes, and for loading.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.balls.match import put_name
from nearcast.index.deciding import where_holds
from nearcast.index.posting import UNIVERSAL, Index, posting_words
from nearcast.kernels import results as rs
from nearcast.kernels import slots as sl
from nearcast.kernels.results import Results
from nearcast.model.extent import circle_boxes
from nearcast.model.jit import njit
from nearcast.model.space import distance
from nearcast.wire.tables import ObjectColumns

_LEAF = 8  # objects
_DEEP = 128  # entries of a stack: a tree of 2^60 objects has less


class Trees(NamedTuple):
    """One k-d tree per word, over the objects that hold it.

    A tree is a run of objects: the middle one splits it, along `axis`; those before it are not
    beyond the split, those behind it not before. Runs of up to _LEAF objects are not split.
    """

    words: NDArray[np.uint64]  # ascending
    bounds: NDArray[np.int64]  # [words + 1]: first object of each tree
    place: NDArray[np.float64]  # [objects, 2]: x, y
    number: NDArray[np.int32]
    axis: NDArray[np.uint8]  # of the split at each object


def make_trees(objects: ObjectColumns, universal: bool) -> Trees:
    """The trees of all words of `objects`; with `universal`, also one of all objects."""
    counts = np.diff(objects.word_offsets)[objects.order]
    number = np.repeat(np.arange(len(objects.order), dtype=np.int32), counts)
    before = np.cumsum(counts) - counts
    at = np.repeat(objects.word_offsets[:-1][objects.order] - before, counts)
    held = objects.words[at + np.arange(len(at))]
    if universal:
        held = np.concatenate([held, np.full(len(objects.order), UNIVERSAL)])
        number = np.concatenate([number, np.arange(len(objects.order), dtype=np.int32)])
    sort = np.argsort(held, kind="stable")
    number = number[sort]
    words, first = np.unique(held[sort], return_index=True)
    rows = objects.order[number]
    place = np.stack([objects.x[rows], objects.y[rows]], axis=1)
    bounds = np.append(first, len(number))
    trees = Trees(words, bounds, place, number, np.zeros(len(number), np.uint8))
    _split_all(trees)
    return trees


@njit(lean=True)
def _swap(t: Trees, i: int, j: int) -> None:
    for c in range(2):
        t.place[i, c], t.place[j, c] = t.place[j, c], t.place[i, c]
    t.number[i], t.number[j] = t.number[j], t.number[i]


@njit(lean=True)
def _select(t: Trees, lo: int, hi: int, middle: int, axis: int) -> None:
    """Put the object there that belongs at `middle` of [lo, hi] when sorted along `axis`."""
    while lo < hi:
        pivot = t.place[(lo + hi) >> 1, axis]
        i, j = lo, hi
        while i <= j:
            while t.place[i, axis] < pivot:
                i += 1
            while t.place[j, axis] > pivot:
                j -= 1
            if i <= j:
                _swap(t, i, j)
                i += 1
                j -= 1
        if middle <= j:
            hi = j
        elif middle >= i:
            lo = i
        else:
            return


@njit
def _split_all(t: Trees) -> None:
    stack = np.empty((_DEEP, 2), np.int64)
    for w in range(len(t.words)):
        stack[0, 0], stack[0, 1] = t.bounds[w], t.bounds[w + 1]
        top = 1
        while top > 0:
            top -= 1
            lo, hi = stack[top, 0], stack[top, 1]
            if hi - lo <= _LEAF:
                continue
            xs, ys = t.place[lo:hi, 0], t.place[lo:hi, 1]
            axis = 0 if xs.max() - xs.min() >= ys.max() - ys.min() else 1
            middle = (lo + hi) >> 1
            _select(t, lo, hi - 1, middle, axis)
            t.axis[middle] = axis
            stack[top, 0], stack[top, 1] = lo, middle
            stack[top + 1, 0], stack[top + 1, 1] = middle + 1, hi
            top += 2


# places in `Best.counts`
HELD, EXAMINED, SEARCHED, BOXES = 0, 1, 2, 3


class Best(NamedTuple):
    """The k nearest found so far, by (distance, number)."""

    distance: NDArray[np.float64]
    number: NDArray[np.int32]
    boxes: NDArray[np.float64]  # [2, 4]: around the ball of the k-th
    counts: NDArray[np.int64]  # [4]: how many it holds, objects examined, trees searched, boxes


def neighbours_first(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
    """An order in which neighbours follow each other: their searches meet the same objects."""
    columns = []
    for values in (x, y):
        low, high = float(np.min(values, initial=0.0)), float(np.max(values, initial=0.0))
        scaled = (values - low) / max(high - low, 1e-300) * 1023.0
        columns.append(np.nan_to_num(scaled).astype(np.int64))
    # Boustrophedon: rows of cells, every other one backwards.
    return np.lexsort((np.where(columns[1] & 1, -columns[0], columns[0]), columns[1]))


@njit(lean=True)
def _consider(best: Best, k: int, dist: float, number: int) -> None:
    """Put an object among the best, if it is one of them and not there already."""
    n = best.counts[HELD]
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
        best.counts[HELD] = n + 1
    for j in range(min(n, k - 1), at, -1):
        best.distance[j] = best.distance[j - 1]
        best.number[j] = best.number[j - 1]
    best.distance[at] = dist
    best.number[at] = np.int32(number)


def make_best(k: int) -> Best:
    """Room for up to `k`."""
    return Best(np.empty(k), np.empty(k, np.int32), np.empty((2, 4)), np.zeros(4, np.int64))


@njit(lean=True)
def _visit(
    ix: Index, r: Results, space: int, o: ObjectColumns, t: Trees, slot: int, e: int, best: Best
) -> None:
    """Consider the object at `e` of the trees."""
    best.counts[EXAMINED] += 1
    if not _may_hold(best, t.place[e, 0], t.place[e, 1]):
        return
    x, y = r.reals[slot, rs.X], r.reals[slot, rs.Y]
    k = min(r.rows[slot, rs.K], len(o.order))
    dist = distance(space, x, y, t.place[e, 0], t.place[e, 1])
    if best.counts[HELD] == k and dist > best.distance[k - 1]:
        return
    i = int(t.number[e])
    row = o.order[i]
    if sl.sees(ix.slots, slot, i, o.time[row], o.until[row]) and where_holds(ix, slot, o, row):
        _consider(best, k, dist, i)
        if best.counts[HELD] == k:
            best.counts[BOXES] = circle_boxes(space, x, y, best.distance[k - 1], best.boxes)


@njit(lean=True)
def _may_hold(best: Best, x: float, y: float) -> bool:
    """Whether the ball's boxes hold (x, y): cheaper than a distance."""
    boxes = best.boxes
    for b in range(best.counts[BOXES]):
        if boxes[b, 0] <= x <= boxes[b, 2] and boxes[b, 1] <= y <= boxes[b, 3]:
            return True
    return bool(best.counts[BOXES] == 0)


@njit(lean=True)
def _reaches(best: Best, axis: int, split: float, beyond: int) -> bool:
    """Whether the ball reaches the side of a split: beyond it (1) or before it (0)."""
    for b in range(best.counts[BOXES]):
        if best.boxes[b, 2 + axis] >= split if beyond else best.boxes[b, axis] <= split:
            return True
    return bool(best.counts[BOXES] == 0)


@njit(lean=True)
def _search(
    ix: Index, r: Results, space: int, o: ObjectColumns, t: Trees, slot: int,
    w: int, best: Best, stack: NDArray[np.int64],
) -> None:  # fmt: skip
    """Consider all objects of tree `w` that may be among the best."""
    best.counts[SEARCHED] += 1
    stack[0, 0], stack[0, 1], stack[0, 2] = t.bounds[w], t.bounds[w + 1], -1
    top = 1
    while top > 0:
        top -= 1
        lo, hi, split, beyond = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        if split >= 0 and not _reaches(best, t.axis[split], t.place[split, t.axis[split]], beyond):
            continue
        if hi - lo <= _LEAF:
            for e in range(lo, hi):
                _visit(ix, r, space, o, t, slot, e, best)
            continue
        middle = (lo + hi) >> 1
        _visit(ix, r, space, o, t, slot, middle, best)
        axis = t.axis[middle]
        near = 1 if r.reals[slot, rs.X + axis] > t.place[middle, axis] else 0
        for beyond in (1 - near, near):  # the last one in is the first one out
            stack[top, 0] = middle + 1 if beyond else lo
            stack[top, 1] = hi if beyond else middle
            stack[top, 2], stack[top, 3] = middle, beyond
            top += 1


@njit(lean=True)
def _keep(
    r: Results, o: ObjectColumns, slot: int, best: Best, names: NDArray[np.int64], report: bool
) -> None:
    """Make the best the result of `slot`. Room for its list, names and changes has been made."""
    n = best.counts[HELD]
    rs.make_room(r, slot, n)
    for j in range(n):
        i = int(best.number[j])
        row = o.order[i]
        if names[i] < 0:
            names[i] = put_name(r, o, row)
            r.meta[rs.NAMES_TOP] += 2 + o.id_offsets[row + 1] - o.id_offsets[row]
        rs.put(r, r.rows[slot, rs.LIST], j, j, best.distance[j], names[i])
        if report:
            rs.report(r, i, slot, rs.ENTER, o.time[row], names[i], best.distance[j])
    r.half[slot, rs.LENGTH] = np.int32(n)
    rs.touch(r, slot)


@njit
def find_all(
    ix: Index,
    r: Results,
    space: int,
    o: ObjectColumns,
    t: Trees,
    order: NDArray[np.int64],
    best: Best,
    names: NDArray[np.int64],
    report: bool,
) -> None:
    """Find the results of the slots `order`, which have none yet and no window."""
    stack = np.empty((_DEEP, 4), np.int64)
    for n in range(len(order)):
        slot = order[n]
        best.counts[HELD] = 0
        best.counts[BOXES] = 0
        first, words = posting_words(ix, slot)
        for i in range(first, first + words):
            word = ix.slots.heap[i] if i >= 0 else UNIVERSAL
            w = int(np.searchsorted(t.words, word))
            if w < len(t.words) and t.words[w] == word:
                _search(ix, r, space, o, t, slot, w, best, stack)
        if best.counts[HELD] > 0:
            _keep(r, o, slot, best, names, report)
