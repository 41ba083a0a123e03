"""The kd-tree whose leaves DSkype deals to shards (section 7.3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.routing import arrays
from nearcast.routing.arrays import Arrays, typed

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]

LEAF, BY_X, BY_Y = -1, 0, 1


class KdTree(NamedTuple):
    """Nodes, the root first; a leaf has a shard, another node two children."""

    axis: Longs  # LEAF, BY_X or BY_Y
    value: Reals  # what is not above it is in the lower child
    lower: Longs
    upper: Longs
    shard: Longs  # -1: no leaf


_TYPES: Mapping[str, type[np.generic]] = {
    "axis": np.int64, "value": np.float64, "lower": np.int64, "upper": np.int64, "shard": np.int64,
}  # fmt: skip


def pack(tree: KdTree) -> bytes:
    """A tree as a table of a router."""
    return arrays.pack(tree._asdict())


def unpack(table: bytes) -> KdTree:
    """The tree of `pack`."""
    return of_arrays(arrays.read(table))


def of_arrays(named: Arrays) -> KdTree:
    """A tree by the names of its arrays."""
    return KdTree(**typed(named, _TYPES, "a kd-tree"))


def leaf_of(tree: KdTree, x: Reals, y: Reals) -> Longs:
    """The leaf in which each place is; every place is in one, also outside of all that was seen."""
    node = np.zeros(len(x), np.int64)
    while True:
        inner = np.flatnonzero(tree.axis[node] != LEAF)
        if len(inner) == 0:
            return node
        at = node[inner]
        place = np.where(tree.axis[at] == BY_X, x[inner], y[inner])
        node[inner] = np.where(place <= tree.value[at], tree.lower[at], tree.upper[at])


def shard_of(tree: KdTree, x: Reals, y: Reals) -> Longs:
    """The shard of each place."""
    return np.asarray(tree.shard[leaf_of(tree, x, y)])


def leaves_of(tree: KdTree) -> Longs:
    """The leaves, ascending."""
    return np.flatnonzero(tree.axis == LEAF)
