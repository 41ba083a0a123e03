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
from nearcast.kernels.bits import is_set
from nearcast.kernels.prefetch import prefetch
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

_LOOKUPS = 1024  # a round
_HITS = 2048  # at a time: they and their entries stay in the second cache
_AHEAD = 8  # lists that are asked for before they are read
_SEEN = 4096  # places for subscriptions that one object has met, a power of two
_SEEN_SHIFT = np.uint64(52)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NOTHING, _ONE, _TWO, _THREE, _FOUR = (np.uint64(n) for n in range(5))
_WIDTH = np.uint64(WIDTH)
_OTHER = np.uint64(OTHER)


# what is known of a hit
WRONG, SURE, OFTEN, ASKED, MAYBE = 0, 1, 2, 3, 4  # OFTEN: sure, but other lists may have it too
# places in `done`
OBJECT = 0  # the object being decided
BEFORE = 1  # matches FOUND before it
STAMP = 2  # it, in `seen`
NOTED = 3  # what it has there
SORTED = 4  # whether its matches must be sorted


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
    verdict: NDArray[np.int8]
    seen: NDArray[np.uint64]  # subscriptions that the object being decided has met: `_is_new`
    done: NDArray[np.int64]  # of that object: see the places below


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
        np.empty(_HITS, np.int8),
        np.zeros(_SEEN, np.uint64),
        np.zeros(5, np.int64),
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
) -> int:
    """The words of the objects from number `first` on, about `most`; the object to go on with.

    Every object has UNIVERSAL too.
    """
    n = 0
    i = first
    while i < len(o.order) and (n < most or i == first):
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
        if j + _AHEAD < n:
            pl.ask_list(p, st.row[j + _AHEAD])
        first, length = pl.entries(p, st.row[j])
        room = len(st.hit) - int(m)
        if length - skip > room and m > _NOTHING:
            break  # the next call has room
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
        skip = stop - first
        if stop < first + length:
            break
        j += 1
        skip = 0
    return np.int64(m), j, skip


# -- deciding ----------------------------------------------------------------------------------


@njit(lean=True, forceinline=True)
def _fits(st: Search, start: int, stop: int, one: int, two: int) -> bool:
    """Whether the words [start, stop) are as an entry wants them (`range_lists`)."""
    first, second = (NOT - one if one <= NOT else one), (NOT - two if two <= NOT else two)
    has_one = has_two = False
    for j in range(start, stop):
        has_one |= st.ordinal[j] == first
        has_two |= st.ordinal[j] == second
    return (has_one == (one >= 0)) & ((has_two == (two >= 0)) | (two == NONE))


@njit(lean=True, forceinline=True)
def _asks(wanted: int, mask: np.uint64) -> bool:
    """Whether what an entry wants of a word must be looked at, by the mask of an object's words."""
    there = mask >> np.uint64((NOT - wanted) & 63) & _ONE
    return (wanted >= 0) | ((wanted <= NOT) & (there != _NOTHING))


@njit(lean=True)
def _sift(
    slots: sl.Slots,
    pool: NDArray[np.int32],
    boxes: NDArray[np.float32],
    o: ObjectColumns,
    st: Search,
    hits: int,
    first: int,
) -> tuple[int, int]:
    """Keep the hits of a round, whose first object is `first`, that match or may match.

    (How many, how many of them have to be asked.)
    """
    careful = slots.careful
    kept = _NOTHING
    asking = 0
    last = -1
    settled = start = stop = np.int64(0)
    x = y = np.float32(0)
    mask = np.uint64(0)  # a bit for each word of the object, by its number
    for h in range(hits):
        e, i = st.hit[h], st.hit_number[h]
        if i != last:
            last = i
            row = o.order[i]
            settled = sl.settled(slots, o.time[row])
            start, stop = st.start[i - first], st.start[i - first + 1]
            mask = np.uint64(0)
            for j in range(start, stop):
                mask |= _ONE << np.uint64(st.ordinal[j] & 63)
            x, y = np.float32(o.x[row]), np.float32(o.y[row])
        one, two = pool[e + _OTHER], pool[e + _OTHER + _ONE]
        # Most entries want no word, or want one not to be there that is not: no loop for these.
        told = _asks(one, mask) | _asks(two, mask)
        if told and not _fits(st, start, stop, one, two):
            continue
        slot = np.int64(pool[e])
        sure = (
            (x > boxes[e + _ONE])
            & (y > boxes[e + _TWO])
            & (x < boxes[e + _THREE])
            & (y < boxes[e + _FOUR])
            & (one != ASK)
            & (slot < settled)
            & (not is_set(careful, slot))
        )
        st.hit[kept] = np.uint64(slot)
        st.hit_number[kept] = i
        st.verdict[kept] = (SURE if two != MANY else OFTEN) if sure else MAYBE
        kept += _ONE
        asking += not sure
    return np.int64(kept), asking


