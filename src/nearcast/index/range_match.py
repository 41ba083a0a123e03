"""Matching objects against range subscriptions on posting lists (`index.range_lists`).

It works in rounds of some hundred look-ups, step by step, because waiting for memory is most of the
work: each step asks for what the next one reads. Indexes of the inner loops are unsigned: for
signed ones Numba looks each time whether they count from the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.deciding import EXAMINED, FOUND, LOOKUPS, NEXT, SCANNED, matches
from nearcast.index.posting import LEVELS, ORDINAL, UNIVERSAL, USED, Index
from nearcast.index.range_lists import ASK, MANY, NONE, NOT, OTHER, ROOT, WIDTH, cell_of, key_of
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.bits import ask_bit, is_set
from nearcast.kernels.prefetch import prefetch
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

_LOOKUPS = 1024  # a round
_HITS = 2048  # of one list, at a time: they and their entries stay in the second cache
_AHEAD = 8  # lists that are asked for before they are read
_OBJECTS = 8  # the same of objects
_BITS = 16  # and of bits
_LINE = 8  # 64-bit numbers that come from memory at once
_SEEN = 4096  # places for subscriptions that one object has met, a power of two
_SEEN_SHIFT = np.uint64(52)
_MASK = 8  # words of 64 bits, a power of two
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NOTHING, _ONE, _TWO, _THREE, _FOUR = (np.uint64(n) for n in range(5))
_WIDTH = np.uint64(WIDTH)
_OTHER = np.uint64(OTHER)
ASKING, TWICE = 1, 2  # bits: some of an object's matches must be asked, or may be there twice


class Search(NamedTuple):
    """Scratch for a round: the words of its objects, their look-ups, and what these meet."""

    word: NDArray[np.uint64]
    ordinal: NDArray[np.int32]  # the number of that word here; -1: no subscription uses it
    levels: NDArray[np.uint64]  # bits of the levels where it has lists
    start: NDArray[np.int64]  # the first word of each object, and the end of the last
    number: NDArray[np.int32]  # of the object in `visit`, a look-up
    key: NDArray[np.uint64]
    row: NDArray[np.int64]  # of the list found
    cell: NDArray[np.uint64]  # of one object, at each level in use
    level: NDArray[np.uint64]
    hit: NDArray[np.uint64]  # entries of one list whose box holds the object: places in the pool
    seen: NDArray[np.uint64]  # subscriptions that the object in hand has met: `_is_new`
    stamp: NDArray[np.uint64]  # [1]: of that object in `seen`
    mask: NDArray[np.uint64]  # a bit for each word of that object, by their numbers: `_has_bit`
    begin: NDArray[np.int64]  # the first match of each object, and the end of the last
    unsure: NDArray[np.int64]  # what is wrong with that, if anything: bits


class Seen(NamedTuple):
    """What is to be known of an object to decide a hit."""

    number: int
    x: np.float32
    y: np.float32
    settled: int  # slots before this one see it unless they are `careful`
    start: int  # its words
    stop: int


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
        np.zeros(_SEEN, np.uint64),
        np.zeros(1, np.uint64),
        np.zeros(_MASK, np.uint64),
        np.empty(words + 1, np.int64),
        np.empty(words, np.int64),
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


@njit(lean=True, forceinline=True)
def _ask_object(o: ObjectColumns, i: int) -> None:
    """Ask for what will be read of the objects some places further on."""
    if i + 2 * _OBJECTS < len(o.order):
        row = o.order[i + 2 * _OBJECTS]
        prefetch(o.word_offsets, row)
        prefetch(o.x, row)
        prefetch(o.y, row)
        prefetch(o.time, row)
        start = o.word_offsets[o.order[i + _OBJECTS]]
        prefetch(o.words, start)
        prefetch(o.words, min(start + _LINE, len(o.words) - 1))


@njit(lean=True)
def _read_words(
    table: NDArray[np.uint64], o: ObjectColumns, first: int, most: int, st: Search
) -> int:
    """The words of the objects from number `first` on, about `most`; the object to go on with.

    Every object has UNIVERSAL too.
    """
    n = 0
    i = first
    while i < len(o.order) and (n < most or i == first):
        _ask_object(o, i)
        row = o.order[i]
        st.start[i - first] = n
        st.word[n] = UNIVERSAL
        n += 1
        for w in range(o.word_offsets[row], o.word_offsets[row + 1]):
            st.word[n] = o.words[w]
            pl.ask_row(table, o.words[w])
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
    return i


@njit(lean=True)
def _gather(
    p: pl.Postings, o: ObjectColumns, first: int, stop: int, levels: int, st: Search
) -> int:
    """Look-ups of the objects [first, stop): their words at levels where these have lists."""
    n = _NOTHING
    for i in range(first, stop):
        row = o.order[i]
        for k in range(levels):
            st.cell[k] = cell_of(np.int64(st.level[k]), o.x[row], o.y[row])
        for j in range(st.start[i - first], st.start[i - first + 1]):
            word, there = st.word[j], st.levels[j]
            for k in range(levels):
                key = key_of(st.cell[k], word)
                st.number[n] = i
                st.key[n] = key
                pl.ask_mark(p, key)
                n += there >> st.level[k] & _ONE
    return np.int64(n)


@njit(lean=True)
def _find(p: pl.Postings, st: Search, n: int) -> int:
    """Keep those of n look-ups that meet a list; how many."""
    some = _NOTHING
    for j in range(n):
        key = st.key[j]
        st.number[some] = st.number[j]
        st.key[some] = key
        some += np.uint64(pl.marked(p, key))
    for j in range(np.int64(some)):
        pl.ask_row(p.table, st.key[j])
    kept = _NOTHING
    for j in range(np.int64(some)):
        row = pl.find(p.table, st.key[j])
        st.number[kept] = st.number[j]
        st.row[kept] = row
        kept += np.uint64(row >= 0)
    return np.int64(kept)


# -- deciding ----------------------------------------------------------------------------------


@njit(lean=True, forceinline=True)
def _within(
    boxes: NDArray[np.float32],
    first: int,
    stop: int,
    x: np.float32,
    y: np.float32,
    hit: NDArray[np.uint64],
) -> int:
    """The entries [first, stop) whose box holds (x, y); how many.

    Without a branch an entry: which side of it a point lies on cannot be foretold.
    """
    m = _NOTHING
    e, last = np.uint64(first) * _WIDTH, np.uint64(stop) * _WIDTH
    while e < last:
        hit[m] = e
        m += np.uint64(
            (x >= boxes[e + _ONE])
            & (y >= boxes[e + _TWO])
            & (x <= boxes[e + _THREE])
            & (y <= boxes[e + _FOUR])
        )
        e += _WIDTH
    return np.int64(m)


@njit(lean=True, forceinline=True)
def _bit_of(ordinal: int) -> tuple[np.uint64, np.uint64]:
    """(word, bit) of a word's number in a mask."""
    return np.uint64(ordinal >> 6 & (_MASK - 1)), np.uint64(ordinal & 63)


