"""Algorithm 3 of DSkype: a kd-tree cut where both sides cost the same.

A node costs C = N·p (equation 15): the subscriptions in it times the share of objects that fall
into it. For shards that are no power of two, the sides cost the same for each of their shards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.routing.skype.kd_tree import BY_X, BY_Y, LEAF, KdTree, Longs, Reals


class Cut(NamedTuple):
    """A line through a node."""

    axis: int
    value: float
    lower: float  # cost of the part that is not above it
    upper: float


class Points(NamedTuple):
    """Places of subscriptions and of a sample of objects, as [2, n]."""

    subscriptions: Reals
    objects: Reals

    def part(self, axis: int, value: float, below: bool) -> Points:
        """Those on one side of a line."""
        return Points(*(p[:, (p[axis] <= value) == below] for p in self))


def points(x: Reals, y: Reals, object_x: Reals, object_y: Reals) -> Points:
    """Places as a partition takes them."""
    return Points(np.stack([x, y]), np.stack([object_x, object_y]))


def best_cut(of: Points, axis: int, every: int, share: float = 0.5) -> Cut | None:
    """The line at a subscription's coordinate that leaves `share` of the cost below it, nearly.

    `every` objects were sampled in all. Of equally good lines the one that divides the
    subscriptions best; None: all of them are on one line.
    """
    own = np.sort(of.subscriptions[axis])
    last = np.flatnonzero(np.append(own[1:] != own[:-1], True))[:-1]
    if len(last) == 0:
        return None
    lines, n = own[last], len(own)
    below = np.searchsorted(np.sort(of.objects[axis]), lines, side="right")
    count, total = last + 1, max(every, 1)
    lower = count * below / total
    upper = (n - count) * (of.objects.shape[1] - below) / total
    uneven = np.abs((1.0 - share) * lower - share * upper)
    best = int(np.lexsort((np.abs((1.0 - share) * count - share * (n - count)), uneven))[0])
    return Cut(axis, float(lines[best]), float(lower[best]), float(upper[best]))


def cut_of(of: Points, axis: int, every: int, share: float = 0.5) -> Cut | None:
    """`best_cut`, by the other axis if there is none by this one."""
    return best_cut(of, axis, every, share) or best_cut(of, 1 - axis, every, share)


def spatial_partition(of: Points, shards: int) -> KdTree:
    """The tree with one leaf per shard; fewer if the subscriptions are at fewer places."""
    rows: list[tuple[int, float, int, int, int]] = []
    every = of.objects.shape[1]

    def grow(part: Points, depth: int, first: int, shards: int) -> int:
        """Add a node for the shards `first`, `first` + 1, …; its number."""
        node, few = len(rows), (shards + 1) // 2
        rows.append((LEAF, 0.0, -1, -1, first))
        axis = (BY_X, BY_Y)[depth % 2]
        cut = cut_of(part, axis, every, few / shards) if shards > 1 else None
        if cut is not None:
            low, high = (part.part(cut.axis, cut.value, below) for below in (True, False))
            lower = grow(low, depth + 1, first, few)
            upper = grow(high, depth + 1, first + few, shards - few)
            rows[node] = (cut.axis, cut.value, lower, upper, -1)
        return node

    grow(of, 0, 0, shards)
    return tree_of(rows)


def tree_of(rows: list[tuple[int, float, int, int, int]]) -> KdTree:
    """A tree from its nodes: (axis, value, lower, upper, shard)."""
    axis, value, lower, upper, shard = zip(*rows, strict=True)
    numbers: list[Longs] = [np.array(c, np.int64) for c in (axis, lower, upper, shard)]
    return KdTree(numbers[0], np.array(value, np.float64), *numbers[1:])
