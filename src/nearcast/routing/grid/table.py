"""The routing table of all that deals by place and word: who owns a cell, or a word within a cell.

It is the grid^t of PS2Stream (section IV-C) with its H1. Every other router of this kind turns its
plan into one, so a look-up costs the same for all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.hashing import mix64
from nearcast.kernels.program import holds
from nearcast.model.jit import njit
from nearcast.routing import arrays
from nearcast.routing.grid.survey import Numbers, Reals, RegionSurvey, Words
from nearcast.wire.tables import lists, numbers

Pairs = tuple[Numbers, Numbers]


class GridTable(NamedTuple):
    """Who owns what: a cell of a uniform grid, or a word within a cell."""

    bounds: NDArray[np.float64]  # [4] minx, miny, maxx, maxy; what lies outside: border cells
    cells: NDArray[np.int32]  # [side, side] (y, x): >= 0 the shard of all in it; -1 - n: map n
    map_offsets: NDArray[np.int64]  # [maps + 1]
    map_words: NDArray[np.uint64]  # ascending within each map
    map_shards: NDArray[np.int32]  # of each of these words
    worker_offsets: NDArray[np.int64]  # [maps + 1]
    workers: NDArray[np.int32]  # of each map: words it does not know are dealt among them by hash
    words: NDArray[np.uint64]  # ascending; words of the sample
    counts: NDArray[np.int64]  # how often each occurs in objects


_TYPES: dict[str, type[np.generic]] = {
    "bounds": np.float64,
    "cells": np.int32,
    "map_offsets": np.int64,
    "map_words": np.uint64,
    "map_shards": np.int32,
    "worker_offsets": np.int64,
    "workers": np.int32,
    "words": np.uint64,
    "counts": np.int64,
}


def sealed(table: GridTable) -> GridTable:
    """The table with arrays of the types and the form that kernels are compiled for."""
    return GridTable(**arrays.typed(table._asdict(), _TYPES, "a table"))


def pack(table: GridTable) -> bytes:
    """A table as bytes."""
    return arrays.pack(sealed(table)._asdict())


def unpack(data: bytes) -> GridTable:
    """The table of `pack`, or of the file that `arrays.reference` named."""
    found = arrays.read(data)
    return sealed(GridTable(*(found[name] for name in GridTable._fields)))


@njit(lean=True)
def _at(value: float, low: float, high: float, side: int) -> int:
    """The column (or row) of a coordinate. It never falls as `value` grows, so that a position
    inside a box is in a cell that the box touches; halves, so that nothing overflows."""
    if not value > low:
        return 0
    if value >= high:
        return side - 1
    part = (0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low)
    return min(int(part * side), side - 1)


@njit(lean=True)
def column_of(t: GridTable, x: float) -> int:
    """The column of cells that x is in."""
    return _at(x, t.bounds[0], t.bounds[2], t.cells.shape[1])


@njit(lean=True)
def line_of(t: GridTable, y: float) -> int:
    """The row of cells that y is in."""
    return _at(y, t.bounds[1], t.bounds[3], t.cells.shape[0])


@njit(lean=True)
def find_word(words: Words, first: int, stop: int, word: np.uint64) -> int:
    """Where `word` stands in the ascending `words[first:stop]`; -1: nowhere.

    Hashes are spread evenly, so a few guesses by proportion leave little to search by halves.
    """
    low, high = first, stop
    steps = 0
    while low < high:
        middle = (low + high) >> 1
        if steps < 4 and high - low > 16:
            least, most = words[low], words[high - 1]
            if word < least or word > most:
                return -1
            share = np.float64(word - least) / (np.float64(most - least) + 1.0)
            middle = low + min(int(share * (high - low)), high - low - 1)
            steps += 1
        if words[middle] == word:
            return middle
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return -1


@njit(lean=True)
def count_of(t: GridTable, word: np.uint64) -> int:
    """How often the word occurs in objects of the sample."""
    at = find_word(t.words, 0, len(t.words), word)
    return t.counts[at] if at >= 0 else 0


@njit(lean=True)
def rarest(t: GridTable, words: Words, first: int, stop: int) -> int:
    """Where the rarest of `words[first:stop]` stands; equally rare ones: the smaller hash."""
    best = first
    fewest = count_of(t, words[first])
    for i in range(first + 1, stop):
        count = count_of(t, words[i])
        if count < fewest or (count == fewest and words[i] < words[best]):
            best, fewest = i, count
    return best


@njit(lean=True)
def owner_in(t: GridTable, cell: int, word: np.uint64) -> int:
    """The shard of a word where `cell` is what the grid holds: a shard, or -1 - n for map n."""
    if cell >= 0:
        return np.int64(cell)
    n = -1 - np.int64(cell)
    at = find_word(t.map_words, t.map_offsets[n], t.map_offsets[n + 1], word)
    if at >= 0:
        return np.int64(t.map_shards[at])
    first = t.worker_offsets[n]
    among = np.uint64(t.worker_offsets[n + 1] - first)
    return np.int64(t.workers[first + np.int64(mix64(word) % among)])


@njit(lean=True)
def owner(t: GridTable, x: float, y: float, word: np.uint64) -> int:
    """The shard of a word at a position."""
    return owner_in(t, t.cells[line_of(t, y), column_of(t, x)], word)


@njit(lean=True)
def posting_words(
    t: GridTable, words: Words, first: int, stop: int, conjunction: bool
) -> tuple[int, int]:
    """(first, stop) of those of `words[first:stop]` that a subscription is posted under.

    None: it is posted under `UNIVERSAL`.
    """
    if conjunction and stop - first > 1:
        first = rarest(t, words, first, stop)
        stop = first + 1
    return first, stop


@njit(lean=True)
def held_posting_word(
    t: GridTable,
    words: Words,
    first: int,
    stop: int,
    conjunction: bool,
    held: Words,
    start: int,
    end: int,
) -> np.uint64:
    """The smallest posting word that a matching object holds; its `owner` reports.

    An OR is posted under several words. A subscription under one word may also have a copy at the
    shard for another cell, and that copy sees the object by another of the object's words.
    `held[start:end]`: the object's words, ascending. `words[first:stop]`: as in `posting_words`.
    """
    first, stop = posting_words(t, words, first, stop, conjunction)
    if first == stop:
        return UNIVERSAL
    if stop - first == 1:
        return words[first]
    least = ~np.uint64(0)
    for i in range(first, stop):
        if words[i] < least and holds(held, start, end, words[i]):
            least = words[i]
    return least


class Seen(NamedTuple):
    """What one row has met so far: a shard or map counts if it holds the row's number."""

    shards: Numbers
    maps: Numbers


