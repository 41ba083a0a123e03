"""From the words and cells of objects to the posting lists that they lead to.

Each step prefetches what the next one reads. Indexes of inner loops are unsigned: for signed ones
Numba looks each time whether they count from the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import LEVELS, ORDINAL, UNIVERSAL, USED, Index
from nearcast.index.regions.lists import ROOT, cell_of, key_of
from nearcast.index.regions.search import ONE, ZERO, Search
from nearcast.kernels import postings as pl
from nearcast.kernels.prefetch import prefetch
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

_OBJECTS = 8  # objects from prefetching to reading
_LINE = 8  # 64-bit numbers that come from memory at once


@njit(lean=True)
def note_levels(ix: Index, st: Search) -> int:
    """Put the levels in use into `st`; how many there are."""
    used = np.uint64(ix.meta[USED])
    n = 0
    for level in range(ROOT + 1):
        if used >> np.uint64(level) & ONE:
            st.level[n] = level
            n += 1
    return n


@njit(lean=True, forceinline=True)
def _fetch_object(o: ObjectColumns, i: int) -> None:
    """Prefetch what will be read of the objects some places further on."""
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
def read_words(
    table: NDArray[np.uint64], o: ObjectColumns, first: int, most: int, st: Search
) -> int:
    """The words of the objects from number `first` on, about `most`; the object to go on with.

    Every object has UNIVERSAL too.
    """
    n = 0
    i = first
    while i < len(o.order) and (n < most or i == first):
        _fetch_object(o, i)
        row = o.order[i]
        st.start[i - first] = n
        st.word[n] = UNIVERSAL
        n += 1
        for w in range(o.word_offsets[row], o.word_offsets[row + 1]):
            st.word[n] = o.words[w]
            pl.fetch_row(table, o.words[w])
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
def gather_keys(
    p: pl.Postings, o: ObjectColumns, first: int, stop: int, levels: int, st: Search
) -> int:
    """Look-ups of the objects [first, stop): their words at levels where these have lists."""
    n = ZERO
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
                pl.fetch_mark(p, key)
                n += there >> st.level[k] & ONE
    return np.int64(n)


@njit(lean=True)
def find_lists(p: pl.Postings, st: Search, n: int) -> int:
    """Keep those of n look-ups that meet a list; how many."""
    some = ZERO
    for j in range(n):
        key = st.key[j]
        st.number[some] = st.number[j]
        st.key[some] = key
        some += np.uint64(pl.marked(p, key))
    for j in range(np.int64(some)):
        pl.fetch_row(p.table, st.key[j])
    kept = ZERO
    for j in range(np.int64(some)):
        row = pl.find(p.table, st.key[j])
        st.number[kept] = st.number[j]
        st.row[kept] = row
        kept += np.uint64(row >= 0)
    return np.int64(kept)
