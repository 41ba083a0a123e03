"""`fast`: a spatial pyramid with an adaptive keyword index a cell, Tornado's index (3.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index import aki, aki_match, aki_post
from nearcast.index import lazy as lz
from nearcast.index.aki_hang import make_tasks
from nearcast.index.compiled import Finder
from nearcast.index.lazy_index import LazyIndex
from nearcast.index.posting import POSTED, WORDS
from nearcast.kernels import postings as pl
from nearcast.kernels import shared_lists as ls
from nearcast.wire.tables import ObjectColumns

_GROWN = 4  # times as many subscriptions choose the side of cells anew
_ROOM = 4096  # for what leaves: keys and entries of late lists
_CLEANED = 8  # nodes a control
_TASKS = 1024


class Fast(LazyIndex):
    """Words first, space where words do not tell subscriptions apart (`index.aki`).

    Everything begins at the top of the pyramid. A keyword with a short list in a cell is
    infrequent; subscriptions of frequent keywords only hang in a trie, and where too many end at
    one node, some go down a level. Cleaning takes ended ones off, node by node.
    """

    name = "fast"
    paper = "Tornado 3.2 (FAST)"
    about = "a pyramid of cells, short lists for rare keywords and tries for frequent ones in each"

    def _attach(self) -> None:
        super()._attach()
        get = self.storage.array
        pool = get("entries", np.int32, pl.ENTRY, 256)
        lists = ls.Lists(
            get("heads", np.int32, 4, 64),
            pool,
            pool.view(np.float32),
            get("heads.meta", np.int64, 1, ls.META)[: ls.META],
        )
        self._fast = aki.Fast(
            get("nodes", np.uint64, 4, 128), lists, get("fast", np.int64, 1, aki.META)[: aki.META]
        )

    # -- subscriptions -----------------------------------------------------------------------

    def _post(self) -> None:
        meta = self._fast.meta
        if len(self) >= max(_GROWN * int(meta[aki.CHOSEN]), 1):
            self._choose()
        elif meta[aki.CLEANED] > self._fast.lists.meta[ls.ENTRIES] + _ROOM:
            self._begin_anew(int(meta[aki.SIDE]))
        new = len(self) - int(self._post_meta[POSTED])
        tasks = make_tasks(_TASKS)
        while short := aki_post.post(self._index, self._fast, self._lazy, tasks):
            if short == aki_post.SHORT_TASKS:
                tasks = make_tasks(2 * len(tasks.rows), tasks)
            else:
                self._grow(short)
        self._clean(_CLEANED * max(new, 1))

    def _choose(self) -> None:
        """Choose the side of cells; if it is another one, all is posted anew."""
        side = aki_post.side_for(self._index)
        if self._fast.meta[aki.CHOSEN] and side != self._fast.meta[aki.SIDE]:
            self._begin_anew(side)
        self._fast.meta[aki.CHOSEN] = len(self)
        self._fast.meta[aki.SIDE] = side

    def _begin_anew(self, side: int) -> None:
        """Post all that has not left again: keywords are as frequent as they are now."""
        kept = self._fast.meta[[aki.CHOSEN, aki.MATCHED, aki.LATEST]].copy()
        for name in ("nodes", "heads", "entries", "words"):
            self.storage.discard(name)
        self._fast.meta[:] = 0
        self._fast.lists.meta[:] = 0
        self._fast.meta[[aki.CHOSEN, aki.MATCHED, aki.LATEST]] = kept
        self._fast.meta[aki.SIDE] = side
        self._post_meta[[WORDS, POSTED]] = 0
        self._attach()

    def _grow(self, short: int) -> None:
        """Make what is short larger."""
        lists = self._fast.lists
        if short == aki_post.SHORT_WORDS:
            self._grow_lists()
        elif short == aki_post.SHORT_NODES:
            old = self._fast.nodes.copy()
            size = 2 * len(old) if self._is_full() else len(old)
            self._fast.meta[aki.NODES] = aki.rehash(old, self.storage.table("nodes", 4, size))
            if self._fast.meta[aki.PENDING]:  # they stand in another order now
                self._fast.meta[aki.PENDING] = size
        elif short == aki_post.SHORT_HEADS:
            self.storage.array("heads", np.int32, 4, len(lists.heads) * 5 // 4 + 64)
        else:
            longest = int(lists.meta[ls.LONGEST])
            need = int(lists.meta[ls.TOP]) + 2 * longest + 2 * aki_post.MARGIN
            self.storage.array("entries", np.int32, pl.ENTRY, max(len(lists.pool) * 5 // 4, need))
        self._attach()

    def _is_full(self) -> bool:
        """Whether nodes that mean something fill more than half of the table."""
        nodes = self._fast.nodes
        means = (nodes[:, aki.INFO] & (aki.FREQUENT | np.uint64(0xFFFFFFFF))) | nodes[:, aki.MORE]
        return bool(2 * np.count_nonzero(means) > len(nodes))

    def _clean(self, nodes: int) -> None:
        """Clean some nodes, until all were since the last end; there is room for what leaves."""
        meta, noted = self._fast.meta, self._lazy.meta[lz.NOTED]
        if meta[aki.NOTED] != noted:
            meta[aki.PENDING] = len(self._fast.nodes)
            meta[aki.NOTED] = noted
        nodes = min(nodes, int(meta[aki.PENDING]))
        if nodes and meta[aki.MATCHED]:
            self._make_room(_ROOM)
            aki_match.clean(self._index, self._fast, self._lazy, nodes)
            self._fast.meta[aki.PENDING] -= nodes

    # -- objects -----------------------------------------------------------------------------

    def _finder(self, objects: ObjectColumns, visit: NDArray[np.int64]) -> Finder:
        search = aki_match.make_search(int(np.diff(objects.word_offsets).max(initial=0)))
        return self._retried(
            search,
            lambda q, out, counts: aki_match.match_fast(
                self._index, self._fast, self._lazy, q, self.space.code, objects, out, counts
            ),
        )
