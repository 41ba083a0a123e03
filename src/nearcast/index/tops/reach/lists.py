"""One list per word, of subscriptions with how far they reach; long lists in leaves of 32.

An object is taken only if its score is at least the floor of the subscription, so if

    alpha - floor + (1 - alpha)·cos >= alpha·min(1, distance/maxdist).

Words have one order for all, the rarest first. Under a word `w` a subscription is looked for by
objects that share no word before `w` with it; so there cos is at most ws·wo + rest_s·rest_o, where
ws and wo are the weights of `w` and rest_s, rest_o the norms of what comes behind it on both sides.
An entry holds what that needs: alpha - floor, (1 - alpha)·ws, (1 - alpha)·rest_s, and the place.

Places are points in three dimensions (on the globe: the ends of vectors from its centre), because a
chord is never longer than the way along the ground. All numbers are float32, rounded outwards.

A leaf has its columns one after the other, 32 numbers each, so that compiled code tests eight or
more entries at once. Its summary bounds all of them. The leaves of a list are in the order of a key
that brings together what reaches equally far from about the same place; what was posted since then
stands behind them, until it is an eighth of the list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import blocks
from nearcast.kernels import postings as pl
from nearcast.model.jit import njit

LEAF = 32
# columns of an entry
PX, PY, PZ, E0, E1, E2, G2, NEAR, SLOT = range(9)
WIDTH = 9
# columns of a summary: the box, the most of E0, E1 and E2, the least of G2 and NEAR
BOX, MOST, LEAST = 0, 6, 9
SUMMARY = 12
# columns of the table of words; COUNT has the entries, and above them how many are in order
WORD, FIRST, COUNT, ORDINAL, IDF = range(5)
ROW = 5
# places in `meta`
WORDS = 0
FEW = 1  # the small lists' blocks
LEAVES = FEW + blocks.META
META = LEAVES + blocks.META

FEW_CLASSES = 5  # lists of up to 16 entries are small
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_SIZE = np.uint64(48)
_PLACE = np.uint64((1 << 48) - 1)

Floats = NDArray[np.float32]
Halves = NDArray[np.int32]


class Lists(NamedTuple):
    """All lists; the arrays may be memory-mapped."""

    table: NDArray[np.uint64]  # [2ⁿ, ROW]; FIRST has the place, and above it 1 + the block's size
    few: Floats  # [entries, WIDTH]
    few_slots: Halves  # the same memory
    leaves: Floats  # [leaves, WIDTH, LEAF]
    leaf_slots: Halves  # the same memory
    summaries: Floats  # [leaves, SUMMARY]
    links: Halves  # [leaves, 1]: of free blocks
    meta: NDArray[np.int64]


@njit(lean=True, forceinline=True)
def size_of(li: Lists, row: int) -> int:
    """The size class of a list: below FEW_CLASSES it is small, above it counts leaves; -1: none."""
    return np.int64(li.table[row, FIRST] >> _SIZE) - 1


@njit(lean=True, forceinline=True)
def first_of(li: Lists, row: int) -> int:
    """The first entry of a small list, or the first leaf of another."""
    return np.int64(li.table[row, FIRST] & _PLACE)


@njit(lean=True, forceinline=True)
def count_of(li: Lists, row: int) -> int:
    """Entries of a list."""
    return np.int64(li.table[row, COUNT] & _LOW)


@njit(lean=True, forceinline=True)
def ordered_of(li: Lists, row: int) -> int:
    """How many of them are in order."""
    return np.int64(li.table[row, COUNT] >> _HALF)


@njit(lean=True, forceinline=True)
def set_list(li: Lists, row: int, size: int, first: int) -> None:
    """Where a list is now."""
    li.table[row, FIRST] = np.uint64(size + 1) << _SIZE | np.uint64(first)


@njit(lean=True, forceinline=True)
def set_count(li: Lists, row: int, count: int, ordered: int) -> None:
    """How many entries it has."""
    li.table[row, COUNT] = np.uint64(ordered) << _HALF | np.uint64(count)


@njit(lean=True)
def row_of(li: Lists, word: np.uint64, idf: float) -> int:
    """The row of a word, which is put into the table if it is new; there must be room."""
    row = pl.find(li.table, word)
    if row < 0:
        row = -1 - row
        li.table[row, WORD] = word
        li.table[row, FIRST] = np.uint64(0)
        li.table[row, COUNT] = np.uint64(0)
        li.table[row, ORDINAL] = np.uint64(li.meta[WORDS])
        li.table[row, IDF] = np.uint64(max(idf, 0.0) * 4294967296.0)  # fixed point: it is compared
        li.meta[WORDS] += 1
    return row


@njit(lean=True, forceinline=True)
def comes_before(li: Lists, one: int, other: int) -> bool:
    """Whether one word is the rarer: by idf, then by which was met later."""
    if li.table[one, IDF] != li.table[other, IDF]:
        return bool(li.table[one, IDF] > li.table[other, IDF])
    return bool(li.table[one, ORDINAL] > li.table[other, ORDINAL])


@njit(lean=True)
def add(li: Lists, row: int, entry: Floats, slot: int) -> bool:
    """Append an entry to a list; False: a pool must grow. A small list has each slot once."""
    size, count = size_of(li, row), count_of(li, row)
    if size < FEW_CLASSES:
        first = first_of(li, row)
        for j in range(first, first + count):
            if li.few_slots[j, SLOT] == slot:
                for c in range(SLOT):
                    li.few[j, c] = entry[c]
                return True
        if size < 0 or count == 1 << size:
            if size + 1 == FEW_CLASSES:
                if not _to_leaves(li, row):
                    return False
                return _append(li, row, entry, slot)
            wider = blocks.take(li.few_slots, li.meta[FEW:], size + 1)
            if wider < 0:
                return False
            for j in range(count):
                for c in range(WIDTH):
                    li.few_slots[wider + j, c] = li.few_slots[first + j, c]
            if size >= 0:
                blocks.give_back(li.few_slots, li.meta[FEW:], first, size)
            first = wider
            set_list(li, row, size + 1, first)
        for c in range(SLOT):
            li.few[first + count, c] = entry[c]
        li.few_slots[first + count, SLOT] = slot
        set_count(li, row, count + 1, 0)
        return True
    return _append(li, row, entry, slot)


@njit(lean=True)
def _to_leaves(li: Lists, row: int) -> bool:
    """Make a small list one of leaves."""
    leaf = blocks.take(li.links, li.meta[LEAVES:], 0)
    if leaf < 0:
        return False
    first, count, size = first_of(li, row), count_of(li, row), size_of(li, row)
    for j in range(count):
        for c in range(WIDTH):
            li.leaf_slots[leaf, c, j] = li.few_slots[first + j, c]
    blocks.give_back(li.few_slots, li.meta[FEW:], first, size)
    set_list(li, row, FEW_CLASSES, leaf)
    summarise(li, leaf, count)
    return True


@njit(lean=True)
def _append(li: Lists, row: int, entry: Floats, slot: int) -> bool:
    """Append an entry to a list of leaves."""
    size, count, first = size_of(li, row), count_of(li, row), first_of(li, row)
    leaves = 1 << (size - FEW_CLASSES)
    if count == leaves * LEAF:
        wider = blocks.take(li.links, li.meta[LEAVES:], size - FEW_CLASSES + 1)
        if wider < 0:
            return False
        for n in range(leaves):
            for c in range(WIDTH):
                for j in range(LEAF):
                    li.leaf_slots[wider + n, c, j] = li.leaf_slots[first + n, c, j]
            for c in range(SUMMARY):
                li.summaries[wider + n, c] = li.summaries[first + n, c]
        blocks.give_back(li.links, li.meta[LEAVES:], first, size - FEW_CLASSES)
        first = wider
        set_list(li, row, size + 1, first)
    leaf, j = first + count // LEAF, count % LEAF
    for c in range(SLOT):
        li.leaves[leaf, c, j] = entry[c]
    li.leaf_slots[leaf, SLOT, j] = slot
    if j == 0:
        clear_summary(li, leaf)
    widen(li, leaf, j)
    set_count(li, row, count + 1, ordered_of(li, row))
    return True


@njit(lean=True, forceinline=True)
def clear_summary(li: Lists, leaf: int) -> None:
    """The summary of no entries."""
    inf = np.float32(np.inf)
    for c in range(3):
        li.summaries[leaf, BOX + c] = inf
        li.summaries[leaf, BOX + 3 + c] = -inf
        li.summaries[leaf, MOST + c] = -inf
    for c in range(2):
        li.summaries[leaf, LEAST + c] = inf


@njit(lean=True, forceinline=True)
def widen(li: Lists, leaf: int, j: int) -> None:
    """Make the summary of a leaf bound its entry `j`. What is no number bounds everything."""
    s = li.summaries[leaf]
    for c in range(3):
        v = li.leaves[leaf, PX + c, j]
        if not s[BOX + c] <= v:
            s[BOX + c] = v
        if not s[BOX + 3 + c] >= v:
            s[BOX + 3 + c] = v
        v = li.leaves[leaf, E0 + c, j]
        if not s[MOST + c] >= v:
            s[MOST + c] = v
    for c in range(2):
        v = li.leaves[leaf, G2 + c, j]
        if not s[LEAST + c] <= v:
            s[LEAST + c] = v


@njit(lean=True)
def summarise(li: Lists, leaf: int, count: int) -> None:
    """Make the summary of a leaf anew."""
    clear_summary(li, leaf)
    for j in range(count):
        widen(li, leaf, j)
