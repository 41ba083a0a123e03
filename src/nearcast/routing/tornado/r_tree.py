"""The R-tree over partitions that Tornado compares the A-Grid with (figure 7).

Packed by slices (sort-tile-recursive), not grown by insertions: partitions do not overlap, and a
packed tree has the fewer overlaps among its nodes too.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.routing.tornado.a_grid import Found, Partitions, Ranges, with_room

FAN = 8  # entries of a node


class RTree(NamedTuple):
    """Level 0 are the partitions; an entry of level l + 1 encloses FAN of level l."""

    boxes: NDArray[np.int32]  # [*, 4], level after level
    levels: NDArray[np.int64]  # where each level begins, and the end
    partitions: NDArray[np.int32]  # the number of each box of level 0
    evaluators: int


def r_tree_of(partitions: Partitions) -> RTree:
    """The tree over all partitions that have cells."""
    used = np.flatnonzero(partitions[:, 0] <= partitions[:, 2])
    order = used[_tiled(partitions[used])]
    parts, levels = [np.asarray(partitions[order], np.int32)], [0, len(order)]
    while len(parts[-1]) > 1:
        starts = np.arange(0, len(parts[-1]), FAN)
        low = np.minimum.reduceat(parts[-1][:, :2], starts)
        high = np.maximum.reduceat(parts[-1][:, 2:], starts)
        parts.append(np.hstack([low, high]))
        levels.append(levels[-1] + len(starts))
    return RTree(
        frozen(np.concatenate(parts)),
        frozen(np.array(levels, np.int64)),
        frozen(order.astype(np.int32)),
        len(partitions),
    )


def _tiled(boxes: Partitions) -> NDArray[np.int64]:
    """Slices of about sqrt(n / FAN) nodes by the middle in x, each sorted by the middle in y."""
    nodes = max(ceil(len(boxes) / FAN), 1)
    size = FAN * ceil(sqrt(nodes))
    x, y = boxes[:, 0] + boxes[:, 2], boxes[:, 1] + boxes[:, 3]
    rank = np.empty(len(boxes), np.int64)
    rank[np.lexsort((y, x))] = np.arange(len(boxes))
    return np.lexsort((x, y, rank // size))


@njit
def r_tree_search(tree: RTree, ranges: Ranges) -> Found:
    """The partitions that each range of cells overlaps; steps: boxes compared."""
    offsets = np.zeros(len(ranges) + 1, np.int64)
    steps = np.zeros(len(ranges), np.int64)
    out = np.empty(len(ranges) + tree.evaluators, np.int32)
    stack = np.empty((FAN * len(tree.levels) + 1, 2), np.int64)
    top = 0
    for i in range(len(ranges)):
        out = with_room(out, top, tree.evaluators)
        top, steps[i] = _search(tree, ranges[i], stack, out, top)
        offsets[i + 1] = top
    return Found(offsets, out[:top].copy(), steps)


@njit(lean=True)
def _search(
    tree: RTree,
    r: NDArray[np.int32],
    stack: NDArray[np.int64],
    out: NDArray[np.int32],
    top: int,
) -> tuple[int, int]:
    stack[0, 0], stack[0, 1] = len(tree.levels) - 2, 0
    size, compared = 1, 0
    while size > 0:
        size -= 1
        level, at = stack[size, 0], stack[size, 1]
        box = tree.boxes[tree.levels[level] + at]
        compared += 1
        if box[0] > r[2] or box[2] < r[0] or box[1] > r[3] or box[3] < r[1]:
            continue
        if level == 0:
            out[top] = tree.partitions[at]
            top += 1
            continue
        end = min(at * FAN + FAN, tree.levels[level] - tree.levels[level - 1])
        for child in range(at * FAN, end):
            stack[size, 0], stack[size, 1] = level - 1, child
            size += 1
    return top, compared
