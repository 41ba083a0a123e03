"""Changes of results as columns, from the indexes that find them to the files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.wire.tables import ObjectColumns


@dataclass(slots=True)
class Work:
    """What finding the changes cost, in units that do not depend on the machine."""

    examined: int = 0  # candidates whose subscription was looked at
    lookups: int = 0  # posting lists looked for
    scanned: int = 0  # entries of posting lists read

    def __iadd__(self, other: Work) -> Work:
        self.examined += other.examined
        self.lookups += other.lookups
        self.scanned += other.scanned
        return self


@dataclass(slots=True)
class Changes:
    """Changes of results in the order in which they are reported, as columns.

    `order` is the number of the object (in the order of the log) that caused the change; for a
    change that the passing of time caused, the number of the first object after it.
    """

    order: NDArray[np.int64]
    slot: NDArray[np.int64]
    event: NDArray[np.uint8]
    time: NDArray[np.int64]
    value: NDArray[np.float64]  # that the event carries: a distance, a score
    name_starts: NDArray[np.int64]  # the object's id: names[start:start+length]
    name_lengths: NDArray[np.int64]
    names: NDArray[np.uint8]
    work: Work = field(default_factory=Work)

    def __len__(self) -> int:
        return len(self.order)

    def events(self) -> dict[int, int]:
        """How many there are of each event that occurs."""
        return {event: n for event, n in enumerate(np.bincount(self.event).tolist()) if n}

    def take(self, rows: NDArray[Any] | slice) -> Changes:
        """Some of the changes."""
        return Changes(
            self.order[rows],
            self.slot[rows],
            self.event[rows],
            self.time[rows],
            self.value[rows],
            self.name_starts[rows],
            self.name_lengths[rows],
            self.names,
            self.work,
        )


@dataclass(slots=True)
class Texts:
    """How the subscriptions of some slots are written in notifications."""

    text: NDArray[np.uint8]
    starts: NDArray[np.int64]  # the id; what is echoed stands right behind it
    id_lengths: NDArray[np.int64]
    tail_lengths: NDArray[np.int64]


class Matches(Changes):
    """Changes that all have event 0 and no value; most of their columns are made when needed."""

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
        """Make a column that is read for the first time."""
        if name == "event":
            self.event = np.zeros(len(self.order), np.uint8)
        elif name == "value":
            self.value = np.zeros(len(self.order))
        elif name in ("time", "name_starts", "name_lengths"):
            self.time, self.name_starts, self.name_lengths = _named(self._objects, self.order)
        return object.__getattribute__(self, name)

    def events(self) -> dict[int, int]:
        """They are all of one event."""
        return {0: len(self)} if len(self) else {}

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
