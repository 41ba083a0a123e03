"""Upkeep of a QT-tree between versions (SSTD, sections 4.1.1 and 4.2): statistics, keyword lists.

A router of the paper updates its keyword lists with every object. Here a table stays as it is
while it holds, so that a repeated batch repeats its routes; the next version learns what objects
brought since.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.sampling import taken
from nearcast.routing.sstd.draft import KeywordLists, Node
from nearcast.routing.sstd.partitioning import Workloads
from nearcast.routing.sstd.qt_tree import LEAF, TEXTUAL


def renewed(node: Node, workloads: Workloads) -> None:
    """Bring a node and all below up to date by new statistics and new objects.

    The objects of leaves are given; inner nodes get those of their children. Textual nodes get
    the words of the new M. A word stays on the list of a child, and a word that an object there
    holds comes to it.
    """
    for child in node.children:
        renewed(child, workloads)
    if node.kind != LEAF:
        node.rows = np.concatenate([child.rows for child in node.children])
    workloads.measure(node)
    if node.kind == TEXTUAL:
        node.lists = _carried(node, workloads)
        for c, child in enumerate(node.children):
            on_list = node.lists.held >> c & 1 > 0
            child.h_srq = min(float(node.lists.p_srq[on_list].sum()), 1.0)
            child.h_skq = min(float(node.lists.p_skq[on_list].sum()), 1.0)
            workloads.price(child)


def _carried(node: Node, workloads: Workloads) -> KeywordLists:
    """The lists of a textual node with the words of the new statistics."""
    new, old = workloads.empty_lists(node.cell), node.lists
    place, there = _places(new.words, old.words)
    new.held[place[there]] = old.held[there]
    for c, child in enumerate(node.children):
        place, there = _places(new.words, taken(workloads.objects, child.rows).words)
        new.held[place[there]] |= np.uint8(1 << c)
    return new


def _places(
    ascending: NDArray[np.uint64], words: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(where each of `words` would stand in `ascending`, whether it is there)."""
    place = np.searchsorted(ascending, words)
    there = np.zeros(len(words), bool)
    inside = place < len(ascending)
    there[inside] = ascending[place[inside]] == words[inside]
    return place, there
