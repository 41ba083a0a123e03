"""The exact check of matches that entries of lists alone could not decide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.deciding import matches
from nearcast.index.posting import Index
from nearcast.index.regions.search import EXACT, TWICE, Found, Search, Visit
from nearcast.kernels import slots as sl
from nearcast.kernels.bits import fetch_bit, is_set
from nearcast.kernels.prefetch import prefetch
from nearcast.model.jit import njit

_BITS = 16  # bits from prefetching to reading


@njit(lean=True)
def mark_careful(
    careful: NDArray[np.uint64], st: Search, objects: int, out: NDArray[np.int64]
) -> int:
    """Mark matches of subscriptions that may have ended for the exact check; any: EXACT."""
    first, stop = st.begin[0], st.begin[objects]
    for j in range(first, min(first + _BITS, stop)):
        fetch_bit(careful, max(out[j], ~out[j]))
    unsure = 0
    for i in range(objects):
        doubts = 0
        for j in range(st.begin[i], st.begin[i + 1]):
            if j + _BITS < stop:
                fetch_bit(careful, max(out[j + _BITS], ~out[j + _BITS]))
            if out[j] >= 0 and is_set(careful, out[j]):
                out[j] = ~out[j]
                doubts = EXACT
        st.unsure[i] |= doubts
        unsure |= doubts
    return unsure


@njit(lean=True)
def _fetch_subscriptions(ix: Index, st: Search, objects: int, out: NDArray[np.int64]) -> None:
    """Prefetch what the exact check reads: rows first, then the bodies that rows lead to."""
    rows, heap = ix.slots.rows, ix.slots.heap
    for step in range(2):
        for i in range(objects):
            if st.unsure[i] & EXACT:
                for j in range(st.begin[i], st.begin[i + 1]):
                    if out[j] < 0 and step == 0:
                        prefetch(rows, ~out[j])
                    elif out[j] < 0:
                        prefetch(heap, rows[~out[j], sl.BODY])


@njit
def settle(ix: Index, space: int, v: Visit, st: Search, first: int, stop: int, found: Found) -> int:
    """Make the matches of the objects [first, stop) exact, each there once; how many there are."""
    order, out = found.order, found.slot
    _fetch_subscriptions(ix, st, stop - first, out)
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
                if not matches(ix, space, slot, v.objects, v.number[i], v.objects.order[i]):
                    continue
            order[kept] = v.number[i]
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
