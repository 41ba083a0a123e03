"""The arrays of IGPT: a table of subscriptions, a quadtree, and one list per keyword and leaf."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import blocks
from nearcast.kernels.hashing import mix64
from nearcast.model.jit import njit

LEAF = 1000  # subscriptions of a leaf, at most (Skype 8.1.1)
GROUPS = 10  # of a list, by alpha (Skype 8.1.1)
MOST_DEPTH = 24  # a leaf of that depth is not split: so many may be at one place

# float64 columns of a subscription's row: kScore*, alpha*, how far the boundary of its cell is,
# maxdist, and what is known of the similarity to the present message
KSCORE, ALPHA_STAR, INNER, FARTHEST, PARTIAL = range(5)
# int32 columns of it (the same memory). CELL is 1 + its node, NEXT 1 + the next of that cell, KEYS
# where its keywords begin, LISTED how many of them are on lists.
CELL, NEXT, KEYS, GROUP, STATE, LISTED = range(10, 16)
# bits of STATE
FOUND, SKIPPED, STALE, DEAD = 1, 2, 4, 8

# columns of a keyword of a subscription, in the order of all keywords; one row of zeros behind the
# last. ORDINAL is an int64.
ORDINAL, WT, WTSUM, MAXWT = range(4)

# int32 columns of a node: its first child (0: a leaf), depth, 1 + its first subscription, how many
CHILD, DEPTH, HEAD, MEMBERS, DIRTY = range(5)
NODE = 8
# float64 columns of a cell: its box, the least lambda_S and the greatest maxdist in it
BOX, LEAST, MAXDIST = 0, 6, 7

# columns of the table of lists. PLACE has the first entry, and above it 1 + the block's size; HELD
# the number of entries, and above it marks.
KEY, PLACE, HELD = range(3)
LIST = 3
# int32 columns of an entry. RUN: how many entries this group has (in its first one), and above it
# the group; AT: the keyword among those of the subscription.
SLOT, RUN, AT = range(3)
# float32 columns of an entry. The largest maxwt and alpha* are of this and all behind it in the
# group (equations 6, 7); the rest is its own.
E_KSCORE, E_MAXWT, E_ALPHA, OWN_WTSUM, OWN_MAXWT, OWN_ALPHA = range(3, 9)
ENTRY = 9

# columns of the table of words
WORD, NUMBER, IDF = range(3)

# places in `meta`
WORDS, NODES, KEYS_TOP, LISTS, POSTED, BUILT, OUTSIDE = range(7)
POOL = 7
META = POOL + blocks.META

TIDY = np.uint64(1 << 32)  # a list must be brought into order
REREAD = np.uint64(1 << 33)  # its thresholds must be read again first
_HELD = np.uint64((1 << 32) - 1)
_SIZE = np.uint64(48)
_PLACE = np.uint64((1 << 48) - 1)
_HALF = np.uint64(32)


class Arrays(NamedTuple):
    """All of it; the arrays may be memory-mapped."""

    words: NDArray[np.uint64]  # [2ⁿ, 3]
    subs: NDArray[np.float64]  # [slots, 8]
    half: NDArray[np.int32]  # the same memory, [slots, 16]
    keys: NDArray[np.float64]  # [*, 4]
    numbers: NDArray[np.int64]  # the same memory
    tree: NDArray[np.int32]  # [nodes, NODE]; node 0 has what is outside of node 1, the root
    rects: NDArray[np.float64]  # [nodes, 4]
    cells: NDArray[np.float64]  # [nodes, 8]
    lists: NDArray[np.uint64]  # [*, LIST]
    entries: NDArray[np.int32]  # [*, ENTRY]
    bounds: NDArray[np.float32]  # the same memory
    quantiles: NDArray[np.float64]  # of alpha, between the groups
    meta: NDArray[np.int64]


@njit(lean=True, forceinline=True)
def key_of(node: int, word: int) -> np.uint64:
    """The key of the list of a word (its number) in a leaf; different pairs have different ones."""
    return mix64(np.uint64(node + 1) << _HALF | np.uint64(word))


@njit(lean=True, forceinline=True)
def first_of(ig: Arrays, row: int) -> int:
    """The first entry of a list."""
    return np.int64(ig.lists[row, PLACE] & _PLACE)


@njit(lean=True, forceinline=True)
def size_of(ig: Arrays, row: int) -> int:
    """A list has room for 2^this entries; -1: none."""
    return np.int64(ig.lists[row, PLACE] >> _SIZE) - 1


@njit(lean=True, forceinline=True)
def count_of(ig: Arrays, row: int) -> int:
    """Entries of a list."""
    return np.int64(ig.lists[row, HELD] & _HELD)


@njit(lean=True, forceinline=True)
def set_place(ig: Arrays, row: int, first: int, size: int) -> None:
    """Where a list is now; size -1: nowhere."""
    ig.lists[row, PLACE] = np.uint64(size + 1) << _SIZE | np.uint64(first)


@njit(lean=True, forceinline=True)
def set_count(ig: Arrays, row: int, count: int) -> None:
    """How many entries a list has; its marks stay."""
    ig.lists[row, HELD] = ig.lists[row, HELD] & ~_HELD | np.uint64(count)


@njit(lean=True, forceinline=True)
def group_of(ig: Arrays, alpha: float) -> int:
    """The alpha-partition: which group an alpha belongs to. Skype 5.2.1."""
    group = 0
    while group < len(ig.quantiles) and alpha > ig.quantiles[group]:
        group += 1
    return group


@njit(lean=True, forceinline=True)
def down(value: float) -> np.float32:
    """As float32, not more."""
    return np.float32(value - abs(value) * 1.2e-7)


@njit(lean=True, forceinline=True)
def up(value: float) -> np.float32:
    """As float32, not less."""
    return np.float32(value + abs(value) * 1.2e-7)
