"""Matching objects against range subscriptions on posting lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.groups import Groups, holds
from nearcast.index.posting import LEVELS, UNIVERSAL, USED, Index
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.cells import ROOT, cell_at, cell_hash, key_in
from nearcast.kernels.program import all_held, satisfied
from nearcast.model.geometry import region_contains
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

# places in `counts`
NEXT, FOUND, EXAMINED, LOOKUPS, SCANNED = 0, 1, 2, 3, 4
TOUCHED = 6  # no figure: what it holds only keeps loads from being optimised away
COUNTS = 7
_LOOKUPS = 2048  # a round
_CANDIDATES = 512  # at a time: what they need stays in the second cache
_HITS = 4096  # of one list, at a time
_FEW = 6  # levels


@njit(lean=True, forceinline=True)
def where_holds(ix: Index, slot: int, o: ObjectColumns, row: int) -> bool:
    """Whether the words of object `row`, which led to `slot`, make its expression true."""
    if ix.slots.half[slot, sl.FLAGS] & sl.PROVED:
        return True
    first = ix.slots.rows[slot, sl.BODY]
    length = ix.slots.half[slot, sl.PROGRAM]
    start, stop = o.word_offsets[row], o.word_offsets[row + 1]
    if ix.slots.half[slot, sl.FLAGS] & sl.CONJUNCTION:
        return all_held(ix.slots.heap, first, length, o.words, start, stop)
    return satisfied(ix.slots.heap, first, length, o.words, start, stop, ix.stack)


@njit
def matches(ix: Index, space: int, slot: int, o: ObjectColumns, i: int, row: int) -> bool:
    """Whether object number `i`, in `row`, matches `slot`, to which one of its words led."""
    s = ix.slots
    if not sl.sees(s, slot, i, o.time[row], o.until[row]):
        return False
    if not where_holds(ix, slot, o, row):
        return False
    half = s.half
    first = s.rows[slot, sl.BODY] + half[slot, sl.PROGRAM] + half[slot, sl.COVER]
    code = half[slot, sl.FLAGS] & sl.REGION_CODE
    data = s.reals[first : first + half[slot, sl.REGION]]
    return region_contains(space, code, data, o.x[row], o.y[row])


class Stages(NamedTuple):
    """Scratch for the steps below: what is looked for, found, and still a candidate."""

    number: NDArray[np.int32]  # of the object, a look-up
    key: NDArray[np.uint64]
    level: NDArray[np.int8]
    first: NDArray[np.int64]  # of the list found
    length: NDArray[np.int64]
    row: NDArray[np.int64]  # its place in the table
    object: NDArray[np.int32]  # a candidate: object number, slot, and which list led to it
    slot: NDArray[np.int32]
    list: NDArray[np.int32]
    place: NDArray[np.int64]  # in that list
    at: NDArray[np.int8]  # level of that list
    hit: NDArray[np.int64]  # entries of one list
    cell: NDArray[np.uint64]  # of one object, at each level in use
    used: NDArray[np.int8]  # that level
    groups: Groups  # not in Index: every call for a candidate would hand them on


def make_stages(longest: int, groups: Groups) -> Stages:
    """Scratch for objects of up to `longest` words."""
    lookups = (longest + 1) * (ROOT + 1) + _LOOKUPS
    return Stages(
        np.empty(lookups, np.int32),
        np.empty(lookups, np.uint64),
        np.empty(lookups, np.int8),
        np.empty(lookups, np.int64),
        np.empty(lookups, np.int64),
        np.empty(lookups, np.int64),
        np.empty(_CANDIDATES, np.int32),
        np.empty(_CANDIDATES, np.int32),
        np.empty(_CANDIDATES, np.int32),
        np.empty(_CANDIDATES, np.int64),
        np.empty(_CANDIDATES, np.int8),
        np.empty(_HITS, np.int64),
        np.empty(ROOT + 1, np.uint64),
        np.empty(ROOT + 1, np.int8),
        groups,
    )


@njit(lean=True)
def _groups(g: Groups, x: float, y: float, st: Stages) -> int:
    """The same for subsets: each whose R holds (x, y) is a level of one cell (`index.groups`)."""
    n = 0
    for group in range(len(g.boxes)):
        if holds(g, group, x, y):
            st.cell[n] = cell_hash(group, 0, 0)
            st.used[n] = group
            n += 1
    return n


@njit(lean=True)
def _cells(ix: Index, x: float, y: float, st: Stages) -> int:
    """Hash the cell of (x, y) at each level in use; how many levels there are."""
    if len(st.groups.boxes) > 0:
        return _groups(st.groups, x, y, st)
    used = np.uint64(ix.meta[USED])
    n = 0
    level = 0
    while used != np.uint64(0):
        if used & np.uint64(1):
            st.cell[n] = cell_hash(level, cell_at(level, x), cell_at(level, y))
            st.used[n] = level
            n += 1
        used >>= np.uint64(1)
        level += 1
    return n


@njit(lean=True)
def _add_keys(ix: Index, word: np.uint64, i: int, levels: int, st: Stages, n: int) -> int:
    """Add a look-up for every level at which `word` may have lists; how many there are now."""
    bits = np.uint64(0xFFFFFFFF)
    if levels > _FEW or word == UNIVERSAL:  # with few levels, marks are cheaper than this table
        found = pl.find(ix.words, word)
        bits = ix.words[found, LEVELS] if found >= 0 else np.uint64(0)
    for j in range(levels):
        if bits >> np.uint64(st.used[j]) & np.uint64(1):
            st.number[n] = i
            st.level[n] = st.used[j]
            st.key[n] = key_in(st.cell[j], word)
            n += 1
    return n


@njit(lean=True)
def gather_keys(ix: Index, o: ObjectColumns, first: int, st: Stages) -> tuple[int, int]:
    """Look-ups of the objects from number `first` on; (next object, look-ups)."""
    n = 0
    i = first
    while i < len(o.order) and n < _LOOKUPS:
        row = o.order[i]
        levels = _cells(ix, o.x[row], o.y[row], st)
        n = _add_keys(ix, UNIVERSAL, i, levels, st, n)
        for w in range(o.word_offsets[row], o.word_offsets[row + 1]):
            n = _add_keys(ix, o.words[w], i, levels, st, n)
        i += 1
    return i, n


@njit(lean=True)
def find_lists(ix: Index, st: Stages, n: int, counts: NDArray[np.int64]) -> int:
    """Keep the look-ups that meet a list, in steps whose loads overlap."""
    p = ix.lists
    touched = np.uint64(0)
    some = 0
    for j in range(n):
        number, key, level = st.number[j], st.key[j], st.level[j]
        st.number[some] = number
        st.key[some] = key
        st.level[some] = level
        some += pl.marked(p, key)
    for j in range(some):
        touched ^= p.table[pl.home(len(p.table), st.key[j]), 0]
    kept = 0
    for j in range(some):
        row = pl.find(p.table, st.key[j])
        if row >= 0:
            st.number[kept] = st.number[j]
            st.level[kept] = st.level[j]
            st.row[kept] = row
            st.first[kept], st.length[kept] = pl.entries(p, row)
            counts[SCANNED] += st.length[kept]
            kept += 1
    for j in range(kept):
        touched ^= np.uint64(p.pool[st.first[j], 0])
    counts[LOOKUPS] += some
    counts[TOUCHED] ^= np.int64(touched)
    return kept


@njit
def _check(
    ix: Index,
    space: int,
    o: ObjectColumns,
    st: Stages,
    n: int,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Decide n candidates, in the order of their objects; False if `out` is full."""
    touched = np.int64(0)
    for j in range(n):
        touched ^= ix.slots.rows[st.slot[j], sl.BODY]
    counts[TOUCHED] ^= touched
    base = ix.slots.meta[sl.CLOCK]
    for j in range(n):
        i, slot = np.int64(st.object[j]), np.int64(st.slot[j])
        stamp = np.int32(base + i)
        counts[NEXT] = i
        if ix.slots.half[slot, sl.STAMP] == stamp:
            continue
        counts[EXAMINED] += 1
        if matches(ix, space, slot, o, i, o.order[i]):
            if counts[FOUND] == len(out):
                return False
            out[counts[FOUND], 0] = i
            out[counts[FOUND], 1] = slot
            counts[FOUND] += 1
            ix.slots.half[slot, sl.STAMP] = stamp
    return True


