"""What a shard reports of its cells, from the objects of a batch and its subscriptions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.kernels.ragged import frozen, gather
from nearcast.model.jit import njit
from nearcast.routing.arrays import Arrays
from nearcast.routing.base import Sample
from nearcast.routing.grid.cells import any_in, cells_at, only_posting_words, summed
from nearcast.routing.grid.costs import sample_costs
from nearcast.routing.grid.live import Period
from nearcast.routing.grid.survey import RegionSurvey
from nearcast.routing.grid.table import GridTable, column_of, line_of, owner_in, posting_words
from nearcast.routing.ps2stream.adjust.stats import (
    CellObjects,
    CellStats,
    Numbers,
    Reals,
    Words,
    cell_objects,
)
from nearcast.routing.sampling import thinned

SAMPLED = 4096  # objects that a shard reports, at most
# Objects that n_q is counted for, at most. A few per cell say little: some objects hold words that
# very many subscriptions want.
CHECKED = 65_536


def gather_cells(
    table: GridTable, shard: int, period: Period, p: int, stored: bool = False
) -> tuple[CellStats, CellObjects]:
    """One row for each cell where the shard saw an object or owns a subscription.

    n_q of a row is the mean number of subscriptions that an object of the cell is checked against:
    an index reads only those under its words. `stored`: as in Definition 3, all that the cell
    holds. Only the `p` most loaded cells have words and objects: Phase I looks at no other.
    """
    objects, held = period.objects, only_posting_words(table, period.held)
    side = len(table.cells)
    at = cells_at(table, frozen(objects.x), frozen(objects.y))
    came = np.bincount(at, minlength=side * side).astype(np.float64)
    sizes = sizes_of(period.held)
    count, size = (a.ravel() for a in counted(table, shard, held, sizes))
    checks = count.astype(np.float64)
    if not stored:
        checks = _checks(table, objects, held, side * side)
    new, gone = (
        counted(table, shard, s, np.zeros(len(s.conjunction), np.int64))[0].ravel()
        for s in (period.inserted, period.deleted)
    )
    cells = np.flatnonzero((came > 0) | (count > 0) | (new > 0) | (gone > 0))
    loads = came[cells] * (checks[cells] + 1.0)
    chosen = np.sort(cells[np.argsort(-loads, kind="stable")[:p]])
    offsets, words, word_held, word_size = _words(table, shard, held, sizes, cells, chosen)
    stats = CellStats(
        cells,
        came[cells],
        checks[cells],
        new[cells].astype(np.float64),
        gone[cells].astype(np.float64),
        size[cells],
        offsets,
        words,
        word_held,
        word_size,
    )
    return stats, _sample(table, shard, objects, at, chosen)


def _checks(table: GridTable, objects: Sample, held: RegionSurvey, cells: int) -> Reals:
    """The mean of q_l (equation 1 of Tornado) in each cell, by a sample; where it has no object,
    the mean of all."""
    sample, _ = thinned(objects, CHECKED)
    found = sample_costs(table, sample, held, 0).ravel().astype(np.float64)
    seen = np.bincount(cells_at(table, frozen(sample.x), frozen(sample.y)), minlength=cells)
    usual = found.sum() / max(len(sample.x), 1)
    return np.where(seen > 0, found / np.maximum(seen, 1), usual)


def pack_cells(stats: CellStats, sample: CellObjects) -> Arrays:
    """Both as named arrays, which go through a file."""
    of_sample = {f"object_{name}": array for name, array in sample._asdict().items()}
    return {name: np.asarray(array) for name, array in stats._asdict().items()} | of_sample


def unpack_cells(reported: Arrays) -> tuple[CellStats, CellObjects]:
    """What `pack_cells` packed."""
    return (
        CellStats(*(reported[name].copy() for name in CellStats._fields)),
        CellObjects(*(reported[f"object_{name}"].copy() for name in CellObjects._fields)),
    )


def join_samples(samples: list[CellObjects]) -> CellObjects:
    """The objects of all shards; one shard reports each."""
    lengths = np.concatenate([np.diff(s.word_offsets) for s in samples])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    words = np.concatenate([s.words for s in samples])
    return cell_objects(np.concatenate([s.cells for s in samples]), offsets, words)


def sizes_of(survey: RegionSurvey) -> Numbers:
    """About how many bytes each subscription is: a row, its words, its boxes."""
    return 64 + 8 * np.diff(survey.word_offsets) + 32 * np.diff(survey.box_offsets)


def _sample(
    table: GridTable, shard: int, objects: Sample, at: Numbers, chosen: Numbers
) -> CellObjects:
    """Objects in the chosen cells; if there are many, every n-th.

    If several shards see an object, the owner of `UNIVERSAL` reports it.
    """
    rows = np.flatnonzero(np.isin(at, chosen))
    rows = rows[first_owner(table, frozen(at[rows])) == shard]
    rows = rows[:: len(rows) // SAMPLED + 1]
    offsets, words = gather(
        objects.words, objects.word_offsets[rows], np.diff(objects.word_offsets)[rows]
    )
    return cell_objects(at[rows], offsets, words)


@njit
def first_owner(t: GridTable, cells: Numbers) -> Numbers:
    """Of all shards that an object in a cell goes to, the one that it always goes to."""
    out = np.empty(len(cells), np.int64)
    side = t.cells.shape[1]
    for i in range(len(cells)):
        out[i] = owner_in(t, t.cells[cells[i] // side, cells[i] % side], UNIVERSAL)
    return out


def _words(
    table: GridTable, shard: int, s: RegionSurvey, sizes: Numbers, cells: Numbers, chosen: Numbers
) -> tuple[Numbers, Words, Numbers, Numbers]:
    """(offsets, words, subscriptions, bytes) by row of `cells`, for the chosen ones."""
    side = len(table.cells)
    wanted = np.zeros((side, side), bool)
    wanted.ravel()[chosen] = True
    at, words, size = _posted(table, shard, s, sizes, wanted, frozen(summed(wanted)))
    order = np.lexsort((words, at))
    at, words, size = at[order], words[order], size[order]
    new = np.ones(len(at), bool)
    new[1:] = (at[1:] != at[:-1]) | (words[1:] != words[:-1])
    first = np.flatnonzero(new)
    counts = np.bincount(np.searchsorted(cells, at[first]), minlength=len(cells))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    held = np.diff(np.append(first, len(at)))
    total = np.add.reduceat(size, first) if len(first) else size
    return offsets, words[first], held, total


@njit
def counted(t: GridTable, shard: int, s: RegionSurvey, sizes: Numbers) -> tuple[Numbers, Numbers]:
    """[side, side]: subscriptions in each cell as far as `shard` owns it, and their sizes.

    One counts in each cell that it touches, once per box. In a cell that is divided by text, it
    counts where the shard owns one of its posting words.
    """
    side = len(t.cells)
    held = np.zeros((side + 1, side + 1), np.int64)
    size = np.zeros((side + 1, side + 1), np.int64)
    for row in range(len(s.conjunction)):
        for b in range(s.box_offsets[row], s.box_offsets[row + 1]):
            left, right = column_of(t, s.boxes[b, 0]), column_of(t, s.boxes[b, 2])
            low, high = line_of(t, s.boxes[b, 1]), line_of(t, s.boxes[b, 3])
            add_corners(held, left, low, right, high, 1)
            add_corners(size, left, low, right, high, sizes[row])
    spread(held)
    spread(size)
    for line in range(side):
        for column in range(side):
            if t.cells[line, column] != shard:
                held[line, column] = 0
                size[line, column] = 0
    _add_text(t, shard, s, sizes, held, size)
    return held[:side, :side], size[:side, :side]


@njit(lean=True)
def add_corners(out: Numbers, left: int, low: int, right: int, high: int, value: int) -> None:
    """Add to a rectangle of cells, all ends included, what `spread` then brings to each."""
    out[low, left] += value
    out[low, right + 1] -= value
    out[high + 1, left] -= value
    out[high + 1, right + 1] += value


@njit(lean=True)
def spread(out: Numbers) -> None:
    """Sums of corners: the value of each cell."""
    for line in range(out.shape[0]):
        for column in range(1, out.shape[1]):
            out[line, column] += out[line, column - 1]
    for line in range(1, out.shape[0]):
        for column in range(out.shape[1]):
            out[line, column] += out[line - 1, column]


@njit
def _add_text(
    t: GridTable, shard: int, s: RegionSurvey, sizes: Numbers, held: Numbers, size: Numbers
) -> None:
    """Count in the cells that are divided by text: whether a map concerns a row is found once."""
    maps = len(t.map_offsets) - 1
    if maps == 0:
        return
    sums = np.zeros((len(t.cells) + 1, len(t.cells) + 1), np.int64)
    for line in range(len(t.cells)):
        for column in range(len(t.cells)):
            sums[line + 1, column + 1] = t.cells[line, column] < 0
    for line in range(1, len(sums)):
        for column in range(1, len(sums)):
            sums[line, column] += (
                sums[line - 1, column] + sums[line, column - 1] - sums[line - 1, column - 1]
            )
    known, mine = np.full(maps, -1), np.zeros(maps, np.bool_)
    for row in range(len(s.conjunction)):
        for b in range(s.box_offsets[row], s.box_offsets[row + 1]):
            left, right = column_of(t, s.boxes[b, 0]), column_of(t, s.boxes[b, 2])
            low, high = line_of(t, s.boxes[b, 1]), line_of(t, s.boxes[b, 3])
            if not any_in(sums, left, low, right, high):
                continue
            for line in range(low, high + 1):
                for column in range(left, right + 1):
                    n = -1 - np.int64(t.cells[line, column])
                    if n < 0:
                        continue
                    if known[n] != row:
                        known[n] = row
                        mine[n] = _concerns(t, shard, s, row, -1 - n)
                    if mine[n]:
                        held[line, column] += 1
                        size[line, column] += sizes[row]


@njit(lean=True)
def _concerns(t: GridTable, shard: int, s: RegionSurvey, row: int, cell: int) -> bool:
    """Whether the shard owns a posting word of a subscription, where the grid holds `cell`."""
    first, stop = posting_words(
        t, s.words, s.word_offsets[row], s.word_offsets[row + 1], s.conjunction[row]
    )
    if first == stop:
        return bool(owner_in(t, cell, UNIVERSAL) == shard)
    for i in range(first, stop):
        if owner_in(t, cell, s.words[i]) == shard:
            return True
    return False


@njit
def _posted(
    t: GridTable,
    shard: int,
    s: RegionSurvey,
    sizes: Numbers,
    wanted: NDArray[np.bool_],
    sums: Numbers,
) -> tuple[Numbers, Words, Numbers]:
    """(cell, posting word, bytes) of each subscription in the wanted cells that the shard owns."""
    top, room = 0, 0
    cells, words, size = np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64)
    for fill in range(2):
        room, top = top, 0
        if fill:
            cells, words = np.empty(room, np.int64), np.empty(room, np.uint64)
            size = np.empty(room, np.int64)
        for row in range(len(s.conjunction)):
            first, stop = posting_words(
                t, s.words, s.word_offsets[row], s.word_offsets[row + 1], s.conjunction[row]
            )
            for b in range(s.box_offsets[row], s.box_offsets[row + 1]):
                left, right = column_of(t, s.boxes[b, 0]), column_of(t, s.boxes[b, 2])
                low, high = line_of(t, s.boxes[b, 1]), line_of(t, s.boxes[b, 3])
                if not any_in(sums, left, low, right, high):
                    continue
                for line in range(low, high + 1):
                    for column in range(left, right + 1):
                        if not wanted[line, column]:
                            continue
                        for i in range(first, max(stop, first + 1)):
                            word = s.words[i] if first < stop else UNIVERSAL
                            if owner_in(t, t.cells[line, column], word) != shard:
                                continue
                            if fill:
                                cells[top] = line * t.cells.shape[1] + column
                                words[top] = word
                                size[top] = sizes[row]
                            top += 1
    return cells, words, size