@njit
def _nothing_seen(t: GridTable, shards: int) -> Seen:
    return Seen(np.full(shards, -1), np.full(len(t.map_offsets) - 1, -1))


@njit
def shards_of(t: GridTable) -> int:
    """One more than the highest shard of the table."""
    most = 0
    for line in range(t.cells.shape[0]):
        for column in range(t.cells.shape[1]):
            most = max(most, np.int64(t.cells[line, column]) + 1)
    for i in range(len(t.map_shards)):
        most = max(most, np.int64(t.map_shards[i]) + 1)
    for i in range(len(t.workers)):
        most = max(most, np.int64(t.workers[i]) + 1)
    return most


@njit(lean=True)
def meet(seen: Numbers, row: int, shard: int) -> int:
    """Note a shard; 1 if the row had not met it."""
    if seen[shard] == row:
        return 0
    seen[shard] = row
    return 1


@njit(lean=True)
def _meet_cell(
    t: GridTable, s: RegionSurvey, row: int, first: int, stop: int, cell: int, seen: Seen
) -> int:
    """Note the owners of a subscription's posting words in a cell; how many are new."""
    if cell >= 0:
        return meet(seen.shards, row, cell)
    if seen.maps[-1 - cell] == row:
        return 0
    seen.maps[-1 - cell] = row
    if first == stop:
        return meet(seen.shards, row, owner_in(t, cell, UNIVERSAL))
    new = 0
    for i in range(first, stop):
        new += meet(seen.shards, row, owner_in(t, cell, s.words[i]))
    return new


