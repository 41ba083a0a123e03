"""Matching objects against regions on posting lists (`index.regions.lists`).

It works in rounds of about a thousand look-ups, step by step, because waiting for memory is most
of the work: words lead to lists (`lookups`), entries of lists decide most matches (`hits`), and
the subscriptions decide the rest (`exact`). Each step prefetches what the next one reads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.deciding import EXAMINED, FOUND, LOOKUPS, NEXT, SCANNED
from nearcast.index.posting import Index
from nearcast.index.regions.exact import mark_careful, settle
from nearcast.index.regions.hits import decide, see, within
from nearcast.index.regions.lookups import find_lists, gather_keys, note_levels, read_words
from nearcast.index.regions.search import (
    LOOKUPS_PER_ROUND,
    ONE,
    Entries,
    Found,
    Round,
    Search,
    Visit,
)
from nearcast.kernels import postings as pl
from nearcast.model.jit import njit

_AHEAD = 8  # lists from prefetching to reading


@njit(lean=True, forceinline=True)
def _begin(st: Search, stamp: bool, first: int, last: int, following: int, found: int) -> None:
    """The objects after `last`, up to `following`, have matches from `found` on."""
    for i in range(last + 1, following + 1):
        st.begin[i - first] = found
        if i < following or stamp:
            st.unsure[i - first] = 0
    if stamp:
        st.stamp[0] += ONE


@njit(lean=True)
def _scan(
    ix: Index,
    entries: Entries,
    space: int,
    v: Visit,
    st: Search,
    r: Round,
    found: Found,
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """Read the lists of a round.

    (The object to go on with: one that is not complete, for want of room, is left out; what is
    unsure.)
    """
    p, first = ix.lists, r.first
    top = counts[FOUND]
    last, noted, unsure = first - 1, 0, 0
    seen = see(ix, space, v, st, first, first)
    examined = scanned = before = 0
    for j in range(r.lists):
        if j + _AHEAD < r.lists:
            pl.fetch_list(p, st.row[j + _AHEAD])
        i = np.int64(st.number[j])
        if i != last:
            _begin(st, True, first, last, i, top)
            seen = see(ix, space, v, st, i, first)
            last, noted = i, 0
            counts[EXAMINED] += examined
            counts[SCANNED] += scanned
            counts[LOOKUPS] += j - before
            examined, scanned, before = 0, 0, j
        start, length = pl.entries(p, st.row[j])
        stop = start + length
        while start < stop:
            end = min(start + len(st.hit), stop)
            if top + end - start > len(found.slot):
                counts[FOUND] = st.begin[i - first]
                return i, unsure
            hits = within(entries.boxes, start, end, seen.x, seen.y, st.hit)
            top, noted, more = decide(entries, st, seen, hits, noted, found, top)
            st.unsure[i - first] |= more
            unsure |= more
            examined += hits
            start = end
        scanned += length
    _begin(st, False, first, last, r.stop, top)
    counts[EXAMINED] += examined
    counts[SCANNED] += scanned
    counts[LOOKUPS] += r.lists - before
    counts[FOUND] = top
    return r.stop, unsure


@njit
def match_regions(
    ix: Index,
    entries: Entries,
    space: int,
    v: Visit,
    st: Search,
    found: Found,
    counts: NDArray[np.int64],
) -> bool:
    """Matches of the objects of the visit from `counts[NEXT]` on, `counts[FOUND]` in number.

    False if there is no more room; call again with more: `counts[NEXT]` is then the object that
    was being decided.
    """
    o = v.objects
    levels = note_levels(ix, st)
    while counts[NEXT] < len(o.order):
        first = counts[NEXT]
        stop = read_words(ix.words, o, first, LOOKUPS_PER_ROUND // max(levels, 1), st)
        n = find_lists(ix.lists, st, gather_keys(ix.lists, o, first, stop, levels, st))
        done, unsure = _scan(ix, entries, space, v, st, Round(first, stop, n), found, counts)
        unsure |= mark_careful(ix.slots.careful, st, done - first, found.slot)
        if unsure:
            counts[FOUND] = settle(ix, space, v, st, first, done, found)
        counts[NEXT] = done
        if done < stop:
            return False
    return True
