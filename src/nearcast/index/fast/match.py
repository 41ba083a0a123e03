"""Finding the subscriptions of objects in FAST's structure, and its upkeep."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.deciding import LOOKUPS, NEXT, SCANNED
from nearcast.index.fast import nodes as nd
from nearcast.index.fast.nodes import CHILD, FREQUENT, PARENT, PATH, Fast
from nearcast.index.posting import SEEN, UNIVERSAL, Index
from nearcast.index.regions.lazy_deletion import (
    DONE,
    HITS,
    LEFT,
    Lazy,
    collect,
    collect_late,
    may_leave,
    settle,
    work_so_far,
)
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
    hits: NDArray[np.int64]  # slots that the object may match


def make_search(longest: int) -> Search:
    """Scratch for objects of up to `longest` words."""
    return Search(
        np.empty(longest + 1, np.uint64),
        np.empty(longest + 1, np.int64),
        np.empty(PATH + 1, np.uint64),
        np.empty(PATH + 1, np.int64),
        np.empty(HITS, np.int64),
    )


@njit(lean=True)
def _collect_list(
    f: Fast, number: int, x: float, y: float, q: Search, n: int, counts: NDArray[np.int64]
) -> int:
    """Add the hits of a list to n hits; how many there are then, -1 if too many."""
    if number < 0 or n < 0:
        return n
    s = f.lists
    first, length = np.int64(s.heads[number, ls.FIRST]), np.int64(s.heads[number, ls.COUNT])
    counts[SCANNED] += length
    return collect(s.pool, s.boxes, first, length, x, y, q.hits, n)


@njit(lean=True)
def _collect_node(
    f: Fast, row: int, x: float, y: float, q: Search, n: int, counts: NDArray[np.int64]
) -> int:
    """The same of the lists of a node itself."""
    n = _collect_list(f, nd.list_of(f, row), x, y, q, n, counts)
    return _collect_list(f, nd.finals_of(f, row), x, y, q, n, counts)


@njit(lean=True)
def _follow(
    f: Fast,
    q: Search,
    begin: int,
    words: int,
    x: float,
    y: float,
    n: int,
    counts: NDArray[np.int64],
) -> int:
    """The same of every path of the frequent `words` that begins with number `begin` of them."""
    n = _collect_node(f, q.nodes[begin], x, y, q, n, counts)
    if f.nodes[q.nodes[begin], nd.INFO] & PARENT == np.uint64(0):
        return n
    q.keys[0] = f.nodes[q.nodes[begin], nd.KEY]
    q.following[0] = begin + 1
    top = 0
    while top >= 0:
        j = q.following[top]
        if j >= words:
            top -= 1
            continue
        q.following[top] = j + 1
        counts[LOOKUPS] += 1
        row = pl.find(f.nodes, key_in(q.keys[top], q.words[j]))
        if row < 0:
            continue
        n = _collect_node(f, row, x, y, q, n, counts)
        if f.nodes[row, nd.INFO] & PARENT != np.uint64(0):
            top += 1
            q.keys[top] = f.nodes[row, nd.KEY]
            q.following[top] = j + 1
    return n


@njit(lean=True)
def _collect(
    ix: Index, f: Fast, lazy: Lazy, q: Search, o: ObjectColumns, i: int, counts: NDArray[np.int64]
) -> int:
    """Hits of object number `i`, level by level; -1 if there are too many.

    An entry that went down a level has only keywords that are frequent where it was. So the
    infrequent ones need not be looked for further down.
    """
    row = o.order[i]
    x, y = o.x[row], o.y[row]
    q.words[0] = UNIVERSAL
    words = 1
    for w in range(o.word_offsets[row], o.word_offsets[row + 1]):
        q.words[words] = o.words[w]
        words += 1
    n = 0
    for depth in range(f.meta[nd.DEEPEST] + 1):
        cell = nd.cell_of(depth, nd.place_of(f, depth, x), nd.place_of(f, depth, y))
        frequent = 0
        for a in range(words):
            word = q.words[a]
            counts[LOOKUPS] += 1
            node = pl.find(f.nodes, key_in(cell, word))
            if node < 0:
                continue
            if nd.is_frequent(f, node):
                q.words[frequent] = word
                q.nodes[frequent] = node
                frequent += 1
            else:
                n = _collect_list(f, nd.list_of(f, node), x, y, q, n, counts)
        words = frequent
        if words == 0:
            break
        for a in range(words):
            n = _follow(f, q, a, words, x, y, n, counts)
    return collect_late(ix, lazy, o, i, q.hits, n, counts)


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
) -> int:
    """Matches of the objects from number `counts[NEXT]` on: `out` (object numbers, slots).

    DONE, or FULL or SHORT: call again with a new `out`, or with longer hits. The object that was
    being decided is then decided again: its work counts once, and stamps keep a match from being
    reported twice.
    """
    for i in range(counts[NEXT], len(o.order)):
        before = work_so_far(counts)
        counts[NEXT] = i
        hits = _collect(ix, f, lazy, q, o, i, counts)
        if hits != 0:
            end = settle(ix, lazy, space, o, i, q.hits, hits, out, counts, before)
            if end != DONE:
                return end
        until = o.until[o.order[i]]
        f.meta[nd.LATEST] = until if f.meta[nd.MATCHED] == 0 else max(until, f.meta[nd.LATEST])
        f.meta[nd.MATCHED] += 1
    ix.slots.meta[sl.CLOCK] += len(o.order)
    return DONE


# -- upkeep ------------------------------------------------------------------------------------


@njit(lean=True)
def _forget_words(ix: Index, slot: int) -> None:
    """A subscription left: its words are used once less."""
    if nd.is_conjunction(ix, slot):
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
    in_trie = f.nodes[row, nd.INFO] & (FREQUENT | CHILD) != np.uint64(0)
    for place in range(s.heads[number, ls.COUNT] - 1, -1, -1):
        slot = np.int64(s.pool[s.heads[number, ls.FIRST] + place, 0])
        left = lazy.meta[LEFT]
        if not may_leave(ix, lazy, slot, f.meta[nd.LATEST], box):
            continue
        if lazy.meta[LEFT] > left:
            _forget_words(ix, slot)
        if in_trie and nd.is_conjunction(ix, slot):
            n = nd.words_of(ix, slot, np.uint64(0), w)
            nd.count_uses(f, f.nodes[row, nd.CELL], w, n, False)
        elif in_trie:
            f.nodes[row, nd.MORE] -= nd.ONE_USE
        ls.remove(s, number, place)
        f.meta[nd.CLEANED] += 1


@njit(lean=True)
def _clean_node(
    ix: Index, f: Fast, lazy: Lazy, row: int, w: NDArray[np.uint64], box: NDArray[np.float32]
) -> None:
    """Clean the lists of a node; a keyword that no entry counts on is infrequent again."""
    number = nd.list_of(f, row)
    if number >= 0:
        _clean_list(ix, f, lazy, row, number, w, box)
        if f.lists.heads[number, ls.COUNT] == 0:
            ls.release(f.lists, number)
            nd.set_list(f, row, -1)
    number = nd.finals_of(f, row)
    if number >= 0:
        _clean_list(ix, f, lazy, row, number, w, box)
        if f.lists.heads[number, ls.COUNT] == 0:
            ls.release(f.lists, number)
            f.nodes[row, nd.MORE] -= np.uint64(number + 1)
    info = f.nodes[row, nd.INFO]
    if info & FREQUENT and not info & CHILD and f.nodes[row, nd.MORE] == np.uint64(0):
        f.nodes[row, nd.INFO] = np.uint64(0)
        f.meta[nd.MERGED] += 1


@njit
def clean(ix: Index, f: Fast, lazy: Lazy, nodes: int) -> None:
    """Clean so many nodes, from where the last cleaning stopped."""
    w, box = np.empty(PATH, np.uint64), np.empty(4, np.float32)
    for _ in range(nodes):
        row = f.meta[nd.CURSOR] % len(f.nodes)
        f.meta[nd.CURSOR] = row + 1
        if f.nodes[row, nd.KEY] != np.uint64(0):
            _clean_node(ix, f, lazy, row, w, box)
