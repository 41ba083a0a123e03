"""One list per keyword and leaf, in groups by alpha, each in the order of kScore*."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.igpt.state import (
    ALPHA_STAR,
    AT,
    DEAD,
    E_ALPHA,
    E_KSCORE,
    E_MAXWT,
    ENTRY,
    GROUP,
    HELD,
    KEY,
    KSCORE,
    LISTS,
    MAXWT,
    OWN_ALPHA,
    OWN_MAXWT,
    OWN_WTSUM,
    POOL,
    REREAD,
    RUN,
    SLOT,
    STATE,
    TIDY,
    WTSUM,
    Arrays,
    count_of,
    down,
    first_of,
    set_count,
    set_place,
    size_of,
    up,
)
from nearcast.kernels import blocks
from nearcast.kernels import postings as pl
from nearcast.model.jit import njit

RUN_BITS = 24  # a group has fewer entries than 2^this
_RUN = (1 << RUN_BITS) - 1
_FEW = 64  # entries that are brought into order one by one
_SIGN = np.int64(0x7FFFFFFF)


@njit(lean=True)
def list_row(ig: Arrays, key: np.uint64) -> int:
    """The row of a list, which is made if there is none; the table must have room."""
    row = pl.find(ig.lists, key)
    if row < 0:
        row = -1 - row
        ig.lists[row, KEY] = key
        ig.lists[row, HELD] = np.uint64(0)
        set_place(ig, row, 0, -1)
        ig.meta[LISTS] += 1
    return row


@njit(lean=True)
def add(ig: Arrays, row: int, slot: int, at: int) -> bool:
    """Append a subscription to a list, which is brought into order later; False: no room."""
    size, count, first = size_of(ig, row), count_of(ig, row), first_of(ig, row)
    if size < 0 or count == 1 << size:
        wider = blocks.take(ig.entries, ig.meta[POOL:], size + 1)
        if wider < 0:
            return False
        for e in range(count):
            for c in range(ENTRY):
                ig.entries[wider + e, c] = ig.entries[first + e, c]
        if size >= 0:
            blocks.give_back(ig.entries, ig.meta[POOL:], first, size)
        first = wider
        set_place(ig, row, first, size + 1)
    e = first + count
    ig.entries[e, SLOT] = np.int32(slot)
    ig.entries[e, RUN] = np.int32(ig.half[slot, GROUP] << RUN_BITS)
    ig.entries[e, AT] = np.int32(at)
    ig.bounds[e, E_KSCORE] = down(ig.subs[slot, KSCORE])
    ig.bounds[e, OWN_WTSUM] = up(ig.keys[at, WTSUM])
    ig.bounds[e, OWN_MAXWT] = up(ig.keys[at, MAXWT])
    ig.bounds[e, OWN_ALPHA] = up(ig.subs[slot, ALPHA_STAR])
    set_count(ig, row, count + 1)
    return True


@njit(lean=True)
def free_list(ig: Arrays, row: int) -> None:
    """Forget the entries of a list; its row stays, for who comes next."""
    size = size_of(ig, row)
    if size >= 0:
        blocks.give_back(ig.entries, ig.meta[POOL:], first_of(ig, row), size)
    set_place(ig, row, 0, -1)
    set_count(ig, row, 0)


@njit(lean=True)
def move_entry(ig: Arrays, row: int, slot: int) -> bool:
    """Take over the new threshold of one subscription, unless the list is long; whether it did."""
    first, count = first_of(ig, row), count_of(ig, row)
    if count > 4 * _FEW:
        return False
    for e in range(first, first + count):
        if ig.entries[e, SLOT] == slot:
            ig.bounds[e, E_KSCORE] = down(ig.subs[slot, KSCORE])
    return True


@njit(lean=True)
def _reread(ig: Arrays, row: int) -> None:
    """Take over the thresholds of all subscriptions of a list; the dead go."""
    first, count = first_of(ig, row), count_of(ig, row)
    kept = first
    for e in range(first, first + count):
        slot = ig.entries[e, SLOT]
        if ig.half[slot, STATE] & DEAD:
            continue
        for c in range(ENTRY):
            ig.entries[kept, c] = ig.entries[e, c]
        ig.bounds[kept, E_KSCORE] = down(ig.subs[slot, KSCORE])
        kept += 1
    set_count(ig, row, kept - first)


@njit(lean=True, forceinline=True)
def _sort_key(ig: Arrays, e: int) -> int:
    """By group, then by kScore*, as one number: float32 bits in the order of their values."""
    bits = np.int64(ig.entries[e, E_KSCORE])
    if bits < 0:
        bits ^= _SIGN
    return np.int64(ig.entries[e, RUN] >> RUN_BITS) << 33 | (bits + (1 << 32))


@njit(lean=True)
def _sort_few(ig: Arrays, first: int, count: int) -> None:
    """Bring entries into order one by one."""
    for e in range(first + 1, first + count):
        key, at = _sort_key(ig, e), e
        while at > first and _sort_key(ig, at - 1) > key:
            for c in range(ENTRY):
                kept = ig.entries[at, c]
                ig.entries[at, c] = ig.entries[at - 1, c]
                ig.entries[at - 1, c] = kept
            at -= 1


@njit
def _sort_many(ig: Arrays, first: int, count: int) -> None:
    """Bring many entries into order."""
    keys = np.empty(count, np.int64)
    for e in range(count):
        keys[e] = _sort_key(ig, first + e)
    order = np.argsort(keys, kind="mergesort")
    held = ig.entries[first : first + count].copy()
    for e in range(count):
        for c in range(ENTRY):
            ig.entries[first + e, c] = held[order[e], c]


@njit(lean=True)
def _summarise(ig: Arrays, first: int, count: int) -> None:
    """Sizes of groups, and what holds of an entry and all behind it (equations 6 and 7)."""
    run, group = 0, -1
    maxwt = alpha = np.float32(0.0)
    for e in range(first + count - 1, first - 1, -1):
        own = ig.entries[e, RUN] >> RUN_BITS
        if own != group:
            run, group = 0, own
            maxwt = alpha = np.float32(0.0)
        run += 1
        maxwt = max(maxwt, ig.bounds[e, OWN_MAXWT])
        alpha = max(alpha, ig.bounds[e, OWN_ALPHA])
        ig.entries[e, RUN] = np.int32(own << RUN_BITS | run)
        ig.bounds[e, E_MAXWT], ig.bounds[e, E_ALPHA] = maxwt, alpha


@njit(lean=True, forceinline=True)
def run_of(ig: Arrays, e: int) -> int:
    """From the first entry of a group: how many it has."""
    return np.int64(ig.entries[e, RUN] & _RUN)


@njit
def tidy(ig: Arrays, rows: NDArray[np.int64]) -> None:
    """Bring lists into order in which something changed."""
    for row in rows:
        if ig.lists[row, HELD] & REREAD:
            _reread(ig, row)
        first, count = first_of(ig, row), count_of(ig, row)
        if count > _FEW:
            _sort_many(ig, first, count)
        else:
            _sort_few(ig, first, count)
        _summarise(ig, first, count)
        ig.lists[row, HELD] &= ~(TIDY | REREAD)
