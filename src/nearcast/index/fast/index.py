"""`fast`: a spatial pyramid with an adaptive keyword index per cell, Tornado's index (3.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.fast import match, post
from nearcast.index.fast import nodes as nd
from nearcast.index.fast.cell import make_tasks
from nearcast.index.posting import POSTED, WORDS
from nearcast.index.regions import lazy_deletion as lz
from nearcast.index.regions.index import Finder
from nearcast.index.regions.lazy_index import LazyIndex
from nearcast.kernels import blocks
from nearcast.kernels import postings as pl
from nearcast.kernels import shared_lists as ls
from nearcast.wire.tables import ObjectColumns

_GROWN = 4  # times as many subscriptions choose the side of cells anew
_ROOM = 4096  # for subscriptions that leave: keys and entries of late lists
_CLEANED = 8  # nodes per control
_TASKS = 1024


class Fast(LazyIndex):
    """Words first, space where words do not separate subscriptions (`index.fast.nodes`).

    Everything begins at the top of the pyramid. A keyword with a short list in a cell is
    infrequent; subscriptions of frequent keywords only are in a trie, and where too many end at
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
        self._fast = nd.Fast(
            get("nodes", np.uint64, 4, 128), lists, get("fast", np.int64, 1, nd.META)[: nd.META]
        )

    # -- subscriptions -----------------------------------------------------------------------

    def _post(self) -> None:
        meta = self._fast.meta
        if len(self) >= max(_GROWN * int(meta[nd.CHOSEN]), 1):
            self._choose()
        elif meta[nd.CLEANED] > self._fast.lists.meta[ls.ENTRIES] + _ROOM:
            self._begin_anew(int(meta[nd.SIDE]))
        new = len(self) - int(self._post_meta[POSTED])
        tasks = make_tasks(_TASKS)
        while short := post.post(self._index, self._fast, self._lazy, tasks):
            if short == post.SHORT_TASKS:
                tasks = make_tasks(2 * len(tasks.rows), tasks)
            else:
                self._grow(short)
        self._clean(_CLEANED * max(new, 1))

    def _choose(self) -> None:
        """Choose the side of cells; if it is another one, all is posted anew."""
        side = post.side_for(self._index)
        if self._fast.meta[nd.CHOSEN] and side != self._fast.meta[nd.SIDE]:
            self._begin_anew(side)
        self._fast.meta[nd.CHOSEN] = len(self)
        self._fast.meta[nd.SIDE] = side

    def _begin_anew(self, side: int) -> None:
        """Post anew all that has not left, by how frequent keywords are now."""
        kept = self._fast.meta[[nd.CHOSEN, nd.MATCHED, nd.LATEST]].copy()
        for name in ("nodes", "heads", "entries", "words"):
            self.storage.discard(name)
        self._fast.meta[:] = 0
        self._fast.lists.meta[:] = 0
        self._fast.meta[[nd.CHOSEN, nd.MATCHED, nd.LATEST]] = kept
        self._fast.meta[nd.SIDE] = side
        self._post_meta[[WORDS, POSTED]] = 0
        self._attach()

    def _grow(self, short: int) -> None:
        """Make what is short larger."""
        lists = self._fast.lists
        if short == post.SHORT_WORDS:
            self._grow_lists()
        elif short == post.SHORT_NODES:
            old = self._fast.nodes.copy()
            size = 2 * len(old) if self._is_full() else len(old)
            self._fast.meta[nd.NODES] = nd.rehash(old, self.storage.table("nodes", 4, size))
            if self._fast.meta[nd.PENDING]:  # they stand in another order now
                self._fast.meta[nd.PENDING] = size
        elif short == post.SHORT_HEADS:
            self.storage.array("heads", np.int32, 4, len(lists.heads) * 5 // 4 + 64)
        else:
            longest = int(lists.meta[ls.LONGEST])
            need = int(lists.meta[blocks.TOP]) + 2 * longest + 2 * post.MARGIN
            self.storage.array("entries", np.int32, pl.ENTRY, max(len(lists.pool) * 5 // 4, need))
        self._attach()

    def _is_full(self) -> bool:
        """Whether nodes that mean something fill more than half of the table."""
        nodes = self._fast.nodes
        means = (nodes[:, nd.INFO] & (nd.FREQUENT | np.uint64(0xFFFFFFFF))) | nodes[:, nd.MORE]
        return bool(2 * np.count_nonzero(means) > len(nodes))

    def _clean(self, nodes: int) -> None:
        """Clean some nodes, until all were since the last end; there is room for what leaves."""
        meta, noted = self._fast.meta, self._lazy.meta[lz.NOTED]
        if meta[nd.NOTED] != noted:
            meta[nd.PENDING] = len(self._fast.nodes)
            meta[nd.NOTED] = noted
        nodes = min(nodes, int(meta[nd.PENDING]))
        if nodes and meta[nd.MATCHED]:
            self._make_room(_ROOM)
            match.clean(self._index, self._fast, self._lazy, nodes)
            self._fast.meta[nd.PENDING] -= nodes

    # -- objects -----------------------------------------------------------------------------

    def _finder(self, objects: ObjectColumns, visit: NDArray[np.int64]) -> Finder:
        del visit  # objects are matched in the order of the batch
        search = match.make_search(int(np.diff(objects.word_offsets).max(initial=0)))
        return self._retried(
            search,
            lambda q, out, counts: match.match_fast(
                self._index, self._fast, self._lazy, q, self.space.code, objects, out, counts
            ),
        )
