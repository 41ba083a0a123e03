"""Algorithm 1 of SSTD, QTtreeConstruction (section 4.1.2), and the allocation of its leaves."""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush

import numpy as np

from nearcast.routing.sstd.draft import KeywordLists, Node
from nearcast.routing.sstd.karmarkar_karp import karmarkar_karp
from nearcast.routing.sstd.partitioning import Workloads
from nearcast.routing.sstd.qt_tree import LEAF, SPATIAL, TEXTUAL

BOTH = (SPATIAL, TEXTUAL)


def qt_tree_construction(workloads: Workloads, theta: int, methods: Collection[int] = BOTH) -> Node:
    """The root of a QT-tree with at least `theta` leaves, as far as nodes can be split.

    `methods`: SPATIAL alone makes the baseline Quadtree, TEXTUAL alone Text (section 7.1).
    """
    root = workloads.root()
    heap = [(-root.load, 0, root)]
    leaves, turn = 1, 1
    while leaves < theta and heap:
        node = heappop(heap)[2]
        if not split(workloads, node, methods):
            continue
        leaves += 3
        for child in node.children:
            heappush(heap, (-child.load, turn, child))
            turn += 1
    return root


def split(workloads: Workloads, node: Node, methods: Collection[int]) -> bool:
    """Split a leaf by the method with less total workload, spatial if both are equal (line 8)."""
    by_place = workloads.spatial_partitioning(node) if SPATIAL in methods else None
    by_words = workloads.textual_partitioning(node) if TEXTUAL in methods else None
    if by_place is None and by_words is None:
        return False
    if by_words is None or (by_place is not None and _total(by_place) <= _total(by_words[0])):
        assert by_place is not None
        set_children(node, SPATIAL, by_place, KeywordLists())
    else:
        set_children(node, TEXTUAL, *by_words)
    return True


def set_children(node: Node, kind: int, children: list[Node], lists: KeywordLists) -> None:
    """Make an inner node of a leaf."""
    node.kind, node.children, node.lists = kind, children, lists


def allocate_leaves(root: Node, workers: int) -> None:
    """Give each leaf a worker by the Karmarkar–Karp method."""
    leaves = list(root.leaves())
    dealt = karmarkar_karp(np.array([leaf.load for leaf in leaves]), workers)
    for leaf, worker in zip(leaves, dealt.tolist(), strict=True):
        assert leaf.kind == LEAF
        leaf.shard = worker


def _total(nodes: list[Node]) -> float:
    return sum(node.load for node in nodes)
