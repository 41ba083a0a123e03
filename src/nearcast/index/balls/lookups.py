"""Looking up the posting lists of balls that objects meet, in rounds whose loads overlap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.balls.groups import Groups, holds
from nearcast.index.deciding import LOOKUPS, SCANNED
from nearcast.index.posting import LEVELS, UNIVERSAL, USED, Index
from nearcast.kernels import postings as pl
from nearcast.kernels.cells import ROOT, cell_at, cell_hash, key_in
from nearcast.kernels.prefetch import prefetch
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

_LOOKUPS = 2048  # per round
_CANDIDATES = 512  # at a time: what they need stays in the second cache
_HITS = 4096  # of one list, at a time
_FEW = 6  # levels


class Stages(NamedTuple):
    """Scratch for the steps below: what is looked for, found, and still a candidate."""

    number: NDArray[np.int32]  # per look-up: which object
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
    groups: Groups  # not in Index: every call for a candidate would pass them on


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
    """The same for subsets (`index.balls.groups`): each whose R holds (x, y) is one cell."""
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
            key = key_in(st.cell[j], word)
            st.key[n] = key
            pl.fetch_mark(ix.lists, key)
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
    """Keep the look-ups that meet a list; each step prefetches what the next one reads."""
    p = ix.lists
    some = 0
    for j in range(n):
        number, key, level = st.number[j], st.key[j], st.level[j]
        st.number[some] = number
        st.key[some] = key
        st.level[some] = level
        some += pl.marked(p, key)
    for j in range(some):
        pl.fetch_row(p.table, st.key[j])
    kept = 0
    for j in range(some):
        row = pl.find(p.table, st.key[j])
        if row >= 0:
            st.number[kept] = st.number[j]
            st.level[kept] = st.level[j]
            st.row[kept] = row
            st.first[kept], st.length[kept] = pl.entries(p, row)
            prefetch(p.pool, st.first[kept])
            counts[SCANNED] += st.length[kept]
            kept += 1
    counts[LOOKUPS] += some
    return kept


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

    Without a branch per entry: which side of it a point lies on cannot be predicted.
    """
    n = 0
    gone = 0
    for e in range(start, stop):
        left = boxes[e, 1]
        hit[n] = e
        n += (x >= left) & (y >= boxes[e, 2]) & (x <= boxes[e, 3]) & (y <= boxes[e, 4])
        gone += left == np.float32(np.inf)
    return n, gone
