"""Spatial and textual partitioning of a node (SSTD, section 4.1.2), and what nodes cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import gather
from nearcast.routing.base import Sample
from nearcast.routing.sampling import taken
from nearcast.routing.sstd.cells import LEVELS, Cell, units_of
from nearcast.routing.sstd.cost_model import prices, workload
from nearcast.routing.sstd.draft import KeywordLists, Node, Rows, flattened
from nearcast.routing.sstd.object_routing import lists_of, route_objects
from nearcast.routing.sstd.qt_tree import LEAF, SPATIAL, STEPS, TEXTUAL, child_key, steps_to
from nearcast.routing.sstd.statistics import QueryStatistics

Reals = NDArray[np.float64]


class Workloads:
    """Objects O with the statistics J: splits nodes, and says what parts cost.

    `weight`: how many objects each stands for. `period`: time units in which they arrived.
    `each`: a cost per object besides equation 2, and `scale` what equation 2 is multiplied by:
    with these a plan works in units of equation 2, the live balance in those of counted loads.
    """

    def __init__(
        self,
        j: QueryStatistics,
        objects: Sample,
        weight: Reals,
        period: float = 1.0,
        each: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        self.j = j
        self.objects = objects
        self.weight = weight
        self.period = period
        self.each = each
        self.scale = scale
        self._across, self._up = units_of(j.bounds, objects.x, objects.y)
        self._ids, self._offsets = _queried(objects, j)

    def root(self) -> Node:
        """The root of a tree, with all objects."""
        node = Node(rows=np.arange(len(self.objects.x)))
        self.measure(node)
        return node

    def measure(self, node: Node) -> None:
        """Fill in what equation 2 needs of a node, and its workload, by the objects it has."""
        node.count = float(self.weight[node.rows].sum())
        m = self.j.keywords(node.cell)
        held = self._words_of(node.rows)
        node.h_srq, node.h_skq = (min(float(h), 1.0) for h in m[:, held].sum(axis=1))
        self.price(node)

    def price(self, node: Node) -> None:
        """Fill in the prices of its cell, and its workload."""
        node.price = prices(self.j, node.cell, self.period)
        by_queries = workload(node.price, self.j.lengths, node.count, node.h_srq, node.h_skq)
        node.load = node.factor * (self.each * node.count + self.scale * by_queries)

    def spatial_partitioning(self, node: Node) -> list[Node] | None:
        """Four children of equal size, each with the objects in it; None: there are none."""
        if node.cell.level == LEVELS or steps_to(node.key) == STEPS:
            return None
        shift = LEVELS - 1 - node.cell.level
        quarter = 2 * (self._up[node.rows] >> shift & 1) + (self._across[node.rows] >> shift & 1)
        made = []
        for q, cell in enumerate(node.cell.quarters()):
            child = self._child(node, SPATIAL, q, cell)
            child.rows = node.rows[quarter == q]
            self.measure(child)
            made.append(child)
        return made

    def textual_partitioning(self, node: Node) -> tuple[list[Node], KeywordLists] | None:
        """Four children with the cell of the node, and their keyword lists; None: there are none.

        Objects come one by one, each to the child with the smallest workload increment, by the
        same code that routes objects later. An object counts there by its weight afterwards.
        """
        if steps_to(node.key) == STEPS:
            return None
        made = [self._child(node, TEXTUAL, c, node.cell) for c in range(4)]
        for child in made:
            child.price = node.price
        lists = self.empty_lists(node.cell)
        top = Node(node.cell, node.key, TEXTUAL, made, price=node.price, lists=lists)
        tree = flattened(top, self.j.bounds, self.j.lengths)
        mutable = lists_of(tree)
        some = taken(self.objects, node.rows)
        at = route_objects(tree, mutable, *some, learn=True) - 1
        lists.held = mutable.held
        for c, child in enumerate(made):
            child.rows = node.rows[at == c]
            child.count = float(self.weight[child.rows].sum())
            child.h_srq, child.h_skq = float(mutable.h_srq[1 + c]), float(mutable.h_skq[1 + c])
            self.price(child)
        return made, lists

    def empty_lists(self, cell: Cell) -> KeywordLists:
        """The words of M_srq and M_skq of a cell, on no child's list."""
        m = self.j.keywords(cell)
        some = np.flatnonzero(m.any(axis=0))
        none = np.zeros(len(some), np.uint8)
        return KeywordLists(self.j.vocabulary[some], m[0, some], m[1, some], none)

    def _child(self, node: Node, kind: int, c: int, cell: Cell) -> Node:
        key = child_key(node.key, kind, c)
        return Node(cell, key, LEAF, shard=node.shard, factor=node.factor)

    def _words_of(self, rows: Rows) -> Rows:
        """The numbers in J's vocabulary of the words that objects hold."""
        lengths = np.diff(self._offsets)[rows]
        held = np.zeros(len(self.j.vocabulary), bool)
        held[gather(self._ids, self._offsets[rows], lengths)[1]] = True
        return np.flatnonzero(held)


def _queried(objects: Sample, j: QueryStatistics) -> tuple[Rows, Rows]:
    """(numbers in J's vocabulary, offsets) of those words of objects that some query has."""
    at = np.searchsorted(j.vocabulary, objects.words)
    known = np.zeros(len(at), bool)
    inside = at < len(j.vocabulary)
    known[inside] = j.vocabulary[at[inside]] == objects.words[inside]
    before = np.concatenate([[0], np.cumsum(known)])
    return at[known], before[objects.word_offsets]
