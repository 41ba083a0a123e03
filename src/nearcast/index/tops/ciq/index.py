"""`ciq`: the baseline that Skype compares itself with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.index.tops import state as st
from nearcast.index.tops.base import TopIndex
from nearcast.index.tops.ciq import lists as ls
from nearcast.index.tops.ciq.cover import CELLS, COVER, boxes
from nearcast.index.tops.ciq.search import search
from nearcast.index.tops.dissemination import Candidates, Dissemination
from nearcast.kernels import postings as pl
from nearcast.kernels.ragged import frozen
from nearcast.kernels.slots import Slots
from nearcast.model.frame import Idf
from nearcast.model.space import Space

__all__ = ["Ciq", "Covered"]

_FARTHEST = 1e150  # coordinates beyond it do not say how large the space is
_ROOM = 1 << 16  # candidates that are given back at once, about

Longs = NDArray[np.int64]


class Covered(Dissemination):
    """Subscriptions in covering cells, with the least similarity that each cell needs."""

    def __init__(self, space: Space, storage: Storage, idf: Idf) -> None:
        super().__init__(space, storage, idf)
        self._objects, self._slots = np.empty(0, np.int32), np.empty(0, np.int32)
        self._attach()

    def _attach(self) -> None:
        get = self.storage.array
        entries = get("ciq.entries", np.int32, ls.ENTRY, 64)
        self.lists = ls.Lists(
            get("ciq.lists", np.uint64, ls.LIST, 128),
            entries,
            entries.view(np.float32),
            get("ciq.states", np.uint8, 1, 64),
            get("ciq.scores", np.float64, 1, 64),
            get("ciq.root", np.float64, 1, 4),
            get("ciq.boxes", np.float64, 6, CELLS),
            get("ciq.meta", np.int64, 1, ls.META),
        )

    def post(self, t: st.Tops, s: Slots, slots: Longs) -> None:
        """Write the entries of slots."""
        self.storage.array("ciq.states", np.uint8, 1, int(slots.max()) + 1)
        self.storage.array("ciq.scores", np.float64, 1, int(slots.max()) + 1)
        self._attach()
        if not self.lists.meta[ls.BUILT]:
            self._lay_out(t.rows[slots, st.X], t.rows[slots, st.Y])
        begin, slots = 0, frozen(slots)
        while True:
            some = min(len(slots), begin + (1 << 16))
            words = int(t.half[slots[begin:some], st.KEYWORDS].sum())
            self._reserve(COVER * words)
            begin = ls.post(t, s, self.lists, self.space.code, slots[:some], begin)
            if begin == len(slots):
                return
            if begin < some:
                self._grow()

    def _lay_out(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """The space: the globe, or in the plane what the first subscriptions lie in."""
        root = np.array([-180.0, -90.0, 180.0, 90.0])
        if self.space is Space.PLANAR:
            for axis, values in enumerate((x, y)):
                inside = values[np.abs(values) < _FARTHEST]
                low, high = (inside.min(), inside.max()) if len(inside) else (0.0, 0.0)
                root[axis] = low
                root[axis + 2] = max(high, np.nextafter(low, np.inf), low + 1e-9)
        self.lists.root[:] = root
        self.lists.boxes[:] = boxes(self.space.code, root)
        self.lists.meta[ls.BUILT] = 1

    def _reserve(self, lists: int) -> None:
        """Room in the table for so many new lists."""
        before = len(self.lists.table)
        need = (int(self.lists.meta[ls.LISTS]) + lists) * 10 // 7 + 2
        if need > before:
            size = max(need, before * 5 // 4)
            pl.stretch(self.storage.array("ciq.lists", np.uint64, ls.LIST, size), before)
            self._attach()

    def _grow(self) -> None:
        """A pool in which the longest list can double."""
        held = self.lists
        need = int(held.meta[ls.POOL]) + 4 * int(held.table[:, ls.HELD].max()) + 1024
        rows = max(need, len(held.entries) * 5 // 4)
        self.storage.array("ciq.entries", np.int32, ls.ENTRY, rows)
        self._attach()

    def candidates(
        self, t: st.Tops, s: Slots, w: st.Weighed, first: int, stop: int, counts: Longs
    ) -> Candidates:
        """The merge for each object; then MinT of those whose threshold was seen to have risen."""
        if not self.lists.meta[ls.BUILT]:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        room = len(self.lists.states) + _ROOM
        if len(self._slots) < room:
            self._objects, self._slots = np.empty(room, np.int32), np.empty(room, np.int32)
        stale = np.empty(len(self.lists.states) + 1, np.int64)
        stale[0] = 0
        parts: list[Candidates] = []
        while first < stop:
            first, found = search(
                t, s, self.lists, w, self.space.code, first, stop, self._objects, self._slots,
                stale, counts,
            )  # fmt: skip
            last = first == stop
            part = self._objects[:found], self._slots[:found]
            parts.append(part if last else (part[0].copy(), part[1].copy()))
        if stale[0]:
            self.post(t, s, np.sort(stale[1 : stale[0] + 1]))
        if len(parts) == 1:
            return parts[0]
        objects, slots = zip(*parts, strict=True)
        return np.concatenate(objects), np.concatenate(slots)


class Ciq(TopIndex):
    """Covering cells with a least similarity each."""

    name = "ciq"
    paper = "Skype 2.2"
    about = "seven covering cells per subscription with a least similarity each; lists are merged"
    dissemination = Covered
