"""The list of slices, in the storage, so that another process finds what this one left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearcast.index.arena import Storage
from nearcast.objects.base import SliceInfo
from nearcast.wire.tables import NEVER

__all__ = ["LATE", "OPEN", "SEALED", "Directory", "Entry"]

OPEN, LATE, SEALED = 0, 1, 2
"""States of a slice: of the newest times; of intervals that were sealed before; for good."""

_NAME = "slices"
_WIDTH = 9  # numbers of an entry


@dataclass(frozen=True, slots=True)
class Entry:
    """One slice of the list."""

    number: int
    state: int
    objects: int
    first_time: int
    last_time: int
    first_rank: int
    last_rank: int
    bytes: int
    has_fields: int

    def info(self) -> SliceInfo:
        """What users of the store learn."""
        return SliceInfo(
            self.number,
            self.state == SEALED,
            self.objects,
            self.first_time,
            self.last_time,
            self.first_rank,
            self.last_rank,
        )


class Directory:
    """Slices in the order in which they were made.

    The first row of its array holds how many slices there are, the next free number, and the
    time up to which intervals are sealed.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        head = storage.array(_NAME, np.int64, _WIDTH, 1)[0].tolist()
        used = head[3] == 1
        self.next_number: int = head[1]
        self.border: int = head[2] if used else NEVER
        rows = storage.array(_NAME, np.int64, _WIDTH, head[0] + 1)[1 : head[0] + 1]
        self.entries: list[Entry] = [Entry(*row) for row in rows.tolist()]

    def save(self) -> None:
        """Write what changed."""
        n = len(self.entries)
        array = self._storage.array(_NAME, np.int64, _WIDTH, n + 1)
        array[0, :4] = n, self.next_number, self.border, 1
        for i, e in enumerate(self.entries):
            array[i + 1] = (
                e.number, e.state, e.objects, e.first_time, e.last_time, e.first_rank,
                e.last_rank, e.bytes, e.has_fields,
            )  # fmt: skip

    def of(self, state: int) -> list[Entry]:
        """The slices of a state."""
        return [e for e in self.entries if e.state == state]
