"""Finding the subscriptions of objects in FAST's structure, and its upkeep."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index import aki
from nearcast.index.aki import CHILD, FREQUENT, PARENT, PATH, Fast
from nearcast.index.lazy import LEFT, Lazy, may_leave, read, read_late
from nearcast.index.posting import SEEN, UNIVERSAL, Index
from nearcast.index.range_match import EXAMINED, LOOKUPS, NEXT, SCANNED
from nearcast.kernels import postings as pl
from nearcast.kernels import shared_lists as ls
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import key_in
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns


class Search(NamedTuple):
    """Scratch of a search."""

    words: NDArray[np.uint64]  # of the object: those that still lead somewhere
    nodes: NDArray[np.int64]  # of these words in the cell in hand
    keys: NDArray[np.uint64]  # [PATH + 1]: the path in hand
    following: NDArray[np.int64]  # [PATH + 1]: the next word to try on it


def make_search(longest: int) -> Search:
    """Scratch for objects of up to `longest` words."""
    return Search(
        np.empty(longest + 1, np.uint64),
        np.empty(longest + 1, np.int64),
        np.empty(PATH + 1, np.uint64),
        np.empty(PATH + 1, np.int64),
    )


@njit
def _read_list(
    ix: Index,
    f: Fast,
    lazy: Lazy,
    number: int,
    space: int,
    o: ObjectColumns,
    i: int,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    if number < 0:
        return True
    s = f.lists
    first, length = np.int64(s.heads[number, ls.FIRST]), np.int64(s.heads[number, ls.COUNT])
    return read(ix, lazy, s.pool, s.boxes, first, length, space, o, i, out, counts)


@njit
def _read_node(
    ix: Index,
    f: Fast,
    lazy: Lazy,
    row: int,
    space: int,
    o: ObjectColumns,
    i: int,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Read all that hangs on a node itself; False if `out` is full."""
    if not _read_list(ix, f, lazy, aki.list_of(f, row), space, o, i, out, counts):
        return False
    return _read_list(ix, f, lazy, aki.finals_of(f, row), space, o, i, out, counts)


