"""Keys with how often each was added: is any subscription posted under a word?

Two papers keep such sets at their dispatchers (H2 of PS2Stream, textual summaries of Tornado), to
which new words are added and from which ended ones are taken. With plain sets a word that a new
subscription brings while its removal is under way would be lost; with counts it does not matter
in which order they come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.postings import find
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit

Keys = NDArray[np.uint64]
Table = NDArray[np.uint64]  # [rows, 2]: key, count
_KEY, _COUNT = 0, 1
_LEAST = 64
_ROW_BYTES = 16
_PART = 1 << 16


class Counted:
    """64-bit keys other than 0, in an open-addressing table that is at most half full."""

    def __init__(self) -> None:
        self.table: Table = np.zeros((_LEAST, 2), np.uint64)
        self._rows = 0  # in use, keys without a count among them
        self._held = 0

    def __len__(self) -> int:
        """Keys that were added and not taken out as often."""
        return self._held

    def __contains__(self, key: int) -> bool:
        return bool(holds(self.table, np.uint64(key)))

    @property
    def room(self) -> int:
        """Rows of the table."""
        return len(self.table)

    @property
    def bytes(self) -> int:
        """Memory of the table."""
        return len(self.table) * _ROW_BYTES

    def add(self, keys: Keys) -> Keys:
        """Count each of `keys` once more; those that are new."""
        new = np.empty(len(keys), np.uint64)
        count = 0
        for first in range(0, len(keys), _PART):  # not room for all: many are there already
            some = keys[first : first + _PART]
            self._make_room(len(some))
            rows, more = _add(self.table, frozen(some), new[count:])
            self._rows += rows
            self._held += more
            count += more
        return new[:count].copy()

    def remove(self, keys: Keys) -> Keys:
        """Count each of `keys` once less; those that are gone now."""
        gone, unknown = self._remove(keys)
        if unknown:
            raise ValueError(f"{unknown} queries ended that were never added")
        return gone

    def _remove(self, keys: Keys) -> tuple[Keys, int]:
        """(keys that are gone now, how many were not there)."""
        gone = np.empty(len(keys), np.uint64)
        count, unknown = _remove(self.table, frozen(keys), gone)
        self._held -= count
        return gone[:count].copy(), unknown

    def _make_room(self, more: int) -> None:
        """Keep the table at most half full; keys without a count are left behind."""
        if 2 * (self._rows + more) <= len(self.table):
            return
        size = _LEAST
        while size < 2 * (self._held + more) + _LEAST:
            size *= 2
        larger = np.zeros((size, 2), np.uint64)
        self._rows = _keep(self.table, larger)
        self.table = larger


@njit(lean=True)
def holds(table: Table, key: np.uint64) -> bool:
    """Whether the key has a count."""
    row = find(table, key)
    return row >= 0 and table[row, _COUNT] > np.uint64(0)


@njit(lean=True)
def _add(table: Table, keys: Keys, new: Keys) -> tuple[int, int]:
    """(rows taken, keys that had no count, written to `new`)."""
    rows, count = 0, 0
    for i in range(len(keys)):
        row = find(table, keys[i])
        if row < 0:
            row = -1 - row
            table[row, _KEY] = keys[i]
            rows += 1
        if table[row, _COUNT] == np.uint64(0):
            new[count] = keys[i]
            count += 1
        table[row, _COUNT] += np.uint64(1)
    return rows, count


@njit(lean=True)
def _remove(table: Table, keys: Keys, gone: Keys) -> tuple[int, int]:
    """(keys that have no count now, written to `gone`; removals of keys that had none)."""
    count, unknown = 0, 0
    for i in range(len(keys)):
        row = find(table, keys[i])
        if row < 0 or table[row, _COUNT] == np.uint64(0):
            unknown += 1
            continue
        table[row, _COUNT] -= np.uint64(1)
        if table[row, _COUNT] == np.uint64(0):
            gone[count] = keys[i]
            count += 1
    return count, unknown


@njit(lean=True)
def _keep(old: Table, new: Table) -> int:
    """Put the keys with a count into the empty `new`; how many."""
    kept = 0
    for i in range(len(old)):
        if old[i, _COUNT] > np.uint64(0):
            row = -1 - find(new, old[i, _KEY])
            new[row, _KEY] = old[i, _KEY]
            new[row, _COUNT] = old[i, _COUNT]
            kept += 1
    return kept
