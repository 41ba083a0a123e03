"""Lists of entries that several places may share: found by number, counted by references.

An entry is as in `kernels.postings`: the slot of a subscription and an outward-rounded box. Lists
grow by doubling (`kernels.blocks`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import blocks
from nearcast.kernels.postings import ENTRY
from nearcast.model.jit import njit

# columns of a head
FIRST, COUNT, ROOM, REFERENCES = 0, 1, 2, 3
# places in `meta`, behind those of the pool's blocks (`kernels.blocks`)
HEADS = blocks.META  # heads handed out so far
FREE_HEAD = blocks.META + 1  # 1 + a free head, which leads to the next; 0: none
ENTRIES = blocks.META + 2  # in lists
LONGEST = blocks.META + 3  # room of the longest list so far
META = blocks.META + 4


class Lists(NamedTuple):
    """State of the lists; all arrays may be memory-mapped. Zeros are no list at all."""

    heads: NDArray[np.int32]  # [*, 4]
    pool: NDArray[np.int32]  # [*, ENTRY]
    boxes: NDArray[np.float32]  # the same memory
    meta: NDArray[np.int64]  # [META]


@njit(lean=True)
def fits(s: Lists, number: int) -> bool:
    """Whether one more entry has room in list `number`, without a longer pool."""
    room = np.int64(s.heads[number, ROOM])
    if s.heads[number, COUNT] < room:
        return True
    return blocks.has_room(s.pool, s.meta, blocks.size_for(room) + 1)


@njit(lean=True)
def make(s: Lists) -> int:
    """A new, empty list with one reference; there must be room for a head and an entry."""
    free = s.meta[FREE_HEAD]
    if free > 0:
        number = free - 1
        s.meta[FREE_HEAD] = s.heads[number, FIRST]
    else:
        number = s.meta[HEADS]
        s.meta[HEADS] = number + 1
    s.heads[number, FIRST] = np.int32(blocks.take(s.pool, s.meta, 0))
    s.heads[number, COUNT] = 0
    s.heads[number, ROOM] = 1
    s.heads[number, REFERENCES] = 1
    return number


@njit(lean=True)
def append(s: Lists, number: int, slot: int, box: NDArray[np.float32]) -> None:
    """Append `slot` with `box` (float32[4]); `fits` must have said so."""
    count, room = np.int64(s.heads[number, COUNT]), np.int64(s.heads[number, ROOM])
    first = np.int64(s.heads[number, FIRST])
    if count == room:
        size = blocks.size_for(room)
        wider = blocks.take(s.pool, s.meta, size + 1)
        for i in range(count):
            for c in range(ENTRY):
                s.pool[wider + i, c] = s.pool[first + i, c]
        blocks.give_back(s.pool, s.meta, first, size)
        first = wider
        s.heads[number, FIRST] = np.int32(wider)
        s.heads[number, ROOM] = np.int32(2 * room)
        s.meta[LONGEST] = max(s.meta[LONGEST], 2 * room)
    s.pool[first + count, 0] = np.int32(slot)
    for c in range(4):
        s.boxes[first + count, 1 + c] = box[c]
    s.heads[number, COUNT] = np.int32(count + 1)
    s.meta[ENTRIES] += 1


@njit(lean=True)
def holds(s: Lists, number: int, slot: int, box: NDArray[np.float32]) -> bool:
    """Whether list `number` has this very entry."""
    first = s.heads[number, FIRST]
    for e in range(first, first + s.heads[number, COUNT]):
        if s.pool[e, 0] == slot:
            same = True
            for c in range(4):
                same &= s.boxes[e, 1 + c] == box[c]
            if same:
                return True
    return False


@njit(lean=True)
def remove(s: Lists, number: int, place: int) -> None:
    """Take the entry at `place` of the list out; the last one takes its place."""
    first = np.int64(s.heads[number, FIRST])
    last = np.int64(s.heads[number, COUNT]) - 1
    for c in range(ENTRY):
        s.pool[first + place, c] = s.pool[first + last, c]
    s.heads[number, COUNT] = np.int32(last)
    s.meta[ENTRIES] -= 1


@njit(lean=True)
def release(s: Lists, number: int) -> None:
    """Drop one reference to list `number`; with the last one the list ends."""
    s.heads[number, REFERENCES] -= 1
    if s.heads[number, REFERENCES] > 0:
        return
    s.meta[ENTRIES] -= s.heads[number, COUNT]
    size = blocks.size_for(np.int64(s.heads[number, ROOM]))
    blocks.give_back(s.pool, s.meta, np.int64(s.heads[number, FIRST]), size)
    s.heads[number, FIRST] = np.int32(s.meta[FREE_HEAD])
    s.meta[FREE_HEAD] = number + 1