@njit
def _follow(
    ix: Index,
    f: Fast,
    lazy: Lazy,
    q: Search,
    begin: int,
    n: int,
    space: int,
    o: ObjectColumns,
    i: int,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Read every path of frequent words that begins with word `begin`; False if `out` is full."""
    if not _read_node(ix, f, lazy, q.nodes[begin], space, o, i, out, counts):
        return False
    if not f.nodes[q.nodes[begin], aki.INFO] & PARENT:
        return True
    q.keys[0] = f.nodes[q.nodes[begin], aki.KEY]
    q.following[0] = begin + 1
    top = 0
    while top >= 0:
        j = q.following[top]
        if j >= n:
            top -= 1
            continue
        q.following[top] = j + 1
        counts[LOOKUPS] += 1
        row = pl.find(f.nodes, key_in(q.keys[top], q.words[j]))
        if row < 0:
            continue
        if not _read_node(ix, f, lazy, row, space, o, i, out, counts):
            return False
        if f.nodes[row, aki.INFO] & PARENT:
            top += 1
            q.keys[top] = f.nodes[row, aki.KEY]
            q.following[top] = j + 1
    return True


@njit
def _match_one(
    ix: Index,
    f: Fast,
    lazy: Lazy,
    q: Search,
    space: int,
    o: ObjectColumns,
    i: int,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Matches of object number `i`, level by level; False if `out` is full.

    What went down a level has only keywords that are frequent where it was: the others need not
    be looked for further down.
    """
    row = o.order[i]
    q.words[0] = UNIVERSAL
    n = 1
    for w in range(o.word_offsets[row], o.word_offsets[row + 1]):
        q.words[n] = o.words[w]
        n += 1
    for depth in range(f.meta[aki.DEEPEST] + 1):
        column, line = aki.place_of(f, depth, o.x[row]), aki.place_of(f, depth, o.y[row])
        cell = aki.cell_of(depth, column, line)
        frequent = 0
        for a in range(n):
            word = q.words[a]
            counts[LOOKUPS] += 1
            node = pl.find(f.nodes, key_in(cell, word))
            if node < 0:
                continue
            if aki.is_frequent(f, node):
                q.words[frequent] = word
                q.nodes[frequent] = node
                frequent += 1
            elif not _read_list(ix, f, lazy, aki.list_of(f, node), space, o, i, out, counts):
                return False
        n = frequent
        if n == 0:
            break
        for a in range(n):
            if not _follow(ix, f, lazy, q, a, n, space, o, i, out, counts):
                return False
    return read_late(ix, lazy, space, o, i, out, counts)


@njit
def match_fast(
    ix: Index,
    f: Fast,
    lazy: Lazy,
    q: Search,
    space: int,
    o: ObjectColumns,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Matches of the objects from number `counts[NEXT]` on: rows (object number, slot) of `out`.

    False if `out` is full; call again with a new one. The object that was being decided is then
    decided again: its work counts once, and stamps keep a match from being told twice.
    """
    for i in range(counts[NEXT], len(o.order)):
        before = (counts[EXAMINED], counts[LOOKUPS], counts[SCANNED])
        counts[NEXT] = i
        if not _match_one(ix, f, lazy, q, space, o, i, out, counts):
            counts[EXAMINED], counts[LOOKUPS], counts[SCANNED] = before
            return False
        until = o.until[o.order[i]]
        f.meta[aki.LATEST] = until if f.meta[aki.MATCHED] == 0 else max(until, f.meta[aki.LATEST])
        f.meta[aki.MATCHED] += 1
    ix.slots.meta[sl.CLOCK] += len(o.order)
    return True


# -- upkeep ------------------------------------------------------------------------------------


@njit(lean=True)
def _forget_words(ix: Index, slot: int) -> None:
    """A subscription left: its words are used once less."""
    if aki.is_conjunction(ix, slot):
        first = ix.slots.rows[slot, sl.BODY]
        for i in range(first, first + ix.slots.half[slot, sl.PROGRAM]):
            row = pl.find(ix.words, ix.slots.heap[i])
            if row >= 0 and ix.words[row, SEEN] > np.uint64(0):
                ix.words[row, SEEN] -= np.uint64(1)


@njit(lean=True)
def _clean_list(
    ix: Index,
    f: Fast,
    lazy: Lazy,
    row: int,
    number: int,
    w: NDArray[np.uint64],
    box: NDArray[np.float32],
) -> None:
    """Take what has ended off a list of a node."""
    s = f.lists
    in_trie = f.nodes[row, aki.INFO] & (FREQUENT | CHILD) != np.uint64(0)
    for place in range(s.heads[number, ls.COUNT] - 1, -1, -1):
        slot = np.int64(s.pool[s.heads[number, ls.FIRST] + place, 0])
        left = lazy.meta[LEFT]
        if not may_leave(ix, lazy, slot, f.meta[aki.LATEST], box):
            continue
        if lazy.meta[LEFT] > left:
            _forget_words(ix, slot)
        if in_trie and aki.is_conjunction(ix, slot):
            n = aki.words_of(ix, slot, np.uint64(0), w)
            aki.count_uses(f, f.nodes[row, aki.CELL], w, n, False)
        elif in_trie:
            f.nodes[row, aki.MORE] -= aki.ONE_USE
        ls.remove(s, number, place)
        f.meta[aki.CLEANED] += 1


@njit(lean=True)
def _clean_node(
    ix: Index, f: Fast, lazy: Lazy, row: int, w: NDArray[np.uint64], box: NDArray[np.float32]
) -> None:
    """Clean the lists of a node; a keyword that nothing counts on is infrequent again."""
    number = aki.list_of(f, row)
    if number >= 0:
        _clean_list(ix, f, lazy, row, number, w, box)
        if f.lists.heads[number, ls.COUNT] == 0:
            ls.release(f.lists, number)
            aki.set_list(f, row, -1)
    number = aki.finals_of(f, row)
    if number >= 0:
        _clean_list(ix, f, lazy, row, number, w, box)
        if f.lists.heads[number, ls.COUNT] == 0:
            ls.release(f.lists, number)
            f.nodes[row, aki.MORE] -= np.uint64(number + 1)
    info = f.nodes[row, aki.INFO]
    if info & FREQUENT and not info & CHILD and f.nodes[row, aki.MORE] == np.uint64(0):
        f.nodes[row, aki.INFO] = np.uint64(0)
        f.meta[aki.MERGED] += 1


@njit
def clean(ix: Index, f: Fast, lazy: Lazy, nodes: int) -> None:
    """Clean so many nodes, from where the last cleaning stopped."""
    w, box = np.empty(PATH, np.uint64), np.empty(4, np.float32)
    for _ in range(nodes):
        row = f.meta[aki.CURSOR] % len(f.nodes)
        f.meta[aki.CURSOR] = row + 1
        if f.nodes[row, aki.KEY] != np.uint64(0):
            _clean_node(ix, f, lazy, row, w, box)
