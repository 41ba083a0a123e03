"""Words of objects from before subscriptions that look back (`last`), in an arena.

The store of kept objects begins with the first subscription, and it is not known by then what later
ones look back to. So what such a subscription found in the past goes with it, until it is over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.kernels.ragged import gather

__all__ = ["Early"]

_START, _LENGTH, _LATEST = range(3)
_LISTS, _TOP = range(2)  # places in the meta: lists, and entries of all of them

Longs = NDArray[np.int64]
Words = NDArray[np.uint64]
Entries = tuple[Longs, Longs, Words]
"""List by list, where they begin and end, and of each entry its time and its word."""


class Early:
    """Lists of (time, word), one entry for each word of an object; list 0 is empty."""

    def __init__(self, storage: Storage) -> None:
        """What the storage holds (a new one holds nothing)."""
        self._storage = storage
        self.load()

    def load(self) -> None:
        """Attach what the storage holds."""
        self._meta = self._storage.array("early.meta", np.int64, 1, 2)
        self._meta[_LISTS] = max(int(self._meta[_LISTS]), 1)
        self._attach(0, 0)

    def _attach(self, lists: int, entries: int) -> None:
        get = self._storage.array
        self._lists = get("early.lists", np.int64, 3, int(self._meta[_LISTS]) + lists)
        self._times = get("early.times", np.int64, 1, int(self._meta[_TOP]) + entries)
        self._words = get("early.words", np.uint64, 1, int(self._meta[_TOP]) + entries)

    def __len__(self) -> int:
        """How many entries there are."""
        return int(self._meta[_TOP])

    def add(self, offsets: Longs, times: Longs, words: Words) -> Longs:
        """Take in lists; their numbers, 0 for those without entries."""
        lengths = np.diff(offsets)
        own = np.flatnonzero(lengths)
        numbers = np.zeros(len(lengths), np.int64)
        if not len(own):
            return numbers
        self._attach(len(own), len(times))
        first, top = int(self._meta[_LISTS]), len(self)
        rows = self._lists[first : first + len(own)]
        rows[:, _START] = offsets[:-1][own] + top
        rows[:, _LENGTH] = lengths[own]
        rows[:, _LATEST] = np.maximum.reduceat(times, offsets[:-1][own])
        self._times[top : top + len(times)] = times
        self._words[top : top + len(words)] = words
        self._meta[:] = first + len(own), top + len(times)
        numbers[own] = first + np.arange(len(own))
        return numbers

    def matter(self, numbers: Longs, after: Longs) -> NDArray[np.bool_]:
        """Which lists have entries later than `after`."""
        return np.asarray((numbers > 0) & (self._lists[numbers, _LATEST] > after))

    def entries(self, numbers: Longs, after: Longs, until: Longs | None = None) -> Entries:
        """The entries of lists with after < time (<= until)."""
        places = self._lists[numbers, _START], self._lists[numbers, _LENGTH]
        owner = np.repeat(np.arange(len(numbers)), places[1])
        times, words = gather(self._times, *places)[1], gather(self._words, *places)[1]
        kept = times > after[owner]
        if until is not None:
            kept &= times <= until[owner]
        offsets = np.searchsorted(owner[kept], np.arange(len(numbers) + 1))
        return offsets, times[kept], words[kept]

    def words(self) -> Words:
        """All words of all lists."""
        return self._words[: len(self)]