@njit(lean=True, forceinline=True)
def _see(slots: sl.Slots, o: ObjectColumns, number: int, st: Search, i: int, first: int) -> Seen:
    """Object `i`, whose number is another one, of a round whose first object is `first`."""
    row = o.order[i]
    start, stop = st.start[i - first], st.start[i - first + 1]
    st.mask[:] = _NOTHING
    for j in range(start, stop):
        word, bit = _bit_of(st.ordinal[j])
        st.mask[word] |= _ONE << bit
    settled = np.int64(sl.settled(slots, o.time[row]))
    return Seen(number, np.float32(o.x[row]), np.float32(o.y[row]), settled, start, stop)


@njit(lean=True, forceinline=True)
def _has_bit(st: Search, ordinal: int) -> bool:
    """Whether the object in hand may have a word; most entries are decided by that."""
    word, bit = _bit_of(ordinal)
    return st.mask[word] >> bit & _ONE != _NOTHING


@njit(lean=True, forceinline=True)
def _fits(st: Search, seen: Seen, one: int, two: int) -> bool:
    """Whether the words of an object are as an entry wants them (`range_lists`)."""
    first, second = (NOT - one if one <= NOT else one), (NOT - two if two <= NOT else two)
    bit_one, bit_two = _has_bit(st, first), _has_bit(st, second)
    if ((one >= 0) & (not bit_one)) | ((two >= 0) & (not bit_two)):
        return False
    if not ((first >= 0) & bit_one) | ((second >= 0) & bit_two):
        return True
    has_one = has_two = False
    for j in range(seen.start, seen.stop):
        has_one |= st.ordinal[j] == first
        has_two |= st.ordinal[j] == second
    return (has_one == (one >= 0)) & ((has_two == (two >= 0)) | (two == NONE))


