"""FAST's structure: a pyramid of cells with an adaptive keyword index each (Tornado section 3.2).

A node has a key: a keyword in a cell, or one more keyword on the path of a frequent one. In a
cell, a keyword is infrequent while its list is short: a subscription is on the list of one of
its keywords, the least frequent that has room. When all its keywords have outgrown their lists,
they become frequent: such subscriptions are in a trie, on the path of their keywords in order.
Where the path ends and many end there, those that overlap the cell least go down a level.
`docs/papers/tornado.md` says what the papers say of it and what they leave open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import SEEN, Index
from nearcast.kernels import postings as pl
from nearcast.kernels import shared_lists as ls
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import cell_hash, key_in
from nearcast.kernels.shared_lists import Lists
from nearcast.kernels.squares import column_of
from nearcast.model.jit import njit

THRESHOLD = 8  # entries: a keyword whose list would be longer is frequent
CROWDED = 32  # entries where a path ends: more, and half of them go down
DEPTHS = 24  # levels below the first
PATH = 8  # keywords of a subscription that count; the exact check reads all

# columns of a node
KEY, CELL, INFO, MORE = 0, 1, 2, 3
# INFO: 1 + its list in the lower half; above it
FREQUENT = np.uint64(1 << 32)  # the list is of what ends here; more may be below
CHILD = np.uint64(1 << 33)  # on a path, not the first keyword of it
PARENT = np.uint64(1 << 34)  # paths went on from here
# MORE, lower half: 1 + the list of what ends here for good. Upper half: how many entries that are
# in the trie of this cell, or went down from it, count on this keyword being frequent
ONE_USE = np.uint64(1 << 32)
_LOW = np.uint64(0xFFFFFFFF)
_NONE = np.uint64(0)

# places in `meta`
NODES = 0  # rows of the table in use
CHOSEN = 1  # subscriptions there were when the side was chosen; 0: not chosen yet
SIDE = 2  # cells of depth d are 2^(SIDE - d) long; the one of depth 0 has no bounds
DEEPEST = 3  # depth in use
MATCHED = 4  # objects so far
LATEST = 5  # their latest time
CURSOR = 6  # the next node to clean
SPLITS = 7  # keywords that became frequent in a cell
SHARED = 8  # lists that a second cell came to share
PUSHED = 9  # entries that went down a level
CLEANED = 10  # entries taken off
MERGED = 11  # keywords that became infrequent again
PENDING = 12  # nodes to clean until all were, since something was noted as ended
NOTED = 13  # how many slots were noted then
META = 14

_LEVEL = 300  # of cells, in hashes


class Fast(NamedTuple):
    """The nodes of all cells, and their lists; all arrays may be memory-mapped."""

    nodes: NDArray[np.uint64]  # [2ⁿ, 4]
    lists: Lists
    meta: NDArray[np.int64]  # [META]


@njit(lean=True)
def cell_of(depth: int, column: int, row: int) -> np.uint64:
    """Hash of a cell."""
    return cell_hash(_LEVEL + depth, column, row)


@njit(lean=True)
def place_of(f: Fast, depth: int, v: float) -> int:
    """Column (or row) of `v` at `depth`."""
    return column_of(f.meta[SIDE] - depth, v) if depth > 0 else 0


@njit(lean=True)
def list_of(f: Fast, row: int) -> int:
    """The list of a node, or -1."""
    return np.int64(f.nodes[row, INFO] & _LOW) - 1


@njit(lean=True)
def finals_of(f: Fast, row: int) -> int:
    """The list of what ends at a node for good, or -1."""
    return np.int64(f.nodes[row, MORE] & _LOW) - 1


@njit(lean=True)
def is_frequent(f: Fast, row: int) -> bool:
    """Whether the keyword of a node is frequent."""
    return f.nodes[row, INFO] & FREQUENT != _NONE


@njit(lean=True)
def set_list(f: Fast, row: int, number: int) -> None:
    """Let the node lead to a list; -1: to none."""
    f.nodes[row, INFO] = f.nodes[row, INFO] & ~_LOW | np.uint64(number + 1)


@njit(lean=True)
def node_at(f: Fast, key: np.uint64, cell: np.uint64) -> int:
    """The row of the node of `key`, made if there is none; there must be room for it."""
    row = pl.find(f.nodes, key)
    if row < 0:
        row = -1 - row
        f.nodes[row, KEY] = key
        f.nodes[row, CELL] = cell
        f.meta[NODES] += 1
    return row


@njit(lean=True)
def is_conjunction(ix: Index, slot: int) -> bool:
    """Whether `slot` is found by all its words; otherwise by any one of its cover, or by all."""
    half = ix.slots.half
    if half[slot, sl.COVER] > 0 or half[slot, sl.PROGRAM] == 0:
        return False
    return bool(half[slot, sl.FLAGS] & sl.CONJUNCTION)


@njit(lean=True)
def words_of(ix: Index, slot: int, under: np.uint64, w: NDArray[np.uint64]) -> int:
    """The keywords of an entry into `w`, ascending; how many. `under` is 0 for a conjunction.

    Of a conjunction, the PATH smallest.
    """
    if under != _NONE:
        w[0] = under
        return 1
    first = ix.slots.rows[slot, sl.BODY]
    n = 0
    for i in range(first, first + ix.slots.half[slot, sl.PROGRAM]):
        word = ix.slots.heap[i]
        at = n
        while at > 0 and w[at - 1] > word:
            at -= 1
        if (at > 0 and w[at - 1] == word) or at == PATH:
            continue
        n = min(n + 1, PATH)
        for j in range(n - 1, at, -1):
            w[j] = w[j - 1]
        w[at] = word
    return n


@njit(lean=True)
def rarest(ix: Index, w: NDArray[np.uint64], n: int) -> np.uint64:
    """The keyword that subscriptions use least; at equal use, the smallest."""
    best = w[0]
    fewest = np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(n):
        row = pl.find(ix.words, w[i])
        seen = ix.words[row, SEEN] if row >= 0 else _NONE
        if seen < fewest:
            fewest = seen
            best = w[i]
    return best


@njit(lean=True)
def count_uses(f: Fast, cell: np.uint64, w: NDArray[np.uint64], n: int, more: bool) -> None:
    """An entry came to the trie of `cell`, or left it: so many more or fewer count on its words."""
    for i in range(n):
        row = pl.find(f.nodes, key_in(cell, w[i]))
        if row >= 0:
            if more:
                f.nodes[row, MORE] += ONE_USE
            else:
                f.nodes[row, MORE] -= ONE_USE


@njit(lean=True)
def rehash(old: NDArray[np.uint64], new: NDArray[np.uint64]) -> int:
    """Put the rows of `old` that still mean something into the empty `new`; how many."""
    n = 0
    for i in range(len(old)):
        means = old[i, INFO] & (_LOW | FREQUENT) | old[i, MORE]
        if old[i, KEY] != _NONE and means != _NONE:
            row = -1 - pl.find(new, old[i, KEY])
            for c in range(old.shape[1]):
                new[row, c] = old[i, c]
            n += 1
    return n


# -- lists of infrequent keywords --------------------------------------------------------------


@njit(lean=True)
def in_list(f: Fast, cell: np.uint64, word: np.uint64, slot: int, box: NDArray[np.float32]) -> int:
    """Put an entry on the list of an infrequent keyword; the list, or -1 if there is no room."""
    row = node_at(f, key_in(cell, word), cell)
    if is_frequent(f, row):
        return -1
    number = list_of(f, row)
    if number < 0:
        number = ls.make(f.lists)
        set_list(f, row, number)
    elif ls.holds(f.lists, number, slot, box):
        return number
    elif f.lists.heads[number, ls.COUNT] >= THRESHOLD:
        return -1
    ls.append(f.lists, number, slot, box)
    return number


@njit(lean=True)
def shortest(f: Fast, cell: np.uint64, w: NDArray[np.uint64], n: int) -> int:
    """Which of n keywords is infrequent in `cell` and has the shortest list; -1: none."""
    best = -1
    fewest = np.int64(THRESHOLD)
    for i in range(n):
        row = pl.find(f.nodes, key_in(cell, w[i]))
        if row >= 0 and is_frequent(f, row):
            continue
        number = list_of(f, row) if row >= 0 else -1
        count = np.int64(f.lists.heads[number, ls.COUNT]) if number >= 0 else 0
        if count < fewest:
            fewest = count
            best = i
    return best


@njit(lean=True)
def share(f: Fast, cell: np.uint64, word: np.uint64, number: int) -> bool:
    """Let the node of `word` in `cell` lead to list `number`, where a neighbour's entries are.

    False where that list would become too long by what the node has already.
    """
    row = node_at(f, key_in(cell, word), cell)
    if is_frequent(f, row):
        return False
    old = list_of(f, row)
    if old == number:
        return True
    s = f.lists
    if old >= 0:
        first = np.int64(s.heads[old, ls.FIRST])
        last = first + s.heads[old, ls.COUNT]
        more = 0
        for e in range(first, last):
            more += not ls.holds(s, number, s.pool[e, 0], s.boxes[e, 1:])
        if s.heads[number, ls.COUNT] + more > THRESHOLD:
            return False
        for e in range(first, last):
            if not ls.holds(s, number, s.pool[e, 0], s.boxes[e, 1:]):
                ls.append(s, number, s.pool[e, 0], s.boxes[e, 1:])
        ls.release(s, old)
    s.heads[number, ls.REFERENCES] += 1
    set_list(f, row, number)
    f.meta[SHARED] += 1
    return True
