"""QT-tree adjustment of SSTD (section 5.3): split, merge, and FG, which applies both in turn."""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from nearcast.routing.sstd.cells import LEVELS
from nearcast.routing.sstd.construction import BOTH, set_children
from nearcast.routing.sstd.draft import KeywordLists, Node
from nearcast.routing.sstd.karmarkar_karp import karmarkar_karp
from nearcast.routing.sstd.partitioning import Workloads
from nearcast.routing.sstd.qt_tree import LEAF, SPATIAL, TEXTUAL
from nearcast.routing.sstd.reallocation import Leaves, fm, load_ratio, worker_loads


class Settings(NamedTuple):
    """When loads are out of balance, and how leaves are split."""

    ratio: float = 6.0  # λ
    epsilon: float = 0.5  # ε
    rounds: int = 64  # splits of one adjustment, at most
    methods: Collection[int] = BOTH


class Adjusted(NamedTuple):
    """What FG did."""

    splits: int
    merges: int


def h_hat(workloads: Workloads, node: Node) -> float:
    """ĥ: how many of the four quarters a query of the node's cell overlaps, as a part of all four.

    N_0, the smallest node of J that covers the cell, is the cell itself: J has every cell.
    """
    if node.cell.level == LEVELS:
        return 1.0
    whole = float(workloads.j.probabilities(node.cell).sum())
    if whole <= 0:
        return 0.0
    parts = [float(workloads.j.probabilities(c).sum()) for c in node.cell.quarters()]
    return sum(parts) / (4 * whole)


def split_leaf(workloads: Workloads, node: Node, settings: Settings) -> bool:
    """Equation 3: by place if ĥ <= ε, else by words; False: it cannot be split."""
    wanted = SPATIAL if h_hat(workloads, node) <= settings.epsilon else TEXTUAL
    others = [m for m in settings.methods if m != wanted]
    for method in [wanted, *others] if wanted in settings.methods else others:
        if method == SPATIAL:
            children = workloads.spatial_partitioning(node)
            lists = KeywordLists()
        else:
            found = workloads.textual_partitioning(node)
            children, lists = found if found else (None, KeywordLists())
        if children:
            _share_queries(workloads, node, children)
            set_children(node, method, children, lists)
            return True
    return False


def _share_queries(workloads: Workloads, node: Node, children: list[Node]) -> None:
    """Queries of the children are where those of the node were."""
    for child in children:
        child.queries = workloads.j.continuous(child.cell)
        part = child.queries / node.queries if node.queries > 0 else 0.0
        child.at = {worker: part * there for worker, there in node.at.items()}


def merged(workloads: Workloads, node: Node) -> Node:
    """The leaf that a node would be if its four children, all leaves, were merged."""
    children = node.children
    leaf = Node(node.cell, node.key)
    leaf.rows = np.concatenate([c.rows for c in children])
    estimated = sum(c.load / c.factor for c in children)
    leaf.factor = sum(c.load for c in children) / estimated if estimated > 0 else 1.0
    workloads.measure(leaf)
    leaf.queries = workloads.j.continuous(node.cell)
    for worker in {w for c in children for w in c.at}:
        there = [c.at.get(worker, 0.0) for c in children]
        # Children of a textual node have the same queries, those of a spatial one others.
        most = sum(there) if node.kind == SPATIAL else max(there)
        leaf.at[worker] = min(most, leaf.queries)
    leaf.shard = max(children, key=lambda c: (c.at.get(c.shard, 0.0), c.load)).shard
    return leaf


def mergeable(node: Node) -> bool:
    """Whether all four children are leaves."""
    return node.kind != LEAF and all(c.kind == LEAF for c in node.children)


def flat(root: Node, workers: int) -> Leaves:
    """The leaves of a tree as `reallocation` takes them."""
    leaves = list(root.leaves())
    at = np.zeros((len(leaves), workers))
    for row, leaf in enumerate(leaves):
        for worker, there in leaf.at.items():
            at[row, worker] = there
    return Leaves(
        np.array([n.load for n in leaves]),
        np.array([n.shard for n in leaves], np.int64),
        np.array([n.queries for n in leaves]),
        at,
    )


def fg(root: Node, workloads: Workloads, workers: int, settings: Settings) -> Adjusted:
    """FG: change the tree until Karmarkar–Karp can balance its leaves, then map them by FM.

    In each iteration the most loaded leaf is split and the least loaded candidate merged. It ends
    when loads are in balance, when the least loaded candidate has more than every leaf (merges
    would not help any more), when no leaf can be split, or after `rounds`.
    """
    parents = _parents(root)
    most = max(leaf.load for leaf in root.leaves())
    heap: list[tuple[float, int, Node, Node]] = []
    for node in [n for n in parents if mergeable(n)]:
        _push(heap, workloads, node, most)
    splits = merges = 0
    while splits < settings.rounds:
        hottest = max(root.leaves(), key=lambda leaf: leaf.load)
        if not split_leaf(workloads, hottest, settings):
            break
        splits += 1
        parents |= dict.fromkeys(hottest.children, hottest)
        most = max(leaf.load for leaf in root.leaves())
        while heap and not (mergeable(heap[0][2]) and heap[0][2] is not hottest):
            heappop(heap)
        if heap:
            load, _, node, leaf = heappop(heap)
            if load > most:
                break
            _merge(node, leaf)
            merges += 1
            parent = parents.get(node)
            if parent is not None and mergeable(parent):
                _push(heap, workloads, parent, most)
        if _balanced(root, workers, settings):
            break
    for leaf, worker in zip(list(root.leaves()), fm(flat(root, workers)).tolist(), strict=True):
        leaf.shard = worker
    return Adjusted(splits, merges)


def _push(
    heap: list[tuple[float, int, Node, Node]], workloads: Workloads, node: Node, most: float
) -> None:
    """A candidate for a merge, if its workload is smaller than that of the most loaded leaf."""
    leaf = merged(workloads, node)
    if leaf.load < most:
        heappush(heap, (leaf.load, node.key, node, leaf))


def _merge(node: Node, leaf: Node) -> None:
    """Make the leaf of a node."""
    node.kind, node.children, node.lists = LEAF, [], KeywordLists()
    node.rows, node.count, node.factor, node.load = leaf.rows, leaf.count, leaf.factor, leaf.load
    node.h_srq, node.h_skq, node.price = leaf.h_srq, leaf.h_skq, leaf.price
    node.queries, node.at, node.shard = leaf.queries, leaf.at, leaf.shard


def _balanced(root: Node, workers: int, settings: Settings) -> bool:
    """Whether the Karmarkar–Karp method finds a mapping that meets the constraint."""
    leaves = flat(root, workers)
    mapped = karmarkar_karp(leaves.load, workers)
    return load_ratio(worker_loads(leaves, mapped)) <= settings.ratio


def _parents(root: Node) -> dict[Node, Node | None]:
    """The parent of every node below the root; the root has none."""
    out: dict[Node, Node | None] = {root: None}
    todo = [root]
    while todo:
        node = todo.pop()
        out |= dict.fromkeys(node.children, node)
        todo += node.children
    return out
