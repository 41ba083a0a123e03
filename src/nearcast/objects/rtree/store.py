"""`rtree`: the store of SSTD, one R-tree per interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.objects.base import Centres, Queries, Regions, Wishes
from nearcast.objects.coded import Coded
from nearcast.objects.results import Best
from nearcast.objects.rtree.index import PARTS, RTreeIndex, attach_index, build_index
from nearcast.objects.rtree.order import str_order
from nearcast.objects.rtree.search import count_words, offer_rows, rows_within
from nearcast.objects.searching import NOTHING_COUNTED, Counted, CountsAll, Rows
from nearcast.objects.slices import Slice

__all__ = ["RTree"]


class RTree(CountsAll):
    """An R-tree with inverted lists and a table of term counts in each node."""

    name = "rtree"
    paper = "SSTD section 6.1"
    about = "an R-tree with inverted lists and a table of term counts in each node"
    parts = PARTS

    def _order(self, rows: Coded) -> NDArray[np.int64]:
        return str_order(rows.at)

    def _index(self, rows: Coded, sealed: bool) -> Sequence[NDArray[Any]]:
        del sealed
        return build_index(rows)

    def _attach_index(self, arrays: list[Any]) -> RTreeIndex:
        return attach_index(arrays)

    def _within(
        self, s: Slice, queries: Queries, regions: Regions, which: NDArray[np.int64]
    ) -> tuple[Rows, int]:
        owner, rows, examined = rows_within(
            self.space.code, s.columns, s.index, queries, regions, which, s.limits
        )
        return (owner, rows), examined

    def _offer(
        self,
        s: Slice,
        handle: int,
        queries: Queries,
        centres: Centres,
        wishes: Wishes,
        which: NDArray[np.int64],
        best: Best,
    ) -> int:
        return offer_rows(
            self.space.code, s.columns, s.index, handle, queries, centres, wishes, which,
            s.limits, best,
        )  # fmt: skip

    def _count(
        self, s: Slice, queries: Queries, regions: Regions, which: NDArray[np.int64]
    ) -> tuple[Counted, int]:
        parts: list[Counted] = [NOTHING_COUNTED]
        counts = np.zeros(len(s.columns.words), np.int64)
        examined = 0
        for i in which.tolist():
            codes, n = count_words(
                self.space.code, s.columns, s.index, queries, regions, i, s.limits, counts
            )
            examined += n
            parts.append((np.full(len(codes), i), s.columns.words[codes], counts[codes]))
            counts[codes] = 0
        owner, words, held = (np.concatenate(c) for c in zip(*parts, strict=True))
        return (owner, words, held), examined