@njit(lean=True, forceinline=True)
def _is_new(seen: NDArray[np.uint64], stamp: np.uint64, slot: np.uint64) -> bool:
    """Whether `slot` is met for the first time by the object of this stamp; it is noted.

    The table need not be emptied for the next object: what has another stamp counts as free.
    """
    key = stamp << np.uint64(32) | slot
    at = slot * _GOLDEN >> _SEEN_SHIFT
    while seen[at] >> np.uint64(32) == stamp:
        if seen[at] == key:
            return False
        at = (at + _ONE) & np.uint64(_SEEN - 1)
    seen[at] = key
    return True


@njit(lean=True, forceinline=True)
def _decide(
    pool: NDArray[np.int32],
    boxes: NDArray[np.float32],
    st: Search,
    seen: Seen,
    hits: int,
    noted: int,
    order: NDArray[np.int64],
    out: NDArray[np.int64],
    found: int,
) -> tuple[int, int, int]:
    """Write down the hits that match, behind `found` matches, and as ~slot those to be asked.

    (matches now; noted in `seen`; what is unsure).
    """
    n = np.uint64(found)
    unsure = 0
    for h in range(hits):
        e = st.hit[h]
        one, two = pool[e + _OTHER], pool[e + _OTHER + _ONE]
        if not _fits(st, seen, one, two):
            continue
        slot = np.int64(pool[e])
        sure = (
            (seen.x > boxes[e + _ONE])
            & (seen.y > boxes[e + _TWO])
            & (seen.x < boxes[e + _THREE])
            & (seen.y < boxes[e + _FOUR])
            & (one != ASK)
            & (slot < seen.settled)
        )
        order[n] = seen.number
        out[n] = slot if sure else ~slot
        if two == MANY:  # other lists may have it too
            if 2 * noted >= _SEEN:
                unsure |= TWICE
            elif _is_new(st.seen, st.stamp[0], np.uint64(slot)):
                noted += 1
            else:
                continue
        if not sure:  # what only its subscription can decide may be on several lists
            unsure |= ASKING | TWICE if one == ASK else ASKING
        n += _ONE
    return np.int64(n), noted, unsure


@njit(lean=True, forceinline=True)
def _begin(st: Search, stamp: bool, first: int, last: int, following: int, found: int) -> None:
    """The objects after `last`, up to `following`, have matches from `found` on."""
    for i in range(last + 1, following + 1):
        st.begin[i - first] = found
        if i < following or stamp:
            st.unsure[i - first] = 0
    if stamp:
        st.stamp[0] += _ONE


