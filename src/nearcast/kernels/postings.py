"""Posting lists in one growing pool, found through an open-addressing table.

There is one list per 64-bit key (a word, or a word and a cell). An entry is five 32-bit numbers:
the slot of a subscription and an outward-rounded box, so that most candidates are refused without
a look at the subscription. A pool may be wider, for what its index keeps besides. Lists grow by
doubling (`kernels.blocks`). Entries that no longer hold are buried, and swept out when they are
half of a list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import blocks
from nearcast.kernels.prefetch import prefetch
from nearcast.model.jit import njit

ENTRY = 5  # int32 numbers of an entry: slot, minx, miny, maxx, maxy (float32 bits)

# places in `meta`, behind those of the pool's blocks (`kernels.blocks`)
KEYS = blocks.META  # keys in the table
LIVE = blocks.META + 1  # entries in lists
META = blocks.META + 2


class Postings(NamedTuple):
    """State of a set of posting lists; all arrays may be memory-mapped."""

    table: NDArray[np.uint64]  # [capacity, 2]: key; first entry | count << 32 | class << 59
    marks: NDArray[np.uint64]  # [2ⁿ]: eight bits for each row of the table, or more, see `marked`
    pool: NDArray[np.int32]  # [entries, ENTRY or more]
    boxes: NDArray[np.float32]  # the same memory as `pool`, read as float32
    meta: NDArray[np.int64]  # [META]


ROW = 2  # uint64 numbers of a row of the table
LONGEST = 1 << 27  # entries of one list
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_CLASS = np.uint64(59)
_COUNT = np.uint64(LONGEST - 1)
_NONE = np.uint64(0)
_MARK = np.uint64(20)
_BEGINNING = 32  # entries


@njit(lean=True)
def home(rows: int, key: np.uint64) -> int:
    """The row where the search for `key` begins. Keys are hashes: their bits are spread."""
    return np.int64(((key >> _HALF) * np.uint64(rows)) >> _HALF)


@njit(lean=True)
def find(table: NDArray[np.uint64], key: np.uint64) -> int:
    """Row of `key`, or -1 - (the row where it would go). `table` is never full."""
    row = home(len(table), key)
    while table[row, 0] != _NONE:
        if table[row, 0] == key:
            return row
        row += 1
        if row == len(table):
            row = 0
    return -1 - row


@njit(lean=True, forceinline=True)
def fetch_row(table: NDArray[np.uint64], key: np.uint64) -> None:
    """Prefetch what `find` will read."""
    prefetch(table, home(len(table), key))


@njit
def stretch(table: NDArray[np.uint64], before: int) -> None:
    """Spread a table that fills the first `before` rows over all of `table`, in place.

    The rest of `table` is empty. Rows are in the order of their homes, and a longer table has all
    homes further down: so they are moved to its end, and from there, one after the other, to
    their new homes, which never lie beyond the row that was just read. So memory is touched in
    order, and hardly any of it is new: to fault in a second table of gigabytes would take seconds.
    """
    first = 0  # rows of the beginning may belong to the end, beyond which there was none
    while table[first, 0] != _NONE:
        first += 1
    aside = table[:first].copy()
    shift = len(table) - before
    for i in range(before - 1, first - 1, -1):
        for c in range(table.shape[1]):
            table[i + shift, c] = table[i, c]
    table[: first + shift] = _NONE
    row = np.empty(table.shape[1], np.uint64)
    for i in range(first + shift, len(table)):
        if table[i, 0] != _NONE:
            for c in range(len(row)):
                row[c] = table[i, c]
                table[i, c] = _NONE
            _put(table, row)
    for i in range(first):
        _put(table, aside[i])


@njit(lean=True)
def _put(table: NDArray[np.uint64], row: NDArray[np.uint64]) -> None:
    """Put a row whose key is new into a table."""
    at = -1 - find(table, row[0])
    for c in range(len(row)):
        table[at, c] = row[c]


@njit(lean=True)
def _mark_of(marks: int, key: np.uint64) -> tuple[int, np.uint64]:
    """(word, bit) of `key` in marks of that many words; other bits of the key than `home` uses."""
    place = (key >> _MARK) & np.uint64(marks * 64 - 1)
    return np.int64(place >> np.uint64(6)), np.uint64(1) << (place & np.uint64(63))


@njit(lean=True)
def marked(p: Postings, key: np.uint64) -> bool:
    """Whether there may be a list of `key`: one bit per key, at most an eighth of the bits set.

    Most look-ups find nothing; this says so from a small part of the memory of the table.
    """
    word, bit = _mark_of(len(p.marks), key)
    return p.marks[word] & bit != _NONE


@njit(lean=True, forceinline=True)
def fetch_mark(p: Postings, key: np.uint64) -> None:
    """Prefetch what `marked` will read."""
    prefetch(p.marks, _mark_of(len(p.marks), key)[0])


@njit(lean=True)
def mark_all(table: NDArray[np.uint64], marks: NDArray[np.uint64]) -> None:
    """Make `marks` (all zero) fit `table`."""
    for i in range(len(table)):
        if table[i, 0] != _NONE:
            word, bit = _mark_of(len(marks), table[i, 0])
            marks[word] |= bit


@njit(lean=True)
def _packed(first: int, count: int, size: int) -> np.uint64:
    return np.uint64(first) | (np.uint64(count) << _HALF) | (np.uint64(size) << _CLASS)


@njit(lean=True)
def room_class(row: np.uint64) -> int:
    """A list has room for 2^this entries; `row` is what the table says of it."""
    return np.int64(row >> _CLASS)


@njit(lean=True)
def add(p: Postings, key: np.uint64, slot: int, box: NDArray[np.float32]) -> int:
    """Append `slot` with `box` (float32[4]) to the list of `key`; its entry, -1: no room."""
    row = find(p.table, key)
    if row < 0:
        first = blocks.take(p.pool, p.meta, 0)
        if first < 0:
            return -1
        row = -1 - row
        p.table[row, 0] = key
        word, bit = _mark_of(len(p.marks), key)
        p.marks[word] |= bit
        p.table[row, 1] = _packed(first, 0, 0)
        p.meta[KEYS] += 1
    first, count = entries(p, row)
    size = room_class(p.table[row, 1])
    if count == 1 << size:
        wider = blocks.take(p.pool, p.meta, size + 1) if 2 * count < LONGEST else -1
        if wider < 0:
            return -1
        for i in range(count):
            for c in range(p.pool.shape[1]):
                p.pool[wider + i, c] = p.pool[first + i, c]
        blocks.give_back(p.pool, p.meta, first, size)
        first = wider
        size += 1
    p.pool[first + count, 0] = np.int32(slot)
    for c in range(4):
        p.boxes[first + count, 1 + c] = box[c]
    p.table[row, 1] = _packed(first, count + 1, size)
    p.meta[LIVE] += 1
    return first + count


@njit(lean=True)
def ends_with(p: Postings, key: np.uint64, slot: int, box: NDArray[np.float32]) -> bool:
    """Whether `slot` with `box` is the last entry of the list of `key`."""
    row = find(p.table, key)
    if row < 0:
        return False
    first, count = entries(p, row)
    last = first + count - 1
    if count == 0 or p.pool[last, 0] != slot:
        return False
    for c in range(4):
        if p.boxes[last, 1 + c] != box[c]:
            return False
    return True


@njit(lean=True, forceinline=True)
def fetch_end(p: Postings, key: np.uint64) -> None:
    """Prefetch what `add` will write."""
    row = find(p.table, key)
    if row >= 0:
        first, count = entries(p, row)
        prefetch(p.pool, first + count - 1)


@njit(lean=True, forceinline=True)
def entries(p: Postings, row: int) -> tuple[int, int]:
    """First entry and number of entries of the list in `row` of the table."""
    packed = p.table[row, 1]
    return np.int64(packed & _LOW), np.int64((packed >> _HALF) & _COUNT)


@njit(lean=True, forceinline=True)
def fetch_list(p: Postings, row: int) -> None:
    """Prefetch the beginning of a list that is read soon; the rest comes while that is read."""
    first, length = entries(p, row)
    for e in range(first, first + min(length, _BEGINNING), 2):  # a cache line has two or three
        prefetch(p.pool, e)


@njit(lean=True)
def bury(p: Postings, entry: int) -> None:
    """Make an entry one that no object meets; `sweep` takes it out."""
    p.boxes[entry, 1] = np.float32(np.inf)


@njit(lean=True)
def buried(p: Postings, entry: int) -> bool:
    """Whether an entry is buried."""
    return p.boxes[entry, 1] == np.float32(np.inf)


@njit(lean=True)
def sweep(p: Postings, row: int) -> None:
    """Close the gaps that buried entries left in the list of `row`."""
    first, length = entries(p, row)
    kept = first
    for e in range(first, first + length):
        if not buried(p, e):
            for c in range(p.pool.shape[1]):
                p.pool[kept, c] = p.pool[e, c]
            kept += 1
    p.meta[LIVE] -= first + length - kept
    p.table[row, 1] = _packed(first, kept - first, room_class(p.table[row, 1]))