@njit(lean=True)
def _meet_boxes(t: GridTable, s: RegionSurvey, row: int, first: int, stop: int, seen: Seen) -> int:
    """Note the shards of a subscription; how many there are."""
    found = 0
    for b in range(s.box_offsets[row], s.box_offsets[row + 1]):
        left, right = column_of(t, s.boxes[b, 0]), column_of(t, s.boxes[b, 2])
        for line in range(line_of(t, s.boxes[b, 1]), line_of(t, s.boxes[b, 3]) + 1):
            for column in range(left, right + 1):
                found += _meet_cell(t, s, row, first, stop, t.cells[line, column], seen)
            if found == len(seen.shards):
                return found
    return found


@njit(lean=True)
def write_seen(rows: Numbers, shards: Numbers, top: int, row: int, seen: Numbers) -> int:
    """Write the shards that a row met behind `top`, ascending; where they end."""
    for shard in range(len(seen)):
        if seen[shard] == row:
            rows[top] = row
            shards[top] = shard
            top += 1
    return top


@njit
def with_room(array: Numbers, top: int, more: int) -> Numbers:
    """The array, or a copy twice as large where `more` do not fit behind `top`."""
    if top + more <= len(array):
        return array
    larger = np.empty(2 * len(array) + more, np.int64)
    larger[:top] = array[:top]
    return larger


@njit
def place_rows(t: GridTable, s: RegionSurvey) -> Pairs:
    """(rows, shards): all copies of subscriptions, by row, then shard, each once."""
    n = len(s.conjunction)
    seen = _nothing_seen(t, shards_of(t))
    rows, shards = np.empty(n + 16, np.int64), np.empty(n + 16, np.int64)
    top = 0
    for row in range(n):
        first, stop = s.word_offsets[row], s.word_offsets[row + 1]
        first, stop = posting_words(t, s.words, first, stop, s.conjunction[row])
        found = _meet_boxes(t, s, row, first, stop, seen)
        rows, shards = with_room(rows, top, found), with_room(shards, top, found)
        top = write_seen(rows, shards, top, row, seen.shards)
    return rows[:top], shards[:top]


@njit
def route_rows(t: GridTable, x: Reals, y: Reals, word_offsets: Numbers, words: Words) -> Pairs:
    """(rows, shards): all shards that objects go to, by row, then shard, each once."""
    n = len(x)
    seen = _nothing_seen(t, shards_of(t)).shards
    rows, shards = np.empty(n + 16, np.int64), np.empty(n + 16, np.int64)
    top = 0
    for row in range(n):
        cell = t.cells[line_of(t, y[row]), column_of(t, x[row])]
        found = meet(seen, row, owner_in(t, cell, UNIVERSAL))
        if cell < 0:
            for i in range(word_offsets[row], word_offsets[row + 1]):
                found += meet(seen, row, owner_in(t, cell, words[i]))
        rows, shards = with_room(rows, top, found), with_room(shards, top, found)
        if found == 1:
            rows[top], shards[top] = row, owner_in(t, cell, UNIVERSAL)
            top += 1
        else:
            top = write_seen(rows, shards, top, row, seen)
    return rows[:top], shards[:top]


def route(table: GridTable, objects: pa.RecordBatch) -> Pairs:
    """(rows, shards): where objects, rows of OBJECTS, go, in that order."""
    x, y = numbers(objects["x"]), numbers(objects["y"])
    return route_rows(table, x, y, *lists(objects["words"], np.uint64))
