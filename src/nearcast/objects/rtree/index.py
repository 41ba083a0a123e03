"""The nodes of a slice's R-tree: a box, and a table of all words below with their counts.

SSTD section 6.1: an R-tree augmented with inverted lists, with a table of term frequencies in
each node. A table says how many objects below a node hold each word, and so also whether the node
needs a visit; in a leaf, each entry has its list of rows. The paper keeps hash tables; entries
here ascend by word, which takes less memory and finds a word as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.objects.blob import Part
from nearcast.objects.coded import Coded
from nearcast.objects.tree import LEAF, Tree, build_tree, node_rows

__all__ = ["PARTS", "RTreeIndex", "attach_index", "build_index", "entry_of"]

PARTS = (
    Part(np.float64, 4), Part(np.int64), Part(np.uint32), Part(np.int64), Part(np.uint32),
    Part(np.uint32), Part(np.uint32), Part(np.uint8),
)  # fmt: skip


class RTreeIndex(NamedTuple):
    """What kernels search."""

    tree: Tree
    holders: NDArray[np.uint32]  # [words + 1]: objects that hold the words before each
    table_starts: NDArray[np.int64]  # [nodes + 1]
    table_codes: NDArray[np.uint32]  # ascending in each node
    table_counts: NDArray[np.uint32]
    list_starts: NDArray[np.uint32]  # [entries of leaves + 1]
    lists: NDArray[np.uint8]  # rows, counted from the first of the leaf


def attach_index(arrays: list[NDArray[np.generic]]) -> RTreeIndex:
    """The index from its PARTS."""
    boxes, firsts, *others = arrays
    return RTreeIndex(Tree(boxes, firsts), *others)


def build_index(rows: Coded) -> tuple[NDArray[np.generic], ...]:
    """The PARTS of objects that are in the order of the tree."""
    boxes, firsts = build_tree(frozen(rows.at))
    starts, codes = frozen(rows.starts), frozen(rows.codes)
    held = np.bincount(codes, minlength=len(rows.words))
    holders = np.concatenate([[0], np.cumsum(held)]).astype(np.uint32)
    table_starts, table_codes, table_counts = _tables(starts, codes, len(rows.words), firsts)
    leaf_starts = table_starts[: firsts[1] + 1]
    counts = table_counts[: leaf_starts[-1]]
    list_starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    lists = _lists(starts, codes, leaf_starts, table_codes, list_starts, len(rows.words))
    return boxes, firsts, holders, table_starts, table_codes, table_counts, list_starts, lists


@njit
def _tables(
    starts: NDArray[np.int64], codes: NDArray[np.uint32], words: int, firsts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
    """The words of each node and how many of its rows hold each."""
    n = len(starts) - 1
    table_starts = np.zeros(firsts[-1] + 1, np.int64)
    out_codes = np.empty(len(codes) + 1024, np.uint32)
    out_counts = np.empty(len(codes) + 1024, np.uint32)
    counts = np.zeros(words, np.uint32)
    touched = np.empty(words, np.uint32)
    m = 0
    for level in range(len(firsts) - 1):
        for node in range(firsts[level + 1] - firsts[level]):
            first, last = node_rows(level, node, n)
            held = 0
            for i in range(starts[first], starts[last]):
                if counts[codes[i]] == 0:
                    touched[held] = codes[i]
                    held += 1
                counts[codes[i]] += np.uint32(1)
            if m + held > len(out_codes):
                out_codes, out_counts = _grown(out_codes, m, held), _grown(out_counts, m, held)
            out_codes[m : m + held] = np.sort(touched[:held])
            for i in range(m, m + held):
                out_counts[i] = counts[out_codes[i]]
                counts[out_codes[i]] = 0
            m += held
            table_starts[firsts[level] + node + 1] = m
    return table_starts, out_codes[:m].copy(), out_counts[:m].copy()


@njit
def _grown(array: NDArray[np.uint32], used: int, needed: int) -> NDArray[np.uint32]:
    more = np.empty(max(used + needed, len(array) + len(array) // 2), np.uint32)
    more[:used] = array[:used]
    return more


@njit
def _lists(
    starts: NDArray[np.int64],
    codes: NDArray[np.uint32],
    leaf_starts: NDArray[np.int64],
    table_codes: NDArray[np.uint32],
    list_starts: NDArray[np.uint32],
    words: int,
) -> NDArray[np.uint8]:
    """The rows of each entry of each leaf."""
    lists = np.empty(len(codes), np.uint8)
    at = np.empty(words, np.int64)
    n = len(starts) - 1
    for leaf in range(len(leaf_starts) - 1):
        for entry in range(leaf_starts[leaf], leaf_starts[leaf + 1]):
            at[table_codes[entry]] = list_starts[entry]
        for row in range(leaf * LEAF, min(n, (leaf + 1) * LEAF)):
            for i in range(starts[row], starts[row + 1]):
                lists[at[codes[i]]] = row - leaf * LEAF
                at[codes[i]] += 1
    return lists


@njit(lean=True)
def entry_of(ix: RTreeIndex, node: int, code: int) -> int:
    """The entry of a word in the table of a node, counted over all levels; -1: it has none."""
    lo, hi = ix.table_starts[node], ix.table_starts[node + 1]
    end = hi
    while lo < hi:
        mid = (lo + hi) >> 1
        if ix.table_codes[mid] < code:
            lo = mid + 1
        else:
            hi = mid
    return lo if lo < end and ix.table_codes[lo] == code else -1
