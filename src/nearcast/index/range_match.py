"""Matching objects against range subscriptions on posting lists (`index.range_lists`).

It works in rounds of some hundred look-ups, step by step, because waiting for memory is most of the
work: within a step the loads do not depend on each other. Indexes of the inner loops are unsigned:
for signed ones Numba looks each time whether they count from the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.deciding import EXAMINED, FOUND, LOOKUPS, NEXT, SCANNED, TOUCHED, matches
from nearcast.index.posting import LEVELS, ORDINAL, UNIVERSAL, USED, Index
from nearcast.index.range_lists import ASK, MANY, NONE, OTHER, ROOT, WIDTH, cell_of, key_of
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.bits import is_set
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

_LOOKUPS = 1024  # a round
_HITS = 8192  # at a time
_FEW = 24  # matches of an object: sorted one by one
_NOTHING, _ONE, _TWO, _THREE, _FOUR = (np.uint64(n) for n in range(5))
_WIDTH = np.uint64(WIDTH)
_OTHER = np.uint64(OTHER)
_TOUCH = np.uint64(2 * WIDTH)  # numbers from load to load: a cache line has sixteen


class Search(NamedTuple):
    """Scratch for a round: the words of its objects, their look-ups, and what these meet."""

    word: NDArray[np.uint64]
    ordinal: NDArray[np.int32]  # the number of that word here; -1: no subscription uses it
    levels: NDArray[np.uint64]  # bits of the levels where it has lists
    start: NDArray[np.int64]  # the first word of each object, and the end of the last
    number: NDArray[np.int32]  # of the object, a look-up
    key: NDArray[np.uint64]
    row: NDArray[np.int64]  # of the list found
    cell: NDArray[np.uint64]  # of one object, at each level in use
    level: NDArray[np.uint64]
    hit: NDArray[np.uint64]  # entries whose box holds the object: where they begin in the pool
    hit_number: NDArray[np.int32]  # and that object
    done: NDArray[np.int64]  # [4]: the object being decided, what was FOUND and EXAMINED before
    # it, and whether it may have met a subscription twice


def make_search(longest: int) -> Search:
    """Scratch for objects of up to `longest` words."""
    words = _LOOKUPS + longest + 1
    lookups = _LOOKUPS + (longest + 1) * (ROOT + 1)
    return Search(
        np.empty(words, np.uint64),
        np.empty(words, np.int32),
        np.empty(words, np.uint64),
        np.empty(words + 1, np.int64),
        np.empty(lookups, np.int32),
        np.empty(lookups, np.uint64),
        np.empty(lookups, np.int64),
        np.empty(ROOT + 1, np.uint64),
        np.empty(ROOT + 1, np.uint64),
        np.empty(_HITS, np.uint64),
        np.empty(_HITS, np.int32),
        np.empty(4, np.int64),
    )


# -- look-ups ----------------------------------------------------------------------------------


@njit(lean=True)
def _levels(ix: Index, st: Search) -> int:
    """Note the levels in use; how many there are."""
    used = np.uint64(ix.meta[USED])
    n = 0
    for level in range(ROOT + 1):
        if used >> np.uint64(level) & _ONE:
            st.level[n] = level
            n += 1
    return n


@njit(lean=True)
def _read_words(
    table: NDArray[np.uint64], o: ObjectColumns, first: int, most: int, st: Search
) -> tuple[int, int]:
    """The words of the objects from number `first` on, about `most`; (next object, touched).

    Every object has UNIVERSAL too.
    """
    n = 0
    i = first
    touched = 0
    while i < len(o.order) and (n < most or i == first):
        row = o.order[i]
        st.start[i - first] = n
        st.word[n] = UNIVERSAL
        n += 1
        for w in range(o.word_offsets[row], o.word_offsets[row + 1]):
            st.word[n] = o.words[w]
            touched ^= np.int64(table[pl.home(len(table), o.words[w]), 0])
            n += 1
        i += 1
    st.start[i - first] = n
    for j in range(n):
        found = pl.find(table, st.word[j])
        if found >= 0:
            st.ordinal[j] = table[found, ORDINAL]
            st.levels[j] = table[found, LEVELS]
        else:
            st.ordinal[j] = -1
            st.levels[j] = 0
    return i, touched


@njit(lean=True)
def _gather(
    p: pl.Postings, o: ObjectColumns, first: int, stop: int, levels: int, st: Search
) -> int:
    """Look-ups of the objects [first, stop) that may meet a list: words at levels they have."""
    n = np.uint64(0)
    for i in range(first, stop):
        row = o.order[i]
        for k in range(levels):
            st.cell[k] = cell_of(np.int64(st.level[k]), o.x[row], o.y[row])
        for j in range(st.start[i - first], st.start[i - first + 1]):
            word, there = st.word[j], st.levels[j]
            if there == np.uint64(0):
                continue
            for k in range(levels):
                key = key_of(st.cell[k], word)
                st.number[n] = i
                st.key[n] = key
                n += there >> st.level[k] & np.uint64(pl.marked(p, key))
    return np.int64(n)


@njit(lean=True)
def _find(p: pl.Postings, st: Search, n: int) -> tuple[int, int]:
    """Keep the look-ups that meet a list, and load what they meet; (how many, touched)."""
    touched = np.uint64(0)
    for j in range(n):
        touched ^= p.table[pl.home(len(p.table), st.key[j]), 0]
    kept = 0
    for j in range(n):
        row = pl.find(p.table, st.key[j])
        st.number[kept] = st.number[j]
        st.row[kept] = row
        kept += row >= 0
    return kept, np.int64(touched)


@njit(lean=True)
def _touch(p: pl.Postings, pool: NDArray[np.int32], st: Search, n: int) -> int:
    """Load n lists: what the loads read is good for nothing else."""
    touched = np.int32(0)
    for j in range(n):
        first, length = pl.entries(p, st.row[j])
        e, stop = np.uint64(first) * _WIDTH, np.uint64(first + length) * _WIDTH
        while e < stop:
            touched ^= pool[e]
            e += _TOUCH
    return np.int64(touched)


@njit(lean=True)
def _within(
    p: pl.Postings,
    boxes: NDArray[np.float32],
    o: ObjectColumns,
    st: Search,
    n: int,
    j: int,
    skip: int,
) -> tuple[int, int, int]:
    """Hits in the lists from `j` on, `skip` entries of it left out, as far as there is room.

    (hits, list and skip to go on with). Without a branch an entry: which side of it a point lies on
    cannot be foretold.
    """
    m = np.uint64(0)
    while j < n:
        first, length = pl.entries(p, st.row[j])
        room = len(st.hit) - int(m)
        if length - skip > room and m > _NOTHING:
            break
        stop = first + skip + min(length - skip, room)
        i = st.number[j]
        row = o.order[i]
        x, y = np.float32(o.x[row]), np.float32(o.y[row])
        e, last = np.uint64(first + skip) * _WIDTH, np.uint64(stop) * _WIDTH
        while e < last:
            st.hit[m] = e
            st.hit_number[m] = i
            m += np.uint64(
                (x >= boxes[e + _ONE])
                & (y >= boxes[e + _TWO])
                & (x <= boxes[e + _THREE])
                & (y <= boxes[e + _FOUR])
            )
            e += _WIDTH
        if stop < first + length:
            return np.int64(m), j, stop - first
        j += 1
        skip = 0
    return np.int64(m), j, 0


# -- deciding ----------------------------------------------------------------------------------


@njit(lean=True, forceinline=True)
def _strictly(boxes: NDArray[np.float32], e: np.uint64, x: np.float32, y: np.float32) -> bool:
    """Whether the rounded box at `e` holds (x, y) away from its edge."""
    return bool(
        (x > boxes[e + _ONE])
        & (y > boxes[e + _TWO])
        & (x < boxes[e + _THREE])
        & (y < boxes[e + _FOUR])
    )


@njit(lean=True, forceinline=True)
def _has_words(st: Search, start: int, stop: int, one: int, two: int) -> bool:
    """Whether the words [start, stop) have these numbers among them; two may be NONE."""
    has_one = False
    has_two = two == NONE
    for j in range(start, stop):
        has_one |= st.ordinal[j] == one
        has_two |= st.ordinal[j] == two
    return has_one & has_two


@njit
def _decide(
    ix: Index,
    pool: NDArray[np.int32],
    boxes: NDArray[np.float32],
    space: int,
    o: ObjectColumns,
    st: Search,
    hits: int,
    first: int,
    order: NDArray[np.int64],
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Which of the hits of a round, whose first object is `first`, match; False: no more room."""
    touched = np.int64(0)
    for h in range(hits):
        if pool[st.hit[h] + _OTHER] == ASK:
            touched ^= ix.slots.rows[pool[st.hit[h]], sl.BODY]
    counts[TOUCHED] ^= touched
    found = counts[FOUND]
    settled = np.int64(0)
    if hits > 0:
        settled = sl.settled(ix.slots, o.time[o.order[st.hit_number[0]]])
    for h in range(hits):
        e = st.hit[h]
        i = np.int64(st.hit_number[h])
        row = o.order[i]
        if i != st.done[0]:
            if st.done[3]:
                found = _each_once(order, out, st.done[1], found)
            st.done[0], st.done[1], st.done[2], st.done[3] = i, found, counts[EXAMINED], 0
            settled = sl.settled(ix.slots, o.time[row])
        counts[EXAMINED] += 1
        one, two = pool[e + _OTHER], pool[e + _OTHER + _ONE]
        if one >= 0 and not _has_words(st, st.start[i - first], st.start[i - first + 1], one, two):
            continue
        slot = np.int64(pool[e])
        sure = (
            one != ASK
            and slot < settled
            and _strictly(boxes, e, np.float32(o.x[row]), np.float32(o.y[row]))
            and not is_set(ix.slots.careful, slot)
        )
        if sure or matches(ix, space, slot, o, i, row):
            if found == len(out):
                return False
            order[found] = i
            out[found] = slot
            found += 1
            st.done[3] |= not sure or two == MANY
    counts[FOUND] = found
    return True


