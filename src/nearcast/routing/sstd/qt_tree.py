"""The QT-tree as flat arrays (SSTD, section 4.1): what routers load, and a table's file holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.routing import arrays
from nearcast.routing.sstd.cells import Cell

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]
Reals = NDArray[np.float64]

LEAF, SPATIAL, TEXTUAL = range(3)
STEPS = 20  # splits from the root to a leaf, at most: a key has three bits for each
ROOT_KEY = 1


class QtTree(NamedTuple):
    """A node is a number, the root 0; the four children of a node stand side by side.

    Children of a textual node have a number of objects and the values H of equation 1. The node
    itself has the words of M_srq and M_skq in its cell, and for each a bit per child whose keyword
    list has it. Words that no query has would add nothing to H, so lists leave them out.
    """

    bounds: Reals  # [4] minx, miny, maxx, maxy; what lies outside: cells at the border
    key: Words  # [n]: the same node has the same key in every version of a tree
    kind: NDArray[np.int8]  # [n]: LEAF, SPATIAL, TEXTUAL
    child: NDArray[np.int32]  # [n]: the first of its children; -1: none
    level: NDArray[np.int8]  # [n]: of its cell; both kinds of children of a textual node share it
    column: NDArray[np.int32]  # [n]
    line: NDArray[np.int32]  # [n]
    shard: NDArray[np.int32]  # [n]: the mapping table, the worker of each leaf; -1: no leaf
    load: Reals  # [n]: workload of a leaf when it was made
    objects: Reals  # [n]: |O|
    h_srq: Reals  # [n]
    h_skq: Reals  # [n]
    price_srq: Reals  # [n]: `cost_model.Prices` of its cell
    price_skq: Reals  # [n]
    lengths: Reals  # [2, l]: Pr(|q.φ| = l) of SRQ and of SKQ
    word_offsets: Numbers  # [n + 1]: only textual nodes have words
    words: Words  # ascending within a node
    p_srq: Reals  # of each word
    p_skq: Reals
    held: NDArray[np.uint8]  # bit c: it is on the keyword list of child c


_TYPES: dict[str, type[np.generic]] = {
    "bounds": np.float64,
    "key": np.uint64,
    "kind": np.int8,
    "child": np.int32,
    "level": np.int8,
    "column": np.int32,
    "line": np.int32,
    "shard": np.int32,
    "load": np.float64,
    "objects": np.float64,
    "h_srq": np.float64,
    "h_skq": np.float64,
    "price_srq": np.float64,
    "price_skq": np.float64,
    "lengths": np.float64,
    "word_offsets": np.int64,
    "words": np.uint64,
    "p_srq": np.float64,
    "p_skq": np.float64,
    "held": np.uint8,
}


def sealed(tree: QtTree) -> QtTree:
    """The tree with arrays of the types and the form that kernels are compiled for."""
    return QtTree(**arrays.typed(tree._asdict(), _TYPES, "a QT-tree"))


def pack(tree: QtTree) -> bytes:
    """A tree as bytes."""
    return arrays.pack(sealed(tree)._asdict())


def unpack(data: bytes) -> QtTree:
    """The tree of `pack`, or of the file that `arrays.reference` named."""
    found = arrays.read(data)
    return sealed(QtTree(*(found[name] for name in QtTree._fields)))


def leaves_of(tree: QtTree) -> Numbers:
    """The numbers of all leaves."""
    return np.flatnonzero(tree.kind == LEAF)


def cell_of(tree: QtTree, node: int) -> Cell:
    """The cell of a node."""
    return Cell(int(tree.level[node]), int(tree.column[node]), int(tree.line[node]))


def child_key(key: int, kind: int, child: int) -> int:
    """The key of a child of a node that is split in this way."""
    return key << 3 | (kind == TEXTUAL) << 2 | child


def steps_to(key: int) -> int:
    """Splits from the root to the node with this key."""
    return (key.bit_length() - 1) // 3
