"""Searches over all slices; a store searches one slice at a time, for many queries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.objects.base import (
    Centres,
    Found,
    Queries,
    Regions,
    Wishes,
    WordCounts,
)
from nearcast.objects.coded import RANK, TIME
from nearcast.objects.directory import Entry
from nearcast.objects.results import Best, found_by, latest, most_held, new_best
from nearcast.objects.sliced import ROW_BITS, Sliced
from nearcast.objects.slices import Slice
from nearcast.wire.tables import NEVER

__all__ = ["NOTHING_COUNTED", "Counted", "CountsAll", "Rows", "Searching", "frozen_columns"]

Rows = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Queries, and a row that each found."""

Counted = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]
"""Queries, a word of each, and how many objects hold it."""

_Order = tuple[list[Entry], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

_NONE = np.empty((0, 1), np.int64)
_ONLY = np.zeros(1, np.int64)
_Columns = TypeVar("_Columns", bound=NamedTuple)
_NO_WISHES = Wishes(
    np.zeros(1, np.int64), np.empty(0, np.uint64), np.empty(0), np.empty(0), np.empty(0)
)


class Searching(Sliced):
    """A store that searches slice by slice."""

    _ordered_of: Sequence[Entry] = ()
    _ordered: _Order = [], _NONE, _NONE, _NONE

    # -- what a subclass says: `which` are the queries that may find something in the slice -----

    @abstractmethod
    def _within(
        self, s: Slice, queries: Queries, regions: Regions, which: NDArray[np.int64]
    ) -> tuple[Rows, int]:
        """Rows that match, and how many were examined."""

    @abstractmethod
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
        """Offer rows to results, by score if there are wishes, else by distance.

        `handle` is that of row 0. How many rows were examined.
        """

    # -- searches ------------------------------------------------------------------------------

    def _visits(
        self, q: Queries, floor: NDArray[np.int64] | None = None
    ) -> Iterator[tuple[Entry, Slice, NDArray[np.int64]]]:
        """Slices, the latest first, with the queries that may find something there.

        `floor` may rise meanwhile: nothing below that time is wanted.
        """
        entries, first, last, rank = self._latest_first()
        after = np.minimum(q.after, q.early) if len(q.from_rank) else q.after
        may = (after < last) & (q.until >= first) & (q.before_rank > rank)
        for i in np.flatnonzero(may.any(1)).tolist():
            entry = entries[i]
            if len(after) == 1:  # an ask by itself: its slices cost more than what they hold
                which = _ONLY if floor is None or floor[0] <= entry.last_time else _ONLY[:0]
            else:
                wanted = may[i] if floor is None else may[i] & (floor <= entry.last_time)
                which = np.flatnonzero(wanted)
            if len(which):
                yield entry, self._slice(entry.number), which

    def _latest_first(self) -> _Order:
        """All slices, the latest first, and their first and last times and first ranks."""
        entries = self._directory.entries
        if entries != self._ordered_of:
            ordered = sorted(entries, key=lambda e: -e.last_time)
            limits = [(e.first_time, e.last_time, e.first_rank) for e in ordered]
            self._ordered = ordered, *np.array(limits, np.int64).reshape(-1, 3).T[:, :, None]
            self._ordered_of = list(entries)
        return self._ordered

    def within(self, queries: Queries, regions: Regions, limit: NDArray[np.int64]) -> Found:
        queries, regions = frozen_columns(queries), frozen_columns(regions)
        floor = np.full(len(limit), NEVER)
        parts: list[tuple[NDArray[np.int64], ...]] = []
        examined = 0
        for entry, s, which in self._visits(queries, floor):
            (owner, rows), n = self._within(s, queries, regions, which)
            examined += n
            if len(rows) == 0:
                continue
            when = s.columns.when[rows]
            time, rank = when[:, TIME], when[:, RANK]
            if limit.any():
                order = latest(owner, time, rank, limit)
                owner, rows, time, rank = (c[order] for c in (owner, rows, time, rank))
                _raise_floor(floor, owner, time, limit)
            parts.append((owner, rows | entry.number << ROW_BITS, time, rank))
        owner, handles, time, rank = (np.concatenate(c) for c in zip(*parts, _NO_PART, strict=True))
        order = latest(owner, time, rank, limit)
        offsets = np.searchsorted(owner[order], np.arange(len(limit) + 1))
        values = np.zeros(len(order))
        return Found(offsets, handles[order], time[order], rank[order], values, examined)

    def nearest(self, queries: Queries, centres: Centres) -> Found:
        return self._k_best(queries, centres, _NO_WISHES, 1)

    def best(self, queries: Queries, centres: Centres, wishes: Wishes) -> Found:
        return self._k_best(queries, centres, wishes, -1)

    def _k_best(self, queries: Queries, centres: Centres, wishes: Wishes, sign: int) -> Found:
        queries, centres, wishes = (
            frozen_columns(queries),
            frozen_columns(centres),
            frozen_columns(wishes),
        )
        best = new_best(centres.k, len(self))
        examined = 0
        for entry, s, which in self._visits(queries):
            handle = entry.number << ROW_BITS
            examined += self._offer(s, handle, queries, centres, wishes, which, best)
        return found_by(best, sign, examined)


class CountsAll(Searching):
    """A store that counts all words of each slice, and adds up."""

    @abstractmethod
    def _count(
        self, s: Slice, queries: Queries, regions: Regions, which: NDArray[np.int64]
    ) -> tuple[Counted, int]:
        """The words of matching rows with their counts, and how many rows were examined."""

    def word_counts(
        self,
        queries: Queries,
        regions: Regions,
        k: NDArray[np.int64],
        exclude_offsets: NDArray[np.int64],
        exclude: NDArray[np.uint64],
        in_order: bool = True,
    ) -> WordCounts:
        del in_order  # they always are
        queries, regions = frozen_columns(queries), frozen_columns(regions)
        parts: list[Counted] = [NOTHING_COUNTED]
        examined = 0
        for _, s, which in self._visits(queries):
            counted, n = self._count(s, queries, regions, which)
            examined += n
            parts.append(counted)
        owner, words, counts = (np.concatenate(c) for c in zip(*parts, strict=True))
        kept = ~excluded(owner, words, exclude_offsets, exclude)
        return most_held(len(k), owner[kept], words[kept], counts[kept], k, examined)


_NO_PART = tuple(np.empty(0, np.int64) for _ in range(4))
NOTHING_COUNTED: Counted = (
    np.empty(0, np.int64),
    np.empty(0, np.uint64),
    np.empty(0, np.int64),
)


def frozen_columns(columns: _Columns) -> _Columns:
    """Columns in the one form that kernels are compiled for."""
    return columns._replace(**{n: frozen(a) for n, a in columns._asdict().items()})


def _raise_floor(
    floor: NDArray[np.int64],
    owner: NDArray[np.int64],
    time: NDArray[np.int64],
    limit: NDArray[np.int64],
) -> None:
    """An owner that has as many results as it wants takes nothing older than the oldest."""
    starts = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    sizes = np.diff(np.append(starts, len(owner)))
    full = sizes == limit[owner[starts]]
    who = owner[starts[full]]
    floor[who] = np.maximum(floor[who], time[starts[full]])


def excluded(
    owner: NDArray[np.int64],
    words: NDArray[np.uint64],
    exclude_offsets: NDArray[np.int64],
    exclude: NDArray[np.uint64],
) -> NDArray[np.bool_]:
    """Which words their queries do not want."""
    out = np.zeros(len(words), np.bool_)
    for q in np.flatnonzero(np.diff(exclude_offsets)):
        own = np.flatnonzero(owner == q)
        out[own] = np.isin(words[own], exclude[exclude_offsets[q] : exclude_offsets[q + 1]])
    return out
