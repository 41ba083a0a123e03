"""`igpt`: Skype's index with individual and group pruning."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.index.tops import state as st
from nearcast.index.tops.base import TopIndex
from nearcast.index.tops.dissemination import Candidates, Dissemination
from nearcast.index.tops.igpt import state as ig
from nearcast.index.tops.igpt.lists import tidy
from nearcast.index.tops.igpt.post import change, describe, put_on_lists, weigh
from nearcast.index.tops.igpt.search import disseminate
from nearcast.index.tops.igpt.tree import place, plant, refresh_dirty
from nearcast.kernels import postings as pl
from nearcast.kernels.ragged import frozen, gather
from nearcast.kernels.slots import Slots
from nearcast.model.frame import Idf
from nearcast.model.space import Space

__all__ = ["Igpt", "Pruned"]

_FARTHEST = 1e150  # coordinates beyond it are outside of every root
_FIRST = 64  # subscriptions with which groups by alpha are first made
_ROOM = 1 << 16  # candidates that are given back at once, about

Longs = NDArray[np.int64]


class Pruned(Dissemination):
    """A quadtree with an inverted file per leaf, whose lists are in groups by alpha."""

    groups: ClassVar[int] = ig.GROUPS
    """Of a list; 1: groups and cells are not pruned."""

    def __init__(self, space: Space, storage: Storage, idf: Idf) -> None:
        super().__init__(space, storage, idf)
        self._objects, self._slots = np.empty(0, np.int32), np.empty(0, np.int32)
        self._attach()

    def _attach(self) -> None:
        get = self.storage.array
        subs = get("igpt.subs", np.float64, 8, 64)
        keys = get("igpt.keys", np.float64, 4, 64)
        entries = get("igpt.entries", np.int32, ig.ENTRY, 64)
        nodes = 4 * ig.MOST_DEPTH + 8
        self.held = ig.Arrays(
            get("igpt.words", np.uint64, 3, 128),
            subs,
            subs.view(np.int32),
            keys,
            keys.view(np.int64),
            get("igpt.tree", np.int32, ig.NODE, nodes),
            get("igpt.rects", np.float64, 4, nodes),
            get("igpt.cells", np.float64, 8, nodes),
            get("igpt.lists", np.uint64, ig.LIST, 128),
            entries,
            entries.view(np.float32),
            get("igpt.quantiles", np.float64, 1, max(self.groups - 1, 1))[: self.groups - 1],
            get("igpt.meta", np.int64, 1, ig.META),
        )

    # -- posting -----------------------------------------------------------------------------

    def post(self, t: st.Tops, s: Slots, slots: Longs) -> None:
        """Put new slots into the tree; take over thresholds that fell."""
        self.storage.array("igpt.subs", np.float64, 8, int(slots.max()) + 1)
        self._attach()
        known = self.held.half[slots, ig.CELL] > 0
        new = slots[~known]
        if len(new):
            self._describe(t, new)
            if not self._is_outgrown():
                self._put(t, new)
            if self._is_outgrown():
                self._build(t)
        self._change(t, s, slots[known])

    def _describe(self, t: st.Tops, slots: Longs) -> None:
        """Room for the keywords of new slots, and these."""
        half = t.half[slots].astype(np.int64)
        offsets, words = gather(t.heap, half[:, st.HEAP], half[:, st.KEYWORDS])
        meta, get = self.held.meta, self.storage.array
        meta[ig.KEYS_TOP] = max(meta[ig.KEYS_TOP], 1)  # 0: it has none yet
        get("igpt.keys", np.float64, 4, int(meta[ig.KEYS_TOP]) + len(words) + len(slots))
        self._stretch("igpt.words", 3, int(meta[ig.WORDS]) + len(words))
        self._attach()
        idf = frozen(self.idf.of_words(words))
        describe(self.held, t, frozen(slots), idf, int(np.diff(offsets).max()))

    def _stretch(self, name: str, width: int, rows: int) -> None:
        """Room in a table for so many rows."""
        before = len(self.storage.array(name, np.uint64, width, 128))
        need = rows * 10 // 7 + 2
        if need > before:
            table = self.storage.array(name, np.uint64, width, max(need, before * 5 // 4))
            pl.stretch(table, before)

    def _is_outgrown(self) -> bool:
        """Whether it is time for new quantiles of alpha, or for a larger root."""
        meta = self.held.meta
        grown = meta[ig.POSTED] >= max(2 * meta[ig.BUILT], _FIRST)
        outside = self.held.tree[0, ig.MEMBERS] - meta[ig.OUTSIDE]
        return bool(meta[ig.NODES] == 0 or grown or outside > ig.LEAF)

    def _build(self, t: st.Tops) -> None:
        """Build tree and lists anew, with quantiles of what there is now."""
        for name in ("igpt.lists", "igpt.entries"):
            self.storage.discard(name)
        self._attach()
        held, half = self.held, self.held.half
        held.meta[ig.LISTS] = 0
        held.meta[ig.POOL :] = 0
        slots = np.flatnonzero((half[:, ig.KEYS] > 0) & (half[:, ig.STATE] & ig.DEAD == 0))
        half[:, ig.CELL] = half[:, ig.LISTED] = 0
        alphas = t.rows[slots, st.ALPHA]
        if self.groups > 1:
            held.quantiles[:] = np.quantile(alphas, np.arange(1, self.groups) / self.groups)
        plant(held, self.space.code, *self._root(t.rows[slots, st.X], t.rows[slots, st.Y]))
        self._put(t, slots)
        held = self.held
        held.meta[ig.BUILT] = held.meta[ig.POSTED]
        held.meta[ig.OUTSIDE] = held.tree[0, ig.MEMBERS]

    def _root(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, ...]:
        """The globe, or in the plane what is there and half as much on each side."""
        if self.space is Space.GEOGRAPHIC:
            return -180.0, -90.0, 180.0, 90.0
        low, high = [], []
        for values in (x, y):
            inside = values[np.abs(values) < _FARTHEST]
            least, most = (inside.min(), inside.max()) if len(inside) else (0.0, 0.0)
            more = (most - least) / 2.0 or 1.0
            low.append(float(least - more))
            high.append(float(most + more))
        return *low, *high

    def _put(self, t: st.Tops, slots: Longs) -> None:
        """Put slots into their leaves and onto lists, and all that leaves were split over."""
        begin, slots = 0, frozen(slots)
        weigh(self.held, t, slots)
        moved = np.empty(len(self.held.subs) + 1, np.int64)
        moved[0] = 0
        while begin < len(slots):
            nodes = int(self.held.meta[ig.NODES]) + 4 * ig.MOST_DEPTH + 4
            rows = max(nodes, len(self.held.tree) * 5 // 4)
            if nodes > len(self.held.tree):
                for name, dtype, width in (("tree", np.int32, ig.NODE), ("rects", np.float64, 4)):
                    self.storage.array(f"igpt.{name}", dtype, width, rows)
                self.storage.array("igpt.cells", np.float64, 8, rows)
                self._attach()
            begin = place(self.held, t, self.space.code, slots, begin, moved)
        some = np.setdiff1d(moved[1 : moved[0] + 1], slots)
        self._list(t, frozen(np.concatenate([slots, some])))

    def _list(self, t: st.Tops, slots: Longs) -> None:
        begin = 0
        words = int(t.half[slots, st.KEYWORDS].sum())
        self._stretch("igpt.lists", ig.LIST, int(self.held.meta[ig.LISTS]) + words)
        self._attach()
        dirty = np.zeros(words + 1, np.int64)
        while True:
            begin = put_on_lists(self.held, t, slots, begin, dirty)
            if begin == len(slots):
                break
            longest = int((self.held.lists[:, ig.HELD] & np.uint64(0xFFFFFFFF)).max())
            need = int(self.held.meta[ig.POOL]) + 4 * longest + 1024
            rows = max(need, len(self.held.entries) * 5 // 4)
            self.storage.array("igpt.entries", np.int32, ig.ENTRY, rows)
            self._attach()
        tidy(self.held, dirty[1 : dirty[0] + 1])

    def _change(self, t: st.Tops, s: Slots, slots: Longs) -> None:
        """Take over thresholds that changed, and who ended."""
        if len(slots) == 0:
            return
        words = int(t.half[slots, st.KEYWORDS].sum())
        dirty = np.zeros(words + 1, np.int64)
        change(self.held, t, s, frozen(slots), dirty)
        tidy(self.held, dirty[1 : dirty[0] + 1])
        refresh_dirty(self.held, t)

    # -- searching ---------------------------------------------------------------------------

    def candidates(
        self, t: st.Tops, s: Slots, w: st.Weighed, first: int, stop: int, counts: Longs
    ) -> Candidates:
        """Algorithm 1 for each object; then thresholds that were seen to have risen."""
        held = self.held
        room = len(held.subs) + _ROOM
        if len(self._slots) < room:
            self._objects, self._slots = np.empty(room, np.int32), np.empty(room, np.int32)
        stale = np.empty(len(held.subs) + 1, np.int64)
        stale[0] = 0
        parts: list[Candidates] = []
        while first < stop:
            first, found = disseminate(
                held, t, s, w, self.space.code, self.groups > 1, first, stop, self._objects,
                self._slots, stale, counts,
            )  # fmt: skip
            last = first == stop
            part = self._objects[:found], self._slots[:found]
            parts.append(part if last else (part[0].copy(), part[1].copy()))
        self._change(t, s, stale[1 : stale[0] + 1])
        if len(parts) == 1:
            return parts[0]
        objects, slots = zip(*parts, strict=True)
        return np.concatenate(objects), np.concatenate(slots)


class Igpt(TopIndex):
    """Skype's index: individual and group pruning."""

    name = "igpt"
    paper = "Skype 5"
    about = "a quadtree, per leaf lists in groups by alpha; prefixes, groups and cells are pruned"
    dissemination = Pruned
