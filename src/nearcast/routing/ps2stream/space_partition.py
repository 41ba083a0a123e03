"""Space-partitioning of a node: cuts of a kd-tree, on lines of the grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.grid.survey import Numbers, Reals
from nearcast.routing.ps2stream.nodes import Node, space_node
from nearcast.routing.ps2stream.workload import Region, Workload


def halves(region: Region, axis: int, at: int) -> tuple[Region, Region]:
    """The region cut before column (axis 0) or row (axis 1) `at`."""
    a, b, c, d = region
    return ((a, b, at, d), (at, b, c, d)) if axis == 0 else ((a, b, c, at), (a, at, c, d))


def median_cut(w: Workload, node: Node, axis: int) -> int | None:
    """Where a normal kd-tree cuts: as many objects on either side, as far as lines allow.

    None: all objects are in one column (or row).
    """
    first, stop = node.region[axis], node.region[axis + 2]
    lines = (w.line if axis else w.column)[node.inside]
    before = np.cumsum(np.bincount(lines - first, minlength=stop - first))[:-1]
    return _nearest(np.abs(2 * before - len(lines)), (before > 0) & (before < len(lines)), first)


def load_cut(w: Workload, node: Node, axis: int, left: int, right: int) -> int | None:
    """Where the loads of both sides come nearest to `left` : `right`. None: nothing to cut."""
    first, stop = node.region[axis], node.region[axis + 2]
    if stop - first < 2:
        return None
    lines = (w.line if axis else w.column)[node.objects] - first
    objects = np.cumsum(np.bincount(lines, minlength=stop - first))[:-1]
    low, high = _reach(w, node, axis)
    begun = np.cumsum(np.bincount(low - first, minlength=stop - first))[:-1]
    ended = np.cumsum(np.bincount(high - first, minlength=stop - first))[:-1]
    before = w.load(objects, begun)
    after = w.load(len(lines) - objects, len(low) - ended)
    return _nearest(np.abs(before * right - after * left), np.ones(len(before), bool), first)


def _reach(w: Workload, node: Node, axis: int) -> tuple[Numbers, Numbers]:
    """(first, last) line within the region that each query of the node touches."""
    left, low, right, high = node.region
    b = w.boxes
    touch = (b[:, 0] < right) & (b[:, 2] >= left) & (b[:, 1] < high) & (b[:, 3] >= low)
    query = w.box_query[touch]
    first, stop = node.region[axis], node.region[axis + 2]
    least, most = np.full(w.queries, stop), np.full(w.queries, first - 1)
    np.minimum.at(least, query, np.maximum(b[touch, axis], first))
    np.maximum.at(most, query, np.minimum(b[touch, axis + 2], stop - 1))
    return least[node.queries], most[node.queries]


def _nearest(distance: Reals, allowed: NDArray[np.bool_], first: int) -> int | None:
    """The line of the least distance; equally near ones: the first."""
    if not allowed.any():
        return None
    places = np.flatnonzero(allowed)
    return first + 1 + int(places[np.argmin(distance[places])])


def space_partition(w: Workload, node: Node, p: int) -> list[Node]:
    """The node cut into `p` regions; fewer where there are no lines left to cut at.

    Each cut parts the number of regions in two and the load in the same proportion, in the
    direction that leaves the smaller sum of loads (x if both do).
    """
    if p < 2:
        return [node]
    best: tuple[Node, Node] | None = None
    for axis in range(2):
        at = load_cut(w, node, axis, p // 2, p - p // 2)
        if at is not None:
            a, b = (space_node(w, half) for half in halves(node.region, axis, at))
            if best is None or a.load + b.load < best[0].load + best[1].load:
                best = a, b
    if best is None:
        return [node]
    return space_partition(w, best[0], p // 2) + space_partition(w, best[1], p - p // 2)
