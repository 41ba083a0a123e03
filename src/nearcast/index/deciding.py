"""Whether an object matches a subscription, and what the search for matches counts."""

from __future__ import annotations

from nearcast.index.posting import Index
from nearcast.kernels import slots as sl
from nearcast.kernels.program import all_held, satisfied
from nearcast.kernels.raster import INSIDE, UNSURE, look, raster_words
from nearcast.model.geometry import region_contains
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

# places in `counts`
NEXT, FOUND, EXAMINED, LOOKUPS, SCANNED = 0, 1, 2, 3, 4
COUNTS = 5


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
    numbers = half[slot, sl.REGION]
    if raster_words(code, numbers):
        says = look(s.heap, s.reals, first + numbers, numbers, o.x[row], o.y[row])
        if says != UNSURE:
            return says == INSIDE
    data = s.reals[first : first + numbers]
    return region_contains(space, code, data, o.x[row], o.y[row])
