"""The objects of the window by rank: when each leaves, and what its id is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.index.tops import state as st
from nearcast.kernels.ragged import gather
from nearcast.wire.tables import ObjectColumns, numbers, strings

__all__ = ["WindowLog"]

_NOT_SEALED = -1  # `objects.base.NOT_SEALED`, which is a layer above
RANK, TIME, NAME = 0, 1, 2
_SPARE = 1 << 12  # objects that have left until room is made of them, at least

Longs = NDArray[np.int64]


class WindowLog:
    """Ranks, times and ids of the window's objects, in object order; a queue in flat arrays.

    It is no part of what is saved: where it is missing it is made anew of the kept objects.
    """

    def __init__(self, storage: Storage, meta: Longs) -> None:
        self.storage = storage
        self.meta = meta
        self.attach()

    def attach(self) -> None:
        """Map the arrays at their present lengths."""
        self.rows = self.storage.array("log", np.int64, 3, 64)
        self.names = self.storage.array("log.names", np.uint8, 1, 64)

    @property
    def top(self) -> int:
        """Where the next object goes."""
        return int(self.meta[st.TOP])

    @property
    def published(self) -> int:
        """One more than the rank of the newest object; 0: there is none."""
        return int(self.rows[self.top - 1, RANK]) + 1 if self.top else 0

    def append(self, ranks: Longs, time: Longs, offsets: Longs, ids: NDArray[np.uint8]) -> None:
        """Add objects, whose ids stand one after the other."""
        n, top = len(ranks), self.top
        if n == 0:
            return
        end = self._end()
        self.rows = self.storage.array("log", np.int64, 3, top + n + 1)
        self.names = self.storage.array("log.names", np.uint8, 1, end + len(ids))
        rows = self.rows[top : top + n]
        rows[:, RANK], rows[:, TIME], rows[:, NAME] = ranks, time, end + offsets[:-1]
        self.rows[top + n, NAME] = end + offsets[-1]
        self.names[end : end + len(ids)] = ids
        known = self.rows[top - 1 : top + n, RANK] if top else rows[:, RANK]
        plain = bool(np.all(np.diff(known) == 1))
        self.meta[st.PLAIN] = plain and (top == 0 or bool(self.meta[st.PLAIN]))
        self.meta[st.TOP] = top + n

    def _end(self) -> int:
        return int(self.rows[self.top, NAME]) if self.top else 0

    def append_batch(self, o: ObjectColumns, ranks: Longs) -> None:
        """Add the objects of a batch; `ranks` are in their order."""
        first = o.id_offsets[:-1][o.order]
        offsets, ids = gather(o.id_bytes, first, o.id_offsets[1:][o.order] - first)
        self.append(ranks, o.time[o.order], offsets, ids)

    def rebuild(self, past: Any, before: int) -> None:
        """Make it anew of the objects that are kept and have lower ranks than `before`."""
        self.meta[st.FIRST] = self.meta[st.TOP] = 0
        self.meta[st.READY] = 1
        if past is None:
            return
        sealed = [s.number for s in past.slices() if s.sealed]
        parts = [past.snapshot(number) for number in (*sealed, _NOT_SEALED)]
        table = pa.Table.from_batches([p.select(["rank", "time", "id"]) for p in parts])
        if table.num_rows == 0:
            return
        whole = table.combine_chunks().to_batches()[0]
        ranks = numbers(whole["rank"])
        order = np.argsort(ranks)
        order = order[ranks[order] < before]
        offsets, data = strings(whole["id"])
        new, ids = gather(data, offsets[:-1][order], np.diff(offsets)[order])
        self.append(ranks[order], numbers(whole["time"])[order], new, ids)

    def let_go(self, first_rank: int, after: int) -> None:
        """Objects with lower ranks, or, from the oldest on, with times up to `after`, have left."""
        first, top = int(self.meta[st.FIRST]), self.top
        rows = self.rows[first:top]
        gone = int(np.searchsorted(rows[:, RANK], first_rank))
        gone = max(gone, _first_true(rows[:, TIME] > after))
        first += gone
        self.meta[st.FIRST] = first
        if first > _SPARE and first > top - first:
            self._move_down(first, top)

    def _move_down(self, first: int, top: int) -> None:
        start, end = int(self.rows[first, NAME]), self._end()
        self.names[: end - start] = self.names[start:end].copy()
        kept = self.rows[first : top + 1].copy()
        kept[:, NAME] -= start
        self.rows[: len(kept)] = kept
        self.meta[st.FIRST], self.meta[st.TOP] = 0, top - first

    def taken(self) -> tuple[NDArray[Any], ...]:
        """What `put_back` needs after the storage was cleared."""
        first, top = int(self.meta[st.FIRST]), self.top
        if top == first:
            return (
                np.empty(0, np.int64),
                np.empty(0, np.int64),
                np.zeros(1, np.int64),
                self.names[:0],
            )
        rows = self.rows[first : top + 1].copy()
        start = int(rows[0, NAME])
        names = self.names[start : int(rows[-1, NAME])].copy()
        return rows[:-1, RANK], rows[:-1, TIME], rows[:, NAME] - start, names

    def put_back(self, kept: tuple[NDArray[Any], ...]) -> None:
        """Put in place what was `taken`."""
        self.meta[st.READY] = 1
        self.append(*kept)

    def places(self, low: NDArray[np.int32]) -> Longs:
        """Places of objects of the window by the low bits of their ranks."""
        newest = int(self.rows[self.top - 1, RANK]) if self.top else 0
        ranks = newest - ((newest - low.astype(np.int64)) & 0xFFFFFFFF)
        if self.meta[st.PLAIN]:
            return np.asarray(self.top - 1 - (newest - ranks))
        return np.searchsorted(self.rows[: self.top, RANK], ranks).astype(np.int64)

    def named(self, starts: Longs) -> tuple[Longs, Longs]:
        """(ranks, times) of the objects whose ids begin there. One without id has no name."""
        at = np.searchsorted(self.rows[: self.top, NAME], starts, side="right") - 1
        return self.rows[at, RANK], self.rows[at, TIME]

    def names_of(self, places: Longs) -> tuple[Longs, Longs]:
        """(where the ids of places begin, their lengths)."""
        starts = self.rows[places, NAME]
        return starts, self.rows[places + 1, NAME] - starts


def _first_true(values: NDArray[np.bool_]) -> int:
    found = int(np.argmax(values)) if len(values) else 0
    return found if found < len(values) and values[found] else len(values)
