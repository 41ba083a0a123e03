"""`reach`: nearcast's own index for the objects of highest score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.index.tops.base import TopIndex
from nearcast.index.tops.dissemination import Candidates, Dissemination
from nearcast.index.tops.reach import lists as ls
from nearcast.index.tops.reach.post import post, tidy
from nearcast.index.tops.reach.search import search
from nearcast.index.tops.state import HEAP, KEYWORDS, Tops, Weighed
from nearcast.kernels import blocks
from nearcast.kernels import postings as pl
from nearcast.kernels.ragged import frozen, gather
from nearcast.kernels.slots import Slots
from nearcast.model.frame import Idf
from nearcast.model.space import Space

__all__ = ["Reach", "ReachLists"]


class ReachLists(Dissemination):
    """Lists by word, of how far each subscription reaches (`index.tops.reach.lists`)."""

    def __init__(self, space: Space, storage: Storage, idf: Idf) -> None:
        super().__init__(space, storage, idf)
        self._objects, self._slots = np.empty(1 << 16, np.int32), np.empty(1 << 16, np.int32)
        self._attach()

    def _attach(self) -> None:
        get = self.storage.array
        few = get("reach.few", np.int32, ls.WIDTH, 64)
        leaves = get("reach.leaves", np.int32, ls.WIDTH * ls.LEAF, 16)
        leaf_slots = leaves.reshape(-1, ls.WIDTH, ls.LEAF)
        self.lists = ls.Lists(
            get("reach.words", np.uint64, ls.ROW, 128),
            few.view(np.float32),
            few,
            leaf_slots.view(np.float32),
            leaf_slots,
            get("reach.summaries", np.float32, ls.SUMMARY, len(leaves)),
            get("reach.links", np.int32, 2, len(leaves)),
            get("reach.meta", np.int64, 1, ls.META),
        )

    def post(self, t: Tops, s: Slots, slots: NDArray[np.int64]) -> None:
        del s
        half = t.half[slots].astype(np.int64)
        offsets, words = gather(t.heap, half[:, HEAP], half[:, KEYWORDS])
        idf = frozen(self.idf.of_words(words))
        most = int(half[:, KEYWORDS].max())
        begin, slots = 0, frozen(slots)
        while begin < len(slots):
            some = min(len(slots), begin + (1 << 16))
            self._reserve(int(offsets[some] - offsets[begin]))
            grown = np.zeros(int(offsets[some] - offsets[begin]) + 2, np.int64)
            begin = post(
                t,
                self.lists,
                self.space.code,
                idf[offsets[begin] :],
                slots[:some],
                begin,
                most,
                grown,
            )
            if begin < some:
                self._grow()
            tidy(self.lists, np.unique(grown[1 : grown[0] + 1]))

    def _reserve(self, keywords: int) -> None:
        """Room in the table for so many new words."""
        before = len(self.lists.table)
        need = (int(self.lists.meta[ls.WORDS]) + keywords) * 10 // 7 + 1
        if need > before:
            table = self.storage.array("reach.words", np.uint64, ls.ROW, max(need, before * 5 // 4))
            pl.stretch(table, before)
            self._attach()

    def _grow(self) -> None:
        """Pools in which every list can double."""
        held = self.lists
        longest = int(((held.table[:, ls.COUNT]) & np.uint64(0xFFFFFFFF)).max()) // ls.LEAF + 1
        leaves = int(held.meta[ls.LEAVES + blocks.TOP]) + 4 * longest + 16
        few = int(held.meta[ls.FEW + blocks.TOP])
        leaves = max(leaves, len(held.leaves) * 9 // 8)
        self.storage.array("reach.leaves", np.int32, ls.WIDTH * ls.LEAF, leaves)
        self.storage.array("reach.few", np.int32, ls.WIDTH, few * 9 // 8 + 1024)
        self._attach()

    def candidates(
        self,
        t: Tops,
        s: Slots,
        w: Weighed,
        first: int,
        stop: int,
        counts: NDArray[np.int64],
    ) -> Candidates:
        parts: list[Candidates] = []
        while first < stop:
            first, found = search(
                t,
                s,
                self.lists,
                w,
                self.space.code,
                first,
                stop,
                self._objects,
                self._slots,
                counts,
            )
            parts.append((self._objects[:found], self._slots[:found]))
            if first < stop:
                size = 2 * len(self._slots) if found == 0 else len(self._slots)
                self._objects, self._slots = np.empty(size, np.int32), np.empty(size, np.int32)
        if len(parts) == 1:
            return parts[0]
        objects, slots = zip(*parts, strict=True)
        return np.concatenate(objects), np.concatenate(slots)


class Reach(TopIndex):
    """Subscriptions on lists by word, with how far they reach."""

    name = "reach"
    paper = "-"
    about = "one list per word of how far subscriptions reach at their floors, in leaves of 32"
    dissemination = ReachLists
