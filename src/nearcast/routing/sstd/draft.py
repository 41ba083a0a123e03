"""A QT-tree while it is made or changed: nodes with the objects that they are reckoned by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.sstd.cells import WHOLE, Cell
from nearcast.routing.sstd.cost_model import Prices
from nearcast.routing.sstd.qt_tree import LEAF, ROOT_KEY, QtTree, Reals, cell_of, sealed

Rows = NDArray[np.int64]
FREE = Prices(0.0, 0.0, 0.0)


@dataclass(slots=True)
class KeywordLists:
    """Of a textual node: words of M with their probabilities, and who of the children has them."""

    words: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    p_srq: Reals = field(default_factory=lambda: np.empty(0))
    p_skq: Reals = field(default_factory=lambda: np.empty(0))
    held: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))


@dataclass(slots=True, eq=False)
class Node:
    """A node, with what equation 2 needs of it."""

    cell: Cell = WHOLE
    key: int = ROOT_KEY
    kind: int = LEAF
    children: list[Node] = field(default_factory=list)
    rows: Rows = field(default_factory=lambda: np.empty(0, np.int64))  # objects, see `Workloads`
    count: float = 0.0  # |O|: these, by their weights
    h_srq: float = 0.0
    h_skq: float = 0.0
    price: Prices = FREE
    load: float = 0.0  # W(P)
    lists: KeywordLists = field(default_factory=KeywordLists)
    shard: int = -1
    factor: float = 1.0  # counted load over estimated load, where loads were counted
    queries: float = 0.0  # |P.Q|, the continuous queries that overlap it
    at: dict[int, float] = field(default_factory=dict)  # how many of them each worker has now

    def leaves(self) -> Iterator[Node]:
        """All leaves below, in the order of their keys."""
        if self.kind == LEAF:
            yield self
        for child in self.children:
            yield from child.leaves()


def flattened(root: Node, bounds: Reals, lengths: Reals) -> QtTree:
    """The flat tree of nodes; children of a node side by side, the root first."""
    nodes = [root]
    firsts = []
    for node in nodes:  # it grows while it is read
        firsts.append(len(nodes) if node.children else -1)
        nodes.extend(node.children)
    words = [node.lists for node in nodes]
    return sealed(
        QtTree(
            bounds=np.asarray(bounds, np.float64),
            key=np.array([n.key for n in nodes], np.uint64),
            kind=np.array([n.kind for n in nodes], np.int8),
            child=np.array(firsts, np.int32),
            level=np.array([n.cell.level for n in nodes], np.int8),
            column=np.array([n.cell.column for n in nodes], np.int32),
            line=np.array([n.cell.line for n in nodes], np.int32),
            shard=np.array([n.shard if n.kind == LEAF else -1 for n in nodes], np.int32),
            load=np.array([n.load for n in nodes]),
            objects=np.array([n.count for n in nodes]),
            h_srq=np.array([n.h_srq for n in nodes]),
            h_skq=np.array([n.h_skq for n in nodes]),
            price_srq=np.array([n.price.srq for n in nodes]),
            price_skq=np.array([n.price.skq for n in nodes]),
            lengths=lengths,
            word_offsets=np.cumsum([0, *(len(w.words) for w in words)], dtype=np.int64),
            words=np.concatenate([w.words for w in words]),
            p_srq=np.concatenate([w.p_srq for w in words]),
            p_skq=np.concatenate([w.p_skq for w in words]),
            held=np.concatenate([w.held for w in words]),
        )
    )


def draft_of(tree: QtTree) -> list[Node]:
    """The nodes of a flat tree, by their numbers there; the first is the root."""
    nodes = []
    for n in range(len(tree.kind)):
        some = slice(*tree.word_offsets[n : n + 2].tolist())
        lists = KeywordLists(
            tree.words[some], tree.p_srq[some], tree.p_skq[some], tree.held[some].copy()
        )
        price = Prices(float(tree.price_srq[n]), float(tree.price_skq[n]), 0.0)
        nodes.append(
            Node(
                cell_of(tree, n),
                int(tree.key[n]),
                int(tree.kind[n]),
                count=float(tree.objects[n]),
                h_srq=float(tree.h_srq[n]),
                h_skq=float(tree.h_skq[n]),
                price=price,
                load=float(tree.load[n]),
                lists=lists,
                shard=int(tree.shard[n]),
            )
        )
    for node, first in zip(nodes, tree.child.tolist(), strict=True):
        node.children = nodes[first : first + 4] if first >= 0 else []
    return nodes
