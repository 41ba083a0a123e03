"""Subscriptions as rows of 64 bytes: when they see objects, what they match, their ids.

A row (a *slot*) keeps the interval [start, end), the place of its body (program, cover words and
region numbers, one run in `heap`) and of its text (id, then what notifications echo). Ids lead to
the latest slot of that id. Within one batch, `born` and the chain of `ends` say which objects come
before a subscribe or unsubscribe: time alone cannot, when a live stream brings events late.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.bits import set_bit
from nearcast.kernels.prefetch import prefetch
from nearcast.kernels.program import TAG_MASK, TAG_OR, TAG_WORD
from nearcast.kernels.raster import draw, raster_words
from nearcast.model.jit import njit

# int64 columns of a row
START, END = 0, 1
BODY = 3
TEXT = 6
# int32 columns of a row (the same memory)
BORN, ENDS = 4, 5
PROGRAM, REGION, COVER, FLAGS = 8, 9, 10, 11
STAMP, TAIL = 14, 15
# bits of FLAGS
REGION_CODE = 0x3
REPORTS = 1 << 2
CONJUNCTION = 1 << 3
LIVE = 1 << 4
BOXES_SHIFT = 5  # how many boxes stand behind the region; 0: the region is its own box
BOXES_MASK = 0x7
FORMER = 1 << 8  # its id means another subscription by now: events about the id do not reach it
PROVED = 1 << 9  # being found on a list already implies `where`: see `_is_proved`
PARITY = 1 << 10  # of the strategy that placed it, where one follows another (routing.grid.both)
ID_SHIFT = 11  # the id's length in bytes stands above

# places in `meta`
COUNT = 0  # slots used
HEAP_TOP = 1
TEXT_TOP = 2
IDS = 3  # ids in the table
ENDS_TOP = 4
CLOCK = 5  # objects matched so far, for stamps
BATCH_FIRST = 6  # first slot of this batch
LONGEST = 7  # tokens of the longest program
SILENT = 8  # slots so far that do not report what they see
META = 9

SUBSCRIBE = 0
UNSUBSCRIBE = 1
REPLACED = 2  # another index gets a subscription of this id: end it, and forget the id here

CHUNK = 10  # 2^this slots share a number of `latest`
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_FORGOTTEN = _LOW  # in place of a slot, in `ids`
FOREVER = 2**62  # the end of what never ends
_AHEAD = 4  # controls from prefetching memory to reading it
_LOOK = 16  # the same, where only a row is read


class Slots(NamedTuple):
    """State of a table of subscriptions; all arrays may be memory-mapped."""

    rows: NDArray[np.int64]  # [capacity, 8]
    half: NDArray[np.int32]  # [capacity, 16], the same memory
    heap: NDArray[np.uint64]
    reals: NDArray[np.float64]  # the same memory as `heap`
    text: NDArray[np.uint8]
    ids: NDArray[np.uint64]  # [2ⁿ]: slot + 1 | the low half of an id's hash << 32; 0: free
    ends: NDArray[np.int64]  # [*, 5]: slot, first object after it, end until then, previous, clock
    careful: NDArray[np.uint64]  # one bit per slot: it has an end, so `sees` must decide
    latest: NDArray[np.int64]  # per chunk of slots: the latest START so far
    meta: NDArray[np.int64]


class Controls(NamedTuple):
    """Subscribes and unsubscribes in order, as columns (see `wire.tables`)."""

    op: NDArray[np.uint8]
    at: NDArray[np.int32]  # how many objects of the batch come before it
    clock: NDArray[np.int64]  # how far time had come before it
    time: NDArray[np.int64]
    end: NDArray[np.int64]
    flags: NDArray[np.int32]  # region code, REPORTS, CONJUNCTION, PARITY
    id_hash: NDArray[np.uint64]
    id_offsets: NDArray[np.int64]
    id_bytes: NDArray[np.uint8]
    tail_offsets: NDArray[np.int64]
    tail_bytes: NDArray[np.uint8]
    program_offsets: NDArray[np.int64]
    program: NDArray[np.uint64]
    cover_offsets: NDArray[np.int64]
    cover: NDArray[np.uint64]
    region_offsets: NDArray[np.int64]
    region: NDArray[np.float64]
    box_offsets: NDArray[np.int64]
    boxes: NDArray[np.float64]


@njit
def _same_id(s: Slots, slot: int, data: NDArray[np.uint8], start: int, stop: int) -> bool:
    length = s.half[slot, FLAGS] >> ID_SHIFT
    if length != stop - start:
        return False
    first = s.rows[slot, TEXT]
    for i in range(length):
        if s.text[first + i] != data[start + i]:
            return False
    return True


@njit
def find_id(
    s: Slots, key: np.uint64, data: NDArray[np.uint8], start: int, stop: int
) -> tuple[int, int]:
    """(row of `ids`, slot) of the id `data[start:stop]` with hash `key`; slot -1 if unknown."""
    mask = np.int64(len(s.ids) - 1)
    half = key & _LOW
    row = np.int64(half) & mask
    while s.ids[row] != np.uint64(0):
        slot = np.int64(s.ids[row] & _LOW) - 1
        known = s.ids[row] >> _HALF == half and s.ids[row] & _LOW != _FORGOTTEN
        if known and _same_id(s, slot, data, start, stop):
            return row, slot
        row = (row + 1) & mask
    return row, -1


@njit(lean=True, forceinline=True)
def _fetch_id(s: Slots, c: Controls, i: int) -> None:
    """Prefetch what `find_id` will read, step by step: each reads what an earlier one fetched."""
    mask = np.int64(len(s.ids) - 1)
    if i + 3 * _AHEAD < len(c.op):
        prefetch(s.ids, np.int64(c.id_hash[i + 3 * _AHEAD] & _LOW) & mask)
    for step in range(1, 3):
        j = i + step * _AHEAD
        if j < len(c.op):
            half = c.id_hash[j] & _LOW
            known = s.ids[np.int64(half) & mask]
            if known >> _HALF == half and known & _LOW != _FORGOTTEN and known != np.uint64(0):
                slot = np.int64(known & _LOW) - 1
                if step == 2:
                    prefetch(s.rows, slot)
                else:
                    prefetch(s.text, s.rows[slot, TEXT])


@njit
def rehash_ids(old: NDArray[np.uint64], new: NDArray[np.uint64]) -> None:
    """Put every id of `old` into the empty, larger `new`."""
    mask = np.int64(len(new) - 1)
    for i in range(len(old)):
        if old[i] != np.uint64(0) and old[i] & _LOW != _FORGOTTEN:
            row = np.int64(old[i] >> _HALF) & mask
            while new[row] != np.uint64(0):
                row = (row + 1) & mask
            new[row] = old[i]


@njit
def _end(s: Slots, slot: int, time: int, at: int, clock: int) -> None:
    """`slot` sees nothing from `time` on, but for what came before this event."""
    old = s.rows[slot, END]
    if time < old:
        top = s.meta[ENDS_TOP]
        s.ends[top, 0] = slot
        s.ends[top, 1] = at
        s.ends[top, 2] = old
        s.ends[top, 3] = s.half[slot, ENDS]
        s.ends[top, 4] = clock
        s.half[slot, ENDS] = np.int32(top)
        s.meta[ENDS_TOP] = top + 1
        s.rows[slot, END] = time
        set_bit(s.careful, slot)


@njit
def _is_proved(c: Controls, i: int) -> bool:
    """Whether an object that holds a word that subscription `i` is posted under matches its words.

    True for one word, and for a plain OR of words, which is posted under each of them. Then the
    program need not be read again.
    """
    first, stop = c.program_offsets[i], c.program_offsets[i + 1]
    if c.flags[i] & CONJUNCTION:
        return bool(stop - first == 1)
    words = c.cover_offsets[i + 1] - c.cover_offsets[i]
    if words == 0 or stop - first != words + 1:
        return False
    for j in range(first, stop - 1):
        if c.program[j] & TAG_MASK != TAG_WORD:
            return False
    return bool(c.program[stop - 1] & TAG_MASK == TAG_OR)


@njit
def _append(s: Slots, c: Controls, i: int) -> int:
    """A new slot from row `i` of `c`; its number."""
    slot = s.meta[COUNT]
    s.meta[COUNT] = slot + 1
    s.rows[slot, START] = c.time[i]
    s.rows[slot, END] = c.end[i]
    if c.end[i] < FOREVER:
        set_bit(s.careful, slot)
    chunk = slot >> CHUNK
    before = s.latest[chunk if slot & ((1 << CHUNK) - 1) else max(chunk - 1, 0)]
    s.latest[chunk] = max(before, c.time[i]) if slot else c.time[i]
    s.half[slot, BORN] = c.at[i]
    s.half[slot, ENDS] = -1
    s.half[slot, STAMP] = -1
    top = s.meta[HEAP_TOP]
    s.rows[slot, BODY] = top
    for j in range(c.program_offsets[i], c.program_offsets[i + 1]):
        s.heap[top] = c.program[j]
        top += 1
    for j in range(c.cover_offsets[i], c.cover_offsets[i + 1]):
        s.heap[top] = c.cover[j]
        top += 1
    for j in range(c.region_offsets[i], c.region_offsets[i + 1]):
        s.reals[top] = c.region[j]
        top += 1
    for j in range(c.box_offsets[i], c.box_offsets[i + 1]):
        s.reals[top] = c.boxes[j]
        top += 1
    numbers = c.region_offsets[i + 1] - c.region_offsets[i]
    picture = raster_words(c.flags[i] & REGION_CODE, numbers)
    if picture:  # behind its one box
        draw(s.heap, s.reals, top - 4 - numbers, numbers, top - 4)
        top += picture
    s.meta[HEAP_TOP] = top
    s.half[slot, PROGRAM] = c.program_offsets[i + 1] - c.program_offsets[i]
    s.meta[LONGEST] = max(s.meta[LONGEST], c.program_offsets[i + 1] - c.program_offsets[i])
    s.half[slot, COVER] = c.cover_offsets[i + 1] - c.cover_offsets[i]
    s.half[slot, REGION] = c.region_offsets[i + 1] - c.region_offsets[i]
    top = s.meta[TEXT_TOP]
    s.rows[slot, TEXT] = top
    for j in range(c.id_offsets[i], c.id_offsets[i + 1]):
        s.text[top] = c.id_bytes[j]
        top += 1
    for j in range(c.tail_offsets[i], c.tail_offsets[i + 1]):
        s.text[top] = c.tail_bytes[j]
        top += 1
    s.meta[TEXT_TOP] = top
    s.half[slot, TAIL] = c.tail_offsets[i + 1] - c.tail_offsets[i]
    length = c.id_offsets[i + 1] - c.id_offsets[i]
    boxes = (c.box_offsets[i + 1] - c.box_offsets[i]) // 4
    s.meta[SILENT] += c.flags[i] & REPORTS == 0
    s.half[slot, FLAGS] = np.int32(
        c.flags[i]
        | LIVE
        | (boxes << BOXES_SHIFT)
        | (PROVED if _is_proved(c, i) else 0)
        | (length << ID_SHIFT)
    )
    return slot


@njit
def apply_controls(s: Slots, c: Controls) -> None:
    """Apply subscribes and unsubscribes in order. Room must have been made for all of them."""
    for i in range(len(c.op)):
        _fetch_id(s, c, i)
        if c.flags[i] & FORMER:  # moved or restored: all that could end it has done so
            _append(s, c, i)
            continue
        start, stop = c.id_offsets[i], c.id_offsets[i + 1]
        row, slot = find_id(s, c.id_hash[i], c.id_bytes, start, stop)
        if slot >= 0:
            _end(s, slot, c.time[i], c.at[i], c.clock[i])
        if c.op[i] == SUBSCRIBE:
            if slot < 0:
                s.meta[IDS] += 1
            s.ids[row] = (c.id_hash[i] & _LOW) << _HALF | np.uint64(_append(s, c, i) + 1)
        elif c.op[i] == REPLACED and slot >= 0:
            s.ids[row] |= _FORGOTTEN


@njit(lean=True, forceinline=True)
def sees(s: Slots, slot: int, i: int, time: int, until: int) -> bool:
    """SPEC section 4 for object number `i` of the batch: start <= `time`, `until` < end.

    `until` is the object's time too, or later if the object came too late (`ObjectColumns.until`).
    """
    if i < s.half[slot, BORN] or time < s.rows[slot, START]:
        return False
    if until < s.rows[slot, END]:
        return s.half[slot, FLAGS] & LIVE != 0
    link = s.half[slot, ENDS]
    while link >= 0:
        if i < s.ends[link, 1] and until < s.ends[link, 2]:
            return s.half[slot, FLAGS] & LIVE != 0
        link = s.ends[link, 3]
    return False


@njit(lean=True)
def settled(s: Slots, time: int) -> int:
    """How many of the first slots came before this batch and began by `time`.

    Those of them that are not `careful` see an object of that time, without a further look.
    """
    first = s.meta[BATCH_FIRST]
    if first == 0:
        return 0
    low, high = np.int64(0), ((first - 1) >> CHUNK) + 1
    if s.latest[high - 1] <= time:
        return first
    while low < high:
        middle = (low + high) >> 1
        if s.latest[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return min(low << CHUNK, first)


@njit(lean=True)
def lives_at(s: Slots, slot: int, moment: int) -> bool:
    """Whether `slot` reports what happens at `moment`, which passed before or in this batch."""
    if moment < s.rows[slot, END]:
        return s.half[slot, FLAGS] & LIVE != 0
    link = s.half[slot, ENDS]
    while link >= 0:
        if moment <= s.ends[link, 4] and moment < s.ends[link, 2]:
            return s.half[slot, FLAGS] & LIVE != 0
        link = s.ends[link, 3]
    return False


@njit
def close_batch(s: Slots) -> None:
    """Forget the order within the batch: from now on time alone decides."""
    for i in range(s.meta[ENDS_TOP]):
        s.half[s.ends[i, 0], ENDS] = -1
    s.meta[ENDS_TOP] = 0
    for slot in range(s.meta[BATCH_FIRST], s.meta[COUNT]):
        s.half[slot, BORN] = 0
    s.meta[BATCH_FIRST] = s.meta[COUNT]


@njit
def drop_slots(s: Slots, slots: NDArray[np.int64]) -> None:
    """Take slots away (they moved to another shard): they stay, but see nothing."""
    for i in range(len(slots)):
        s.half[slots[i], FLAGS] &= ~LIVE
        s.rows[slots[i], END] = s.rows[slots[i], START]
        set_bit(s.careful, slots[i])


@njit
def reporting(s: Slots, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the slots report what they see."""
    out = np.empty(len(slots), np.bool_)
    for i in range(len(slots)):
        if i + _LOOK < len(slots):
            prefetch(s.rows, slots[i + _LOOK])
        out[i] = s.half[slots[i], FLAGS] & REPORTS != 0
    return out


@njit
def texts_of(s: Slots, slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """[3, slots]: where the text of each begins, the length of its id and of its echo."""
    out = np.empty((3, len(slots)), np.int64)
    for i in range(len(slots)):
        if i + _LOOK < len(slots):
            prefetch(s.rows, slots[i + _LOOK])
        slot = slots[i]
        out[0, i] = s.rows[slot, TEXT]
        out[1, i] = s.half[slot, FLAGS] >> ID_SHIFT
        out[2, i] = s.half[slot, TAIL]
    return out


@njit
def known(s: Slots) -> NDArray[np.bool_]:
    """Which slots are still found by their ids."""
    out = np.zeros(s.meta[COUNT], np.bool_)
    for row in range(len(s.ids)):
        if s.ids[row] != np.uint64(0) and s.ids[row] & _LOW != _FORGOTTEN:
            out[np.int64(s.ids[row] & _LOW) - 1] = True
    return out