@njit(lean=True)
def held_by(
    boxes: NDArray[np.float32],
    start: int,
    stop: int,
    x: float,
    y: float,
    hit: NDArray[np.int64],
) -> tuple[int, int]:
    """Entries of [start, stop) whose box holds (x, y), into `hit`; (how many, how many buried).

    Without a branch an entry: which side of it a point lies on cannot be foretold.
    """
    n = 0
    gone = 0
    for e in range(start, stop):
        left = boxes[e, 1]
        hit[n] = e
        n += (x >= left) & (y >= boxes[e, 2]) & (x <= boxes[e, 3]) & (y <= boxes[e, 4])
        gone += left == np.float32(np.inf)
    return n, gone


@njit
def _scan_lists(
    ix: Index,
    space: int,
    o: ObjectColumns,
    st: Stages,
    n: int,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Read n lists; entries whose box holds the object become candidates."""
    boxes, pool = ix.lists.boxes, ix.lists.pool
    m = 0
    for j in range(n):
        row = o.order[st.number[j]]
        last = st.first[j] + st.length[j]
        for start in range(st.first[j], last, len(st.hit)):
            stop = min(start + len(st.hit), last)
            hits, _ = held_by(boxes, start, stop, o.x[row], o.y[row], st.hit)
            for h in range(hits):
                if m == len(st.slot):
                    if not _check(ix, space, o, st, m, out, counts):
                        return False
                    m = 0
                st.object[m] = st.number[j]
                st.slot[m] = pool[st.hit[h], 0]
                m += 1
    return _check(ix, space, o, st, m, out, counts)


@njit
def match_range(
    ix: Index,
    space: int,
    o: ObjectColumns,
    st: Stages,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Matches of the objects from number `counts[NEXT]` on: rows (object number, slot) of `out`.

    Works in rounds of some hundred look-ups, step by step, because waiting for memory is most of
    the work: within a step the loads do not depend on each other. False if `out` is full; call
    again with a new one: `counts[NEXT]` is then the object that was being decided, and stamps keep
    what was found of it from being found twice, there and in other lists.
    """
    while counts[NEXT] < len(o.order):
        following, n = gather_keys(ix, o, counts[NEXT], st)
        n = find_lists(ix, st, n, counts)
        if not _scan_lists(ix, space, o, st, n, out, counts):
            return False
        counts[NEXT] = following
    ix.slots.meta[sl.CLOCK] += len(o.order)
    return True
