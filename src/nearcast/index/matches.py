"""Matches of range subscriptions: what is told of an object is looked up when it is asked for."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.index.base import EVENTS, MATCH, Changes, Work
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

_OWN = 3  # references to its memory that a Room has itself, as `sys.getrefcount` counts
_SPARE = 8  # times as much as is asked for may be used
_KEPT = 3  # a loop still holds the last ones when the next is wanted


class Room:
    """Memory for pairs of numbers, used again as soon as nobody holds what was in it.

    Millions of matches a batch in new memory each time: the kernel would clear it each time.
    """

    def __init__(self) -> None:
        self._kept: list[NDArray[np.int64]] = []

    def take(self, pairs: int) -> NDArray[np.int64]:
        """[2, so many], of no particular content."""
        self._kept = [k for k in self._kept if pairs <= k.shape[1] <= _SPARE * pairs]
        for kept in self._kept:
            if sys.getrefcount(kept) <= _OWN:  # a view of it counts too
                return kept[:, :pairs]
        made = np.empty((2, pairs), np.int64)
        self._kept = [made, *self._kept[: _KEPT - 1]]
        return made[:]


class Matches(Changes):
    """Changes that are all matches: of millions, most columns are a copy of the object's."""

    __slots__ = ("_objects",)

    def __init__(
        self,
        order: NDArray[np.int64],
        slot: NDArray[np.int64],
        objects: ObjectColumns,
        work: Work,
    ) -> None:
        self.order, self.slot, self.work = order, slot, work
        self.names = objects.id_bytes
        self._objects = objects

    def __getattr__(self, name: str) -> Any:
        """Only what was not set yet comes here."""
        if name == "event":
            self.event = np.full(len(self.order), MATCH, np.uint8)
        elif name == "distance":
            self.distance = np.zeros(len(self.order))
        elif name in ("time", "name_starts", "name_lengths"):
            self.time, self.name_starts, self.name_lengths = _named(self._objects, self.order)
        return object.__getattribute__(self, name)

    def events(self) -> dict[str, int]:
        """They are all of one event."""
        return {EVENTS[MATCH]: len(self)} if len(self) else {}

    def take(self, rows: NDArray[Any] | slice) -> Matches:
        """Some of the matches."""
        return Matches(self.order[rows], self.slot[rows], self._objects, self.work)


def joined(pieces: list[Matches], objects: ObjectColumns) -> Matches:
    """All of them."""
    if len(pieces) == 1:
        return pieces[0]
    work = Work()
    for piece in pieces:
        work += piece.work
    none = np.empty(0, np.int64)
    order = np.concatenate([none, *(p.order for p in pieces)])
    return Matches(order, np.concatenate([none, *(p.slot for p in pieces)]), objects, work)


@njit
def _named(
    o: ObjectColumns, order: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(time, where the id starts, its length) of the objects with these numbers."""
    n = len(order)
    time, start, length = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for j in range(n):
        row = o.order[order[j]]
        time[j] = o.time[row]
        start[j] = o.id_offsets[row]
        length[j] = o.id_offsets[row + 1] - start[j]
    return time, start, length