@njit(lean=True)
def _scan(
    ix: Index,
    pool: NDArray[np.int32],
    boxes: NDArray[np.float32],
    o: ObjectColumns,
    visit: NDArray[np.int64],
    st: Search,
    first: int,
    following: int,
    n: int,
    order: NDArray[np.int64],
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """Read n lists of the objects [first, following), which are a round.

    (The object to go on with: one that is not complete, for want of room, is left out; what is
    unsure.)
    """
    p = ix.lists
    found = counts[FOUND]
    last, noted, unsure = first - 1, 0, 0
    seen = _see(ix.slots, o, visit[first], st, first, first)
    examined = scanned = before = 0
    for j in range(n):
        if j + _AHEAD < n:
            pl.ask_list(p, st.row[j + _AHEAD])
        i = np.int64(st.number[j])
        if i != last:
            _begin(st, True, first, last, i, found)
            seen = _see(ix.slots, o, visit[i], st, i, first)
            last, noted = i, 0
            counts[EXAMINED] += examined
            counts[SCANNED] += scanned
            counts[LOOKUPS] += j - before
            examined, scanned, before = 0, 0, j
        start, length = pl.entries(p, st.row[j])
        stop = start + length
        while start < stop:
            end = min(start + len(st.hit), stop)
            if found + end - start > len(out):
                counts[FOUND] = st.begin[i - first]
                return i, unsure
            hits = _within(boxes, start, end, seen.x, seen.y, st.hit)
            found, noted, more = _decide(pool, boxes, st, seen, hits, noted, order, out, found)
            st.unsure[i - first] |= more
            unsure |= more
            examined += hits
            start = end
        scanned += length
    _begin(st, False, first, last, following, found)
    counts[EXAMINED] += examined
    counts[SCANNED] += scanned
    counts[LOOKUPS] += n - before
    counts[FOUND] = found
    return following, unsure


@njit(lean=True)
def _doubt(careful: NDArray[np.uint64], st: Search, objects: int, out: NDArray[np.int64]) -> int:
    """Ask also, of the matches of a round, those whose subscriptions are `careful`; any: ASKING."""
    first, stop = st.begin[0], st.begin[objects]
    for j in range(first, min(first + _BITS, stop)):
        ask_bit(careful, max(out[j], ~out[j]))
    unsure = 0
    for i in range(objects):
        doubts = 0
        for j in range(st.begin[i], st.begin[i + 1]):
            if j + _BITS < stop:
                ask_bit(careful, max(out[j + _BITS], ~out[j + _BITS]))
            if out[j] >= 0 and is_set(careful, out[j]):
                out[j] = ~out[j]
                doubts = ASKING
        st.unsure[i] |= doubts
        unsure |= doubts
    return unsure


@njit
def _settle(
    ix: Index,
    space: int,
    o: ObjectColumns,
    visit: NDArray[np.int64],
    st: Search,
    first: int,
    stop: int,
    order: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int:
    """Let subscriptions decide where the objects [first, stop) are unsure; the matches there are.

    What an object may have twice is kept once.
    """
    rows, heap = ix.slots.rows, ix.slots.heap
    for step in range(2):
        for i in range(first, stop):
            if st.unsure[i - first] & ASKING:
                for j in range(st.begin[i - first], st.begin[i - first + 1]):
                    if out[j] < 0 and step == 0:
                        prefetch(rows, ~out[j])
                    elif out[j] < 0:
                        prefetch(heap, rows[~out[j], sl.BODY])
    kept = st.begin[0]
    for i in range(first, stop):
        start, end = st.begin[i - first], st.begin[i - first + 1]
        if kept == start and st.unsure[i - first] == 0:
            kept = end
            continue
        before = kept
        for j in range(start, end):
            slot = out[j]
            if slot < 0:
                slot = ~slot
                if not matches(ix, space, slot, o, visit[i], o.order[i]):
                    continue
            order[kept] = visit[i]
            out[kept] = slot
            kept += 1
        if st.unsure[i - first] & TWICE:
            kept = _each_once(out, before, kept)
    return kept


@njit
def _each_once(out: NDArray[np.int64], start: int, stop: int) -> int:
    """Sort the slots [start, stop), all of one object, and keep each once; where they end."""
    out[start:stop].sort()
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
    visit: NDArray[np.int64],
    st: Search,
    order: NDArray[np.int64],
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Matches of the objects from `o.order[counts[NEXT]]` on: numbers of objects, and slots.

    `visit` has the numbers of the objects in `o.order`, which may be in any order. `pool` and
    `boxes` are those of the lists, as one run. False if there is no more room; call again with
    more: `counts[NEXT]` is then the object that was being decided.
    """
    levels = _levels(ix, st)
    while counts[NEXT] < len(o.order):
        first = counts[NEXT]
        following = _read_words(ix.words, o, first, _LOOKUPS // max(levels, 1), st)
        n = _find(ix.lists, st, _gather(ix.lists, o, first, following, levels, st))
        done, unsure = _scan(ix, pool, boxes, o, visit, st, first, following, n, order, out, counts)
        unsure |= _doubt(ix.slots.careful, st, done - first, out)
        if unsure:
            counts[FOUND] = _settle(ix, space, o, visit, st, first, done, order, out)
        counts[NEXT] = done
        if done < following:
            return False
    return True