@njit
def _each_once(order: NDArray[np.int64], out: NDArray[np.int64], start: int, stop: int) -> int:
    """Sort the slots [start, stop), all of one object, and keep each once; where they end.

    Lists may share subscriptions; and of two with the same id the older one is told first.
    """
    ascending = True
    for j in range(start + 1, stop):
        ascending &= out[j - 1] < out[j]
    if ascending:
        return stop
    if stop - start > _FEW:
        out[start:stop].sort()
    else:
        for j in range(start + 1, stop):
            slot = out[j]
            k = j
            while k > start and out[k - 1] > slot:
                out[k] = out[k - 1]
                k -= 1
            out[k] = slot
    kept = start
    for j in range(start, stop):
        out[kept] = out[j]
        kept += j + 1 == stop or out[j + 1] != out[j]
    return kept


@njit
def match_range(
    ix: Index,
    pool: NDArray[np.int32],
    boxes: NDArray[np.float32],
    space: int,
    o: ObjectColumns,
    st: Search,
    order: NDArray[np.int64],
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Matches of the objects from number `counts[NEXT]` on: object numbers, ascending, and slots.

    `pool` and `boxes` are those of the lists, as one run. False if there is no more room; call
    again with more: `counts[NEXT]` is then the object that was being decided.
    """
    levels = _levels(ix, st)
    while counts[NEXT] < len(o.order):
        first = counts[NEXT]
        following, touched = _read_words(ix.words, o, first, _LOOKUPS // max(levels, 1), st)
        n, more = _find(ix.lists, st, _gather(ix.lists, o, first, following, levels, st))
        counts[TOUCHED] ^= touched ^ more ^ _touch(ix.lists, pool, st, n)
        st.done[0] = -1
        st.done[3] = 0
        j = skip = 0
        while j < n:
            hits, j, skip = _within(ix.lists, boxes, o, st, n, j, skip)
            if not _decide(ix, pool, boxes, space, o, st, hits, first, order, out, counts):
                following, counts[FOUND], counts[EXAMINED] = st.done[0], st.done[1], st.done[2]
                st.done[3] = 0
                break
        if st.done[3]:
            counts[FOUND] = _each_once(order, out, st.done[1], counts[FOUND])
        for k in range(n):
            if st.number[k] < following:
                counts[LOOKUPS] += 1
                counts[SCANNED] += pl.entries(ix.lists, st.row[k])[1]
        counts[NEXT] = following
        if j < n or (n > 0 and following <= st.number[n - 1]):
            return False
    return True


@njit
def name_matches(
    o: ObjectColumns, order: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(time, where the id starts, its length) of the objects with these numbers."""
    n = len(order)
    time, start, length = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for j in range(n):
        row = o.order[order[j]]
        time[j] = o.time[row]
        start[j] = o.id_offsets[row]
        length[j] = o.id_offsets[row + 1] - start[j]
    return time, start, length
