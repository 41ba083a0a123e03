"""Matches of range subscriptions: what is told of an object is looked up when it is asked for."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.index.base import MATCH, Changes, Work
from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns

_OWN = 2  # references to its memory that a Room has itself, as `sys.getrefcount` counts
_SPARE = 8  # times as much as is asked for is kept


class Room:
    """Memory for pairs of numbers, used again as soon as nobody holds what was in it.

    Millions of matches a batch in new memory each time: the kernel would clear it each time.
    """

    def __init__(self) -> None:
        self._pairs = np.empty((2, 0), np.int64)

    def take(self, pairs: int) -> NDArray[np.int64]:
        """[2, at least so many], of no particular content."""
        size = self._pairs.shape[1]
        held = sys.getrefcount(self._pairs) > _OWN  # a view of it counts too
        if held or not pairs <= size <= _SPARE * pairs:
            self._pairs = np.empty((2, pairs), np.int64)
        return self._pairs


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

    def take(self, rows: NDArray[Any] | slice) -> Matches:
        """Some of the matches."""
        return Matches(self.order[rows], self.slot[rows], self._objects, self.work)


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