@njit
def _ask(ix: Index, space: int, o: ObjectColumns, st: Search, n: int) -> None:
    """Let the subscriptions decide that are MAYBE among n."""
    for h in range(n):
        if st.verdict[h] == MAYBE:
            prefetch(ix.slots.rows, st.hit[h])
    for h in range(n):
        if st.verdict[h] == MAYBE:
            prefetch(ix.slots.heap, ix.slots.rows[np.int64(st.hit[h]), sl.BODY])
    for h in range(n):
        if st.verdict[h] == MAYBE:
            i = np.int64(st.hit_number[h])
            right = matches(ix, space, np.int64(st.hit[h]), o, i, o.order[i])
            st.verdict[h] = ASKED if right else WRONG


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


@njit
def _tell(
    st: Search,
    n: int,
    order: NDArray[np.int64],
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Write down what of n matches; False: no more room."""
    found = np.uint64(counts[FOUND])
    if counts[FOUND] + n > len(out):
        return False
    last, noted, sort = st.done[OBJECT], st.done[NOTED], st.done[SORTED]
    stamp = np.uint64(st.done[STAMP])
    for h in range(n):
        i, verdict, slot = np.int64(st.hit_number[h]), st.verdict[h], st.hit[h]
        if i != last:
            if sort:
                found = np.uint64(_each_once(out, st.done[BEFORE], np.int64(found)))
            last, noted, sort = i, 0, 0
            st.done[BEFORE] = found
            stamp += _ONE
        order[found] = i
        out[found] = np.int64(slot)
        if verdict == SURE:
            found += _ONE
        elif verdict == OFTEN and 2 * noted < _SEEN:
            if _is_new(st.seen, stamp, slot):
                found += _ONE
                noted += 1
        elif verdict != WRONG:
            found += _ONE
            sort = 1
    counts[FOUND] = np.int64(found)
    st.done[OBJECT], st.done[NOTED], st.done[SORTED] = last, noted, sort
    st.done[STAMP] = np.int64(stamp)
    return True


@njit
def _each_once(out: NDArray[np.int64], start: int, stop: int) -> int:
    """Sort the slots [start, stop), all of one object, and keep each once; where they end.

    So it is done where the object met too many to note them, or had to ask one: of two with the
    same id the older one is told first.
    """
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
        following = _read_words(ix.words, o, first, _LOOKUPS // max(levels, 1), st)
        n = _find(ix.lists, st, _gather(ix.lists, o, first, following, levels, st))
        st.done[OBJECT] = -1
        st.done[SORTED] = st.done[NOTED] = 0
        full = False
        examined = j = skip = 0
        while j < n and not full:
            hits, j, skip = _within(ix.lists, boxes, o, st, n, j, skip)
            examined += hits
            kept, asking = _sift(ix.slots, pool, boxes, o, st, hits, first)
            if asking:
                _ask(ix, space, o, st, kept)
            full = not _tell(st, kept, order, out, counts)
        if full:  # what is complete stays, and its work counts
            following = max(st.done[OBJECT], first)
            if st.done[OBJECT] >= 0:
                counts[FOUND] = st.done[BEFORE]
            n = np.searchsorted(st.number[:n], following)
            examined = j = skip = 0
            while j < n:
                hits, j, skip = _within(ix.lists, boxes, o, st, n, j, skip)
                examined += hits
        elif st.done[SORTED]:
            counts[FOUND] = _each_once(out, st.done[BEFORE], counts[FOUND])
        counts[EXAMINED] += examined
        counts[LOOKUPS] += n
        for k in range(n):
            counts[SCANNED] += pl.entries(ix.lists, st.row[k])[1]
        counts[NEXT] = following
        if full:
            return False
    return True
