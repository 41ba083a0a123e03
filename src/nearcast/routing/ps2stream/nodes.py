"""Nodes of the kd^t-tree: a region, or the share of a region that a set of terms makes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearcast.routing.grid.survey import Numbers
from nearcast.routing.ps2stream.workload import Region, Workload


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """A leaf of the kd^t-tree: n(O_n, Q_n) with its load.

    `terms` is T_i of a node that text-partitioning made (ascending), None where it is all of T.
    `text` says that the node is of N_t: it may only be partitioned by text.
    """

    region: Region
    inside: Numbers  # objects in the region (of a text node: with one of its terms)
    objects: Numbers  # those of them that are sent: O_i of Definition 1
    queries: Numbers  # that touch the region (of a text node: posted under one of its terms)
    terms: Numbers | None
    text: bool
    load: float


def root(w: Workload) -> Node:
    """The node of the whole workload."""
    return space_node(w, (0, 0, w.side, w.side))


def space_node(w: Workload, region: Region, text: bool = False) -> Node:
    """The node of a region, with all terms."""
    left, low, right, high = region
    where = (w.column >= left) & (w.column < right) & (w.line >= low) & (w.line < high)
    b = w.boxes
    touch = (b[:, 0] < right) & (b[:, 2] >= left) & (b[:, 1] < high) & (b[:, 3] >= low)
    queries = np.unique(w.box_query[touch])
    return _made(w, region, np.flatnonzero(where), queries, None, text)


def text_nodes(w: Workload, node: Node, part: Numbers, parts: int) -> list[Node]:
    """The node divided by its terms: `part[t]` is the part of term t. Empty parts are left out."""
    owner, term = w.held.of(node.inside)
    query, posting = w.posting_terms.of(node.queries)
    if node.terms is not None:
        mine = np.zeros(len(w.vocabulary), bool)
        mine[node.terms] = True
        owner, term = owner[mine[term]], term[mine[term]]
        query, posting = query[mine[posting]], posting[mine[posting]]
    of_term, of_posting = part[term], part[posting]
    made = []
    for i in range(parts):
        terms = np.unique(np.concatenate([term[of_term == i], posting[of_posting == i]]))
        if len(terms):
            inside, queries = np.unique(owner[of_term == i]), np.unique(query[of_posting == i])
            made.append(_made(w, node.region, inside, queries, terms, True))
    return made


def terms_of(w: Workload, node: Node) -> Numbers:
    """T of a node: the terms of its objects, and those its queries are posted under; ascending."""
    if node.terms is not None:
        return node.terms
    return np.unique(
        np.concatenate([w.held.of(node.inside)[1], w.posting_terms.of(node.queries)[1]])
    )


def registered(w: Workload, node: Node) -> Numbers:
    """How many queries of the node are posted under each term (0: not in H2 of its cells)."""
    count = np.bincount(w.posting_terms.of(node.queries)[1], minlength=len(w.vocabulary))
    if node.terms is not None:
        other = np.ones(len(count), bool)
        other[node.terms] = False
        count[other] = 0
    return count


def _made(
    w: Workload,
    region: Region,
    inside: Numbers,
    queries: Numbers,
    terms: Numbers | None,
    text: bool,
) -> Node:
    node = Node(region, inside, inside, queries, terms, text, 0.0)
    sent = inside
    if w.discard:
        owner, term = w.held.of(inside)
        sent = np.unique(owner[registered(w, node)[term] > 0])
    return Node(region, inside, sent, queries, terms, text, w.load(len(sent), len(queries)))
