"""Splits of a quadtree: a box cut in four equal parts at its centre, over and over.

Part 1 is to the right, part 2 above, part 3 both; a point on the line belongs to the upper part.
A tree of such splits puts every point of the plane, outside the first box too, into one leaf.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit

Box: TypeAlias = NDArray[np.float64]  # [4]: minx, miny, maxx, maxy


class Quarters(NamedTuple):
    """A tree of splits; its first node is the whole plane."""

    centres: NDArray[np.float64]  # [nodes, 2]: where a node is cut
    parts: NDArray[np.int32]  # [nodes, 4]: its quarters; of a leaf, -1 - its number in the first


class Leaves(NamedTuple):
    """What `divide` knows of each leaf: its points are `order[first[i]:last[i]]`."""

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    cells: NDArray[np.float64]  # [leaves, 4]
    nodes: NDArray[np.int64]
    whole: NDArray[np.bool_]  # it cannot be split: all its points are at one spot


@njit
def halfway(lo: float, hi: float) -> float:
    """The middle; above `lo` even when there is no number in between, so that halves shrink."""
    middle = 0.5 * lo + 0.5 * hi
    return middle if lo < middle else hi


@njit
def quarter(cell: Box, cx: float, cy: float, part: int, out: Box) -> None:
    """Write quarter `part` of `cell`, cut at (cx, cy), to `out`."""
    right, upper = part & 1, part >> 1
    a, b, c, d = cell[0], cell[1], cell[2], cell[3]
    out[0], out[2] = (cx, c) if right else (a, cx)
    out[1], out[3] = (cy, d) if upper else (b, cy)


@njit
def descend(cell: Box, around: Box) -> tuple[float, float]:
    """Shrink `cell` to the quarter that holds all of `around` while there is one; its centre.

    Such a split separates nothing: it is done without looking at the points again.
    """
    while True:
        cx, cy = halfway(cell[0], cell[2]), halfway(cell[1], cell[3])
        if (around[0] < cx <= around[2]) or (around[1] < cy <= around[3]):
            return cx, cy
        quarter(cell, cx, cy, int(around[0] >= cx) + 2 * int(around[1] >= cy), cell)


@njit(lean=True)
def leaf_of(q: Quarters, x: float, y: float) -> int:
    """Number of the leaf that holds (x, y)."""
    node = np.int64(0)
    while q.parts[node, 0] >= 0:
        part = np.int64(x >= q.centres[node, 0]) + 2 * np.int64(y >= q.centres[node, 1])
        node = np.int64(q.parts[node, part])
    return -1 - np.int64(q.parts[node, 0])


@njit
def _around(xs: NDArray[np.float64], ys: NDArray[np.float64], members: NDArray[np.int64]) -> Box:
    """The box around some points."""
    box = np.array([np.inf, np.inf, -np.inf, -np.inf])
    for i in members:
        box[0], box[1] = min(box[0], xs[i]), min(box[1], ys[i])
        box[2], box[3] = max(box[2], xs[i]), max(box[3], ys[i])
    return box


@njit
def _largest(s: Leaves, leaves: int) -> int:
    """The leaf with the most points that may be split; -1 if there is none."""
    best = -1
    most = 1
    for i in range(leaves):
        if not s.whole[i] and s.last[i] - s.first[i] > most:
            best, most = i, s.last[i] - s.first[i]
    return best


@njit
def _sort(
    members: NDArray[np.int64],
    xs: NDArray[np.float64],
    ys: NDArray[np.float64],
    cx: float,
    cy: float,
) -> NDArray[np.int64]:
    """Sort `members` by their quarter; where each begins (five bounds)."""
    part = (xs[members] >= cx) + 2 * (ys[members] >= cy)
    bounds = np.zeros(5, np.int64)
    sorted_ = members.copy()
    for p in range(4):
        mine = members[part == p]
        bounds[p + 1] = bounds[p] + len(mine)
        sorted_[bounds[p] : bounds[p + 1]] = mine
    members[:] = sorted_
    return bounds


@njit
def _link_empty(q: Quarters, node: int, bounds: NDArray[np.int64]) -> None:
    """Link quarters without points to the one beside them, above or below, or across."""
    for p in range(4):
        if bounds[p] == bounds[p + 1]:
            for other in (p ^ 3, p ^ 2, p ^ 1):
                if bounds[other] < bounds[other + 1]:
                    q.parts[node, p] = q.parts[node, other]


@njit
def _split(
    q: Quarters,
    s: Leaves,
    at: int,
    xs: NDArray[np.float64],
    ys: NDArray[np.float64],
    leaves: int,
    nodes: int,
) -> tuple[int, int]:
    """Split leaf `at`, whose points are at two spots at least; (leaves, nodes) there are now."""
    first, node = s.first[at], s.nodes[at]
    members = s.order[first : s.last[at]]
    cell = s.cells[at].copy()
    cx, cy = descend(cell, _around(xs, ys, members))
    q.centres[node, 0], q.centres[node, 1] = cx, cy
    bounds = _sort(members, xs, ys, cx, cy)
    target = at
    for p in range(4):
        if bounds[p] == bounds[p + 1]:
            continue
        s.first[target], s.last[target] = first + bounds[p], first + bounds[p + 1]
        quarter(cell, cx, cy, p, s.cells[target])
        s.nodes[target] = nodes
        q.parts[node, p] = nodes
        q.parts[nodes, 0] = -1 - target
        nodes += 1
        if target != at:
            leaves += 1
        target = leaves
    _link_empty(q, node, bounds)
    return leaves, nodes


@njit
def divide(q: Quarters, xs: NDArray[np.float64], ys: NDArray[np.float64], target: int) -> int:
    """Make the tree of some points: the leaf with the most is split until there are `target`.

    How many leaves there are: every one has a point (without any there is one leaf), up to two
    more than `target`, fewer where points are at one spot. `q` has room for 2 · (target + 2) nodes.
    """
    room = target + 2
    s = Leaves(
        np.arange(len(xs)),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.empty((room, 4)),
        np.zeros(room, np.int64),
        np.zeros(room, np.bool_),
    )
    s.last[0] = len(xs)
    s.cells[0] = _around(xs, ys, s.order)
    q.parts[0, 0] = -1
    leaves, nodes = 1, 1
    while leaves < target:
        at = _largest(s, leaves)
        if at < 0:
            break
        box = _around(xs, ys, s.order[s.first[at] : s.last[at]])
        if box[0] < box[2] or box[1] < box[3]:
            leaves, nodes = _split(q, s, at, xs, ys, leaves, nodes)
        else:
            s.whole[at] = True
    return leaves
