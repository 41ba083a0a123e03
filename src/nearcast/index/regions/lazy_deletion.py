"""Lazy deletion (PS2Stream IV.D): what has ended is noted, and leaves a list when that is read.

The paper keeps a hash table of deleted ids; slots are numbers, so one bit per slot is that table.
An expired subscription is noted when an object meets it. Its entry is removed once the object that
reads it comes after the end. SPEC section 4 lets a late object of a live stream still reach an
ended subscription. So one that leaves its lists is posted on *late lists*, one per word, until
`compact`; only objects from before the latest end among these look there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.deciding import EXAMINED, FOUND, LOOKUPS, SCANNED, matches
from nearcast.index.posting import UNIVERSAL, Index, boxes_of, fits, outward, posting_words
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.bits import is_set, set_bit
from nearcast.kernels.cells import cell_hash, key_in
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

# places in `meta`
NOTED = 0  # slots noted as ended
REMOVED = 1  # entries taken off lists
LEFT = 2  # slots of which entries were taken off
MOVED = 3  # those of them that are on late lists: all but what moved to another shard
HORIZON = 4  # the latest end among them
META = 5

# how matching may end
DONE, FULL, SHORT = 0, 1, 2  # FULL: no more room for matches; SHORT: nor for hits of one object
HITS = 4096  # of one object, to begin with

_LATE = 500  # in place of a level of cells


class Lazy(NamedTuple):
    """What is known of ended subscriptions; all arrays may be memory-mapped."""

    gone: NDArray[np.uint64]  # one bit per slot: noted as ended
    left: NDArray[np.uint64]  # one bit per slot: entries of it were taken off
    meta: NDArray[np.int64]  # [META]


@njit(lean=True)
def note(lazy: Lazy, slot: int) -> None:
    """Note that `slot` has ended, or will have for the objects to come."""
    if not is_set(lazy.gone, slot):
        set_bit(lazy.gone, slot)
        lazy.meta[NOTED] += 1


@njit
def note_all(lazy: Lazy, slots: NDArray[np.int64]) -> None:
    """Note that `slots` have ended."""
    for i in range(len(slots)):
        note(lazy, slots[i])


@njit(lean=True)
def ended(ix: Index, slot: int, until: int) -> bool:
    """Whether no object of `until` or later sees `slot`, however this batch goes on."""
    if not ix.slots.half[slot, sl.FLAGS] & sl.LIVE:
        return True
    return bool(ix.slots.half[slot, sl.ENDS] < 0 and ix.slots.rows[slot, sl.END] <= until)


@njit(lean=True)
def late_key(word: np.uint64) -> np.uint64:
    """Key of the late list of a word."""
    return key_in(cell_hash(_LATE, 0, 0), word)


@njit(lean=True)
def _post_late(ix: Index, slot: int, box: NDArray[np.float32]) -> bool:
    """Post `slot` on late lists; False if there is no room (it then stays where it is)."""
    first_box, boxes = boxes_of(ix, slot)
    if not fits(ix, slot, boxes):
        return False
    r = ix.slots.reals
    first, words = posting_words(ix, slot)
    for i in range(first, first + words):
        word = ix.slots.heap[i] if i >= 0 else UNIVERSAL
        for b in range(first_box, first_box + 4 * boxes, 4):
            outward(box, r[b], r[b + 1], r[b + 2], r[b + 3])
            if pl.add(ix.lists, late_key(word), slot, box) < 0:
                return False
    return True


@njit(lean=True)
def may_leave(ix: Index, lazy: Lazy, slot: int, until: int, box: NDArray[np.float32]) -> bool:
    """Whether an entry of `slot`, read for an object of `until`, is to be taken off its list."""
    if not is_set(lazy.gone, slot) or not ended(ix, slot, until):
        return False
    if not is_set(lazy.left, slot):
        if ix.slots.half[slot, sl.FLAGS] & sl.LIVE:
            if not _post_late(ix, slot, box):
                return False
            end = ix.slots.rows[slot, sl.END]
            lazy.meta[HORIZON] = end if lazy.meta[MOVED] == 0 else max(end, lazy.meta[HORIZON])
            lazy.meta[MOVED] += 1
        set_bit(lazy.left, slot)
        lazy.meta[LEFT] += 1
    lazy.meta[REMOVED] += 1
    return True


# -- reading lists -----------------------------------------------------------------------------


@njit(lean=True)
def collect(
    pool: NDArray[np.int32],
    boxes: NDArray[np.float32],
    first: int,
    length: int,
    x: float,
    y: float,
    hits: NDArray[np.int64],
    n: int,
) -> int:
    """Put slots of the `length` entries from `first` on whose box holds (x, y) behind n `hits`.

    How many hits there are then; -1 if `hits` might be too short.
    """
    if n + length > len(hits):
        return -1
    for e in range(first, first + length):
        hits[n] = pool[e, 0]
        n += (x >= boxes[e, 1]) & (y >= boxes[e, 2]) & (x <= boxes[e, 3]) & (y <= boxes[e, 4])
    return n


@njit(lean=True)
def collect_late(
    ix: Index,
    lazy: Lazy,
    o: ObjectColumns,
    i: int,
    hits: NDArray[np.int64],
    n: int,
    counts: NDArray[np.int64],
) -> int:
    """The same from late lists, for object number `i` if it is late."""
    row = o.order[i]
    if lazy.meta[MOVED] == 0 or o.until[row] >= lazy.meta[HORIZON]:
        return n
    p = ix.lists
    first = o.word_offsets[row]
    for w in range(first - 1, o.word_offsets[row + 1]):
        word = o.words[w] if w >= first else UNIVERSAL
        counts[LOOKUPS] += 1
        found = pl.find(p.table, late_key(word))
        if found >= 0 and n >= 0:
            start, length = pl.entries(p, found)
            counts[SCANNED] += length
            n = collect(p.pool, p.boxes, start, length, o.x[row], o.y[row], hits, n)
    return n


@njit
def decide(
    ix: Index,
    lazy: Lazy,
    space: int,
    o: ObjectColumns,
    i: int,
    hits: NDArray[np.int64],
    n: int,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool:
    """Decide which of n `hits` object number `i` matches; False if `out` is full."""
    stamp = np.int32(ix.slots.meta[sl.CLOCK] + i)
    row = o.order[i]
    for h in range(n):
        slot = hits[h]
        if ix.slots.half[slot, sl.STAMP] == stamp:
            continue
        counts[EXAMINED] += 1
        if matches(ix, space, slot, o, i, row):
            if counts[FOUND] == out.shape[1]:
                return False
            out[0, counts[FOUND]] = i
            out[1, counts[FOUND]] = slot
            counts[FOUND] += 1
            ix.slots.half[slot, sl.STAMP] = stamp
        elif ended(ix, slot, o.until[row]):
            note(lazy, slot)
    return True


@njit
def settle(
    ix: Index,
    lazy: Lazy,
    space: int,
    o: ObjectColumns,
    i: int,
    hits: NDArray[np.int64],
    n: int,
    out: NDArray[np.int64],
    counts: NDArray[np.int64],
    before: tuple[int, int, int],
) -> int:
    """Decide n hits of object number `i`, -1 if they were too many: DONE, FULL or SHORT.

    Unless it is done the object will be decided again, and its work must count once: `before` is
    what `work_so_far` said before its hits were collected.
    """
    if n >= 0 and decide(ix, lazy, space, o, i, hits, n, out, counts):
        return DONE
    counts[EXAMINED], counts[LOOKUPS], counts[SCANNED] = before
    counts[EXAMINED] += counts[FOUND]  # what has matched is stamped, and not examined again
    return SHORT if n < 0 else FULL


@njit(lean=True)
def work_so_far(counts: NDArray[np.int64]) -> tuple[int, int, int]:
    """(examined in vain, look-ups, entries read)."""
    return counts[EXAMINED] - counts[FOUND], counts[LOOKUPS], counts[SCANNED]
