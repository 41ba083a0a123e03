"""Lists of different lengths as two flat arrays (offsets, values), and the few steps on them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


def offsets_of(counts: Longs) -> Longs:
    """Offsets int64[n+1] of rows that hold ``counts`` int64[n] values each."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def rows_of(offsets: Longs) -> Longs:
    """The row of each value: int64[offsets[-1]]."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))


def positions_of(offsets: Longs) -> Longs:
    """The place of each value within its row, from 0: int64[offsets[-1]]."""
    starts = np.repeat(offsets[:-1], np.diff(offsets))
    return np.arange(int(offsets[-1]), dtype=np.int64) - starts


def expand(starts: Longs, counts: Longs) -> Longs:
    """The indexes in the ranges ``starts[i] : starts[i] + counts[i]``, one after another."""
    offsets = offsets_of(counts)
    return np.repeat(starts - offsets[:-1], counts) + np.arange(int(offsets[-1]), dtype=np.int64)


def make_distinct(values: Ids, offsets: Longs, redraw: Callable[[Longs], Ids]) -> None:
    """Draw again, in place, until no row holds a value twice.

    ``redraw`` gets the indexes to be replaced and returns fresh values for them. A repeat is
    replaced where it stands, so the order within a row stays the order of drawing: unlike sorted
    rows, it says nothing about how frequent a word is.
    """
    # The indexes still in question: whole rows, shrinking to those that held a repeat.
    indexes = np.arange(len(values), dtype=np.int64)
    positions = positions_of(offsets).astype(np.int16)
    rows = rows_of(offsets)
    while len(indexes):
        repeated = _repeats(values[indexes], positions)
        if not repeated.any():
            return
        values[indexes[repeated]] = redraw(indexes[repeated])
        again = np.zeros(len(offsets) - 1, dtype=np.bool_)
        again[rows[repeated]] = True
        keep = again[rows]
        indexes, positions, rows = indexes[keep], positions[keep], rows[keep]


def _repeats(values: Ids, positions: npt.NDArray[np.int16]) -> Flags:
    """Which values occurred earlier in their row. Rows are short, so every distance is tried."""
    repeated = np.zeros(len(values), dtype=np.bool_)
    for distance in range(1, int(positions.max(initial=0)) + 1):
        same = values[distance:] == values[:-distance]
        repeated[distance:] |= same & (positions[distance:] >= distance)
    return repeated
