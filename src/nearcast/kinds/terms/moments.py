"""When subscriptions report: moments that have passed, as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import slots as sl
from nearcast.model.jit import njit

__all__ = [
    "DUE",
    "EARLY",
    "EVERY",
    "EXCLUDED",
    "EXCLUDES",
    "FOREVER",
    "SINCE",
    "WIDTH",
    "WINDOW",
    "Due",
    "K",
    "count_due",
    "horizon_of",
    "skip_to",
    "take_due",
]  # fmt: skip

FOREVER = 2**62
WIDTH = 8
K, WINDOW, EVERY, DUE, SINCE, EXCLUDED, EXCLUDES, EARLY = range(WIDTH)
"""Numbers of a slot: of the query; the next moment; the rank of the first object that was handled
after it; where its excluded words begin, and how many there are; its list of early words."""

Longs = NDArray[np.int64]


class Due(NamedTuple):
    """Moments that have passed, of slots that report at them."""

    slot: Longs
    time: Longs
    order: Longs  # number of the first object of the batch that came after it


@njit(lean=True)
def _bound(s: sl.Slots, slot: int) -> np.int64:
    """No moment from this one on is reported."""
    if s.half[slot, sl.FLAGS] & sl.LIVE == 0:
        return np.int64(-FOREVER)
    bound = np.int64(s.rows[slot, sl.END])
    link = s.half[slot, sl.ENDS]
    while link >= 0:
        bound = max(bound, min(np.int64(s.ends[link, 2]), np.int64(s.ends[link, 4])))
        link = s.ends[link, 3]
    return bound


@njit(lean=True)
def _lives_at(s: sl.Slots, slot: int, moment: int) -> bool:
    """Whether `slot` reports at a moment; an event may have ended it after the moment passed."""
    if moment < s.rows[slot, sl.END]:
        return True
    link = s.half[slot, sl.ENDS]
    while link >= 0:
        if moment < s.ends[link, 4] and moment < s.ends[link, 2]:
            return True
        link = s.ends[link, 3]
    return False


@njit
def count_due(s: sl.Slots, rows: Longs, slots: int, until: int) -> int:
    """How many moments up to `until` are due, at most."""
    total = 0
    for slot in range(slots):
        due = rows[slot, DUE]
        if due <= until:
            last = min(until, _bound(s, slot) - 1)
            if last >= due:
                total += (last - due) // rows[slot, EVERY] + 1
    return total


@njit
def horizon_of(s: sl.Slots, rows: Longs, slots: int, until: int, room: int) -> int:
    """A time up to which about `room` moments are due, at least one; not after `until`."""
    first = until
    for slot in range(slots):
        if rows[slot, DUE] < first and _bound(s, slot) > rows[slot, DUE]:
            first = rows[slot, DUE]
    low, high = first, until  # at `low` there may be too many, but fewer cannot be taken
    while low < high:
        middle = low + (high - low + 1) // 2
        if count_due(s, rows, slots, middle) <= room:
            low = middle
        else:
            high = middle - 1
    return low


@njit
def take_due(s: sl.Slots, rows: Longs, slots: int, until: int, clock: Longs, room: int) -> Due:
    """The moments up to `until`; they are no longer due."""
    slot_of, time, order = (
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )
    n = 0
    for slot in range(slots):
        due = rows[slot, DUE]
        if due > until:
            continue
        last = min(until, _bound(s, slot) - 1)
        born = np.int64(s.half[slot, sl.BORN])
        while due <= last:
            if _lives_at(s, slot, due):
                slot_of[n] = slot
                time[n] = due
                order[n] = max(born, np.searchsorted(clock, due, side="right"))
                n += 1
            due += rows[slot, EVERY]
        rows[slot, DUE] = due
    return Due(slot_of[:n], time[:n], order[:n])


@njit
def skip_to(rows: Longs, slots: int, passed: int) -> None:
    """Moments up to `passed` have been reported elsewhere, or before."""
    for slot in range(slots):
        if rows[slot, DUE] <= passed:
            every = rows[slot, EVERY]
            rows[slot, DUE] += ((passed - rows[slot, DUE]) // every + 1) * every
