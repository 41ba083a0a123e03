"""`curve`: nearcast's own store, and the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.objects.base import Centres, Queries, Regions, Wishes, WordCounts
from nearcast.objects.coded import Coded
from nearcast.objects.curve.counting import Scratch, Tally, added_up, settle, tally
from nearcast.objects.curve.index import PARTS, CurveIndex, attach_index, build_index
from nearcast.objects.curve.many import Counts, add_up, count_each, joined_counts
from nearcast.objects.curve.nearest import offer_rows
from nearcast.objects.curve.order import hilbert_order
from nearcast.objects.curve.weighted import Weighted, offer_weighted, weighted_rows
from nearcast.objects.curve.within import rows_within
from nearcast.objects.results import Best, most_held
from nearcast.objects.searching import NOTHING_COUNTED, Counted, Rows, Searching, frozen_columns
from nearcast.objects.sliced import ROW_BITS
from nearcast.objects.slices import Slice

__all__ = ["MANY", "Curve"]

_Counts = tuple[NDArray[np.uint64], NDArray[np.int64], int]
_NAMED = 512  # words of each slice that are added up first; more if many are wanted
_FEW, _MANY = 1 << 10, 1 << 14  # rows from which on tables are worth a call for each query
_BATCH = 16  # queries, from which on such calls would add up
_ROWS_A_QUERY = 4096  # by score, from which on it is worth weighing all rows of a slice
MANY = 32  # queries by score, at least, for that
_LASTING = 1 << 17  # objects of a slice that will not be merged soon
_MOST_OPEN = 4096  # words that are settled; if more are open, all rows are counted


class Curve(Searching):
    """Rows along a Hilbert curve: a tree of boxes, one list per word, a table of words per node."""

    name = "curve"
    paper = "nearcast"
    about = "rows along a Hilbert curve, one list per word, tables of frequent words"
    parts = PARTS
    _weights: Mapping[int, Weighted] = {}
    _room = Scratch(np.empty(0, np.uint32), np.empty(0, np.uint32))

    def _order(self, rows: Coded) -> NDArray[np.int64]:
        return hilbert_order(rows.at)

    def _index(self, rows: Coded, sealed: bool) -> Sequence[NDArray[Any]]:
        return build_index(rows, with_tables=sealed or rows.size >= _LASTING)

    def _attach_index(self, arrays: list[Any]) -> CurveIndex:
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
        if len(wishes.alpha) and len(which) >= max(MANY, len(s.columns.at) // _ROWS_A_QUERY):
            return offer_weighted(
                self.space.code, s.columns, s.index, self._weighed(s, handle), handle, queries,
                centres, wishes, which, s.limits, best,
            )  # fmt: skip
        return offer_rows(
            self.space.code, s.columns, s.index, handle, queries, centres, wishes, which,
            s.limits, best,
        )  # fmt: skip

    def _weighed(self, s: Slice, handle: int) -> Weighted:
        """What the rows of a slice weigh; kept as long as the slice is attached."""
        known = {h: w for h, w in self._weights.items() if h >> ROW_BITS in self._attached}
        if handle not in known:
            known[handle] = weighted_rows(self.space.code, s.columns, s.index)
        self._weights = known
        return known[handle]

    def word_counts(
        self,
        queries: Queries,
        regions: Regions,
        k: NDArray[np.int64],
        exclude_offsets: NDArray[np.int64],
        exclude: NDArray[np.uint64],
        in_order: bool = True,
    ) -> WordCounts:
        queries, regions = frozen_columns(queries), frozen_columns(regions)
        k, unwanted = frozen(k), (frozen(exclude_offsets), frozen(exclude))
        large = np.zeros(len(k), np.bool_)
        visited: list[tuple[Slice, NDArray[np.int64]]] = []
        found: list[Counts] = []
        examined = 0
        # Large slices first: what is better counted by tables is known before rows are counted.
        for _, s, which in sorted(self._visits(queries), key=lambda visit: -visit[0].objects):
            visited.append((s, which))
            counted, n = count_each(
                self.space.code, s.columns, s.index, queries, regions, which, s.limits,
                self._scratch(s), large, self._least(s, len(k)),
            )  # fmt: skip
            found.append(counted)
            examined += n
        parts: list[Counted] = [NOTHING_COUNTED]
        if found:
            offsets, words, counts = add_up(*joined_counts(found), k, *unwanted)
            if not in_order and not large.any():
                return WordCounts(offsets, words, counts, examined)
            owner = np.repeat(np.arange(len(k)), np.diff(offsets))
            some = ~large[owner] if large.any() else slice(None)
            parts.append((owner[some], words[some], counts[some]))
        for i in np.flatnonzero(large).tolist():
            own = [s for s, which in visited if (which == i).any()]
            mine = exclude[exclude_offsets[i] : exclude_offsets[i + 1]]
            words, counts, n = self._most_held(queries, regions, i, own, int(k[i]), mine)
            parts.append((np.full(len(words), i), words, counts))
            examined += n
        owner, words, counts = (np.concatenate(c) for c in zip(*parts, strict=True))
        return most_held(len(k), owner, words, counts, k, examined)

    def _least(self, s: Slice, queries: int) -> int:
        """Rows of a slice inside a region from which on the query is counted by tables."""
        if queries < _BATCH:
            return _FEW
        return max(_FEW, _MANY * len(s.columns.at) // len(self))  # as many as that in all slices

    def _most_held(
        self,
        queries: Queries,
        regions: Regions,
        i: int,
        slices: list[Slice],
        k: int,
        unwanted: NDArray[np.uint64],
    ) -> _Counts:
        """Exact counts of words of one query, with all of the k highest, and rows examined."""

        def tallies(room: int) -> list[Tally]:
            return [
                tally(
                    self.space.code, s.columns, s.index, queries, regions, i, s.limits, room,
                    self._scratch(s),
                )
                for s in slices
            ]  # fmt: skip

        found = tallies(max(_NAMED, 4 * min(k, 1 << 40)) if k else 0)
        examined = sum(t.examined for t in found)
        words, sums = _added_up(slices, found, unwanted, named=True)
        rest = sum(t.rest + t.named for t in found)
        if rest == 0:
            return words, sums, examined
        if len(words) >= k:
            least = int(np.partition(sums, -k)[-k])
            still_open = words[sums + rest >= least]
            if least > rest and len(still_open) <= _MOST_OPEN:
                exact = np.zeros(len(still_open), np.int64)
                for s, t in zip(slices, found, strict=True):
                    exact += settle(s.columns, s.index, t, still_open, self._scratch(s))
                return still_open, exact, examined
        if any(t.rest for t in found):
            found = tallies(0)
            examined += sum(t.examined for t in found)
        return *_added_up(slices, found, unwanted, named=False), examined

    def _scratch(self, s: Slice) -> Scratch:
        """Arrays for the dictionary of a slice, of which the largest is kept."""
        size = len(s.columns.words)
        if len(self._room.counts) < size:
            self._room = Scratch(np.zeros(size, np.uint32), np.empty(size, np.uint32))
        return self._room


def _added_up(
    slices: list[Slice], found: list[Tally], unwanted: NDArray[np.uint64], named: bool
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The words of tallies and their sums; `named`: only counts above the tally's bound."""
    words, counts = [unwanted[:0]], [np.empty(0, np.uint32)]
    for s, t in zip(slices, found, strict=True):
        kept = t.counts > (t.named if named else 0)
        words.append(s.columns.words[t.codes[kept]])
        counts.append(t.counts[kept])
    distinct, sums = added_up(np.concatenate(words), np.concatenate(counts))
    wanted = ~np.isin(distinct, unwanted)
    return frozen(distinct[wanted]), sums[wanted]
