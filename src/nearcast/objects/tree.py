"""A tree over rows that are in some order of space: nodes are runs of rows, with a box each.

No pointers: a leaf is LEAF rows, a node FAN nodes of the level below. Where a node is follows
from its number. The order of rows decides how good the boxes are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.objects.base import Regions
from nearcast.objects.bounds import INSIDE, OUTSIDE, relation

__all__ = ["FAN", "LEAF", "Tree", "build_tree", "node_rows", "outer_boxes_of", "runs_in", "span_of"]

LEAF = 64
FAN = 16


class Tree(NamedTuple):
    """Nodes level by level, leaves first."""

    boxes: NDArray[np.float64]  # [nodes, 4]
    firsts: NDArray[np.int64]  # [levels + 1]: the first node of each level


@njit(lean=True)
def span_of(level: int) -> int:
    """Rows of a node."""
    span = LEAF
    for _ in range(level):
        span *= FAN
    return span


@njit(lean=True)
def node_rows(level: int, node: int, n: int) -> tuple[int, int]:
    """First and last row of a node, counted within its level."""
    span = span_of(level)
    return node * span, min(n, (node + 1) * span)


@njit
def build_tree(at: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The tree over positions [n, 2]: (boxes, firsts)."""
    n = len(at)
    sizes = [(n + LEAF - 1) // LEAF]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + FAN - 1) // FAN)
    firsts = np.zeros(len(sizes) + 1, np.int64)
    for level in range(len(sizes)):
        firsts[level + 1] = firsts[level] + sizes[level]
    boxes = np.empty((firsts[-1], 4))
    boxes[:, :2] = np.inf
    boxes[:, 2:] = -np.inf
    for row in range(n):
        box = boxes[row // LEAF]
        for axis in range(2):
            box[axis] = min(box[axis], at[row, axis])
            box[2 + axis] = max(box[2 + axis], at[row, axis])
    for level in range(1, len(sizes)):
        for child in range(sizes[level - 1]):
            small = boxes[firsts[level - 1] + child]
            box = boxes[firsts[level] + child // FAN]
            for axis in range(2):
                box[axis] = min(box[axis], small[axis])
                box[2 + axis] = max(box[2 + axis], small[2 + axis])
    return boxes, firsts


@njit
def outer_boxes_of(r: Regions, q: int) -> NDArray[np.float64]:
    """The boxes around the region of a query."""
    if r.box_offsets[q + 1] > r.box_offsets[q]:
        return r.boxes[r.box_offsets[q] : r.box_offsets[q + 1]]
    return r.numbers[r.offsets[q] : r.offsets[q + 1]]


@njit
def runs_in(
    space: int, t: Tree, n: int, code: int, data: NDArray[np.float64], outer: NDArray[np.float64]
) -> tuple[NDArray[np.int64], int]:
    """Runs of rows that may be in a region: (first, last, whether all are inside), and how many.

    They ascend; neighbours of one sort are one run.
    """
    runs = np.empty((64, 3), np.int64)
    m = 0
    stack = np.empty((FAN * len(t.firsts), 2), np.int64)
    stack[0, 0] = len(t.firsts) - 2
    stack[0, 1] = 0
    top = 1
    while top:
        top -= 1
        level, node = stack[top, 0], stack[top, 1]
        found = relation(space, code, data, outer, t.boxes[t.firsts[level] + node])
        if found == OUTSIDE:
            continue
        if found != INSIDE and level > 0:
            last = min((node + 1) * FAN, t.firsts[level] - t.firsts[level - 1])
            for child in range(last - 1, node * FAN - 1, -1):
                stack[top, 0] = level - 1
                stack[top, 1] = child
                top += 1
            continue
        first, last = node_rows(level, node, n)
        within = np.int64(found == INSIDE)
        if m and runs[m - 1, 1] == first and runs[m - 1, 2] == within:
            runs[m - 1, 1] = last
            continue
        if m == len(runs):
            more = np.empty((2 * m, 3), np.int64)
            more[:m] = runs
            runs = more
        runs[m, 0] = first
        runs[m, 1] = last
        runs[m, 2] = within
        m += 1
    return runs, m
