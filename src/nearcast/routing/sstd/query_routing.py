"""Routing queries by the QT-tree (SSTD, section 4.2): to all leaves whose cells they overlap.

Keywords of a query are not looked at. So whatever keyword lists say, and however they differ from
router to router, the leaf of an object has every query that the object may match.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.grid.survey import RegionSurvey
from nearcast.routing.grid.table import Pairs, meet, with_room, write_seen
from nearcast.routing.sstd.cells import LEVELS, unit_of
from nearcast.routing.sstd.qt_tree import LEAF, STEPS, Numbers, QtTree, Reals

_STACK = 4 * STEPS + 4
Mask = NDArray[np.bool_]


class Boxes(NamedTuple):
    """Regions as outer boxes."""

    offsets: Numbers
    boxes: Reals


def query_leaves(tree: QtTree, survey: RegionSurvey) -> Pairs:
    """(rows, leaves): all leaves that each query overlaps, by row, each once."""
    return _leaves(tree, Boxes(frozen(survey.box_offsets), frozen(survey.boxes)))


def query_shards(tree: QtTree, survey: RegionSurvey, shards: int) -> Pairs:
    """(rows, shards): the workers of these leaves, by row, then shard, each once."""
    return _shards(tree, Boxes(frozen(survey.box_offsets), frozen(survey.boxes)), shards)


def queries_at(tree: QtTree, marked: Mask, box_offsets: Numbers, boxes: Reals) -> Mask:
    """Which queries overlap a marked leaf; `marked` is by node."""
    below = marked.copy()
    for node in range(len(tree.kind) - 1, -1, -1):  # children come after their parents
        if tree.kind[node] != LEAF:
            below[node] = below[tree.child[node] : tree.child[node] + 4].any()
    return _queries_at(tree, frozen(below), Boxes(frozen(box_offsets), frozen(boxes)))


@njit
def _queries_at(t: QtTree, below: Mask, q: Boxes) -> Mask:
    out = np.zeros(len(q.offsets) - 1, np.bool_)
    stack = np.empty(_STACK, np.int64)
    for row in range(len(out)):
        for b in range(q.offsets[row], q.offsets[row + 1]):
            units = _box_units(t, q.boxes, b)
            stack[0] = 0
            top = 1
            while top > 0 and not out[row]:
                top -= 1
                node = stack[top]
                if not below[node] or _apart(t, node, units):
                    continue
                if t.kind[node] == LEAF:
                    out[row] = True
                else:
                    for c in range(4):
                        stack[top] = t.child[node] + c
                        top += 1
    return out


@njit(lean=True)
def _box_units(t: QtTree, boxes: Reals, b: int) -> tuple[int, int, int, int]:
    """The first and last units of a box."""
    return (
        unit_of(boxes[b, 0], t.bounds[0], t.bounds[2]),
        unit_of(boxes[b, 1], t.bounds[1], t.bounds[3]),
        unit_of(boxes[b, 2], t.bounds[0], t.bounds[2]),
        unit_of(boxes[b, 3], t.bounds[1], t.bounds[3]),
    )


@njit(lean=True)
def _apart(t: QtTree, node: int, units: tuple[int, int, int, int]) -> bool:
    """Whether a box has nothing in common with the cell of a node."""
    left, low, right, high = units
    shift = LEVELS - np.int64(t.level[node])
    x, y = np.int64(t.column[node]), np.int64(t.line[node])
    across = left >> shift <= x and right >> shift >= x
    return not (across and low >> shift <= y and high >> shift >= y)


@njit
def _leaves(t: QtTree, q: Boxes) -> Pairs:
    n = len(q.offsets) - 1
    seen = np.full(len(t.kind), -1)
    found = np.empty(len(t.kind), np.int64)
    rows, leaves = np.empty(n + 16, np.int64), np.empty(n + 16, np.int64)
    stack = np.empty(_STACK, np.int64)
    top = 0
    for row in range(n):
        count = _overlapping(t, q, row, seen, stack, found)
        rows, leaves = with_room(rows, top, count), with_room(leaves, top, count)
        for i in range(count):
            rows[top], leaves[top] = row, found[i]
            top += 1
    return rows[:top], leaves[:top]


@njit
def _shards(t: QtTree, q: Boxes, shards: int) -> Pairs:
    n = len(q.offsets) - 1
    seen, met = np.full(len(t.kind), -1), np.full(shards, -1)
    found = np.empty(len(t.kind), np.int64)
    rows, out = np.empty(n + 16, np.int64), np.empty(n + 16, np.int64)
    stack = np.empty(_STACK, np.int64)
    top = 0
    for row in range(n):
        new = 0
        for i in range(_overlapping(t, q, row, seen, stack, found)):
            new += meet(met, row, np.int64(t.shard[found[i]]))
        rows, out = with_room(rows, top, new), with_room(out, top, new)
        top = write_seen(rows, out, top, row, met)
    return rows[:top], out[:top]


@njit(lean=True)
def _overlapping(
    t: QtTree, q: Boxes, row: int, seen: Numbers, stack: Numbers, found: Numbers
) -> int:
    """Write the leaves that the boxes of a query overlap to `found`; how many."""
    count = 0
    for b in range(q.offsets[row], q.offsets[row + 1]):
        units = _box_units(t, q.boxes, b)
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            if _apart(t, node, units):
                continue
            if t.kind[node] != LEAF:
                for c in range(4):
                    stack[top] = t.child[node] + c
                    top += 1
            elif seen[node] != row:
                seen[node] = row
                found[count] = node
                count += 1
    return count
