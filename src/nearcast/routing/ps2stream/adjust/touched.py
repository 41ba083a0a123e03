"""How many copies of updates a table sends to each shard, to foresee what a migration adds.

A subscription is sent once to each shard that owns any of the cells it touches (Definition 1 counts
requests *sent*). So a shard that gives a cell away mostly keeps the subscriptions in it, and the
shard that takes the cell gets all of them anew. Rows of cells cannot show this: in them a
subscription counts in each of its cells.

An Euler histogram can. It counts who touches a cell, both of two neighbours, and all four around a
corner; over the cells of a shard, cells - neighbours + corners is 1 for each subscription whose
cells there are connected (the Euler characteristic), and more where they are in several parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.model.jit import njit
from nearcast.routing.grid.survey import RegionSurvey
from nearcast.routing.grid.table import GridTable, column_of, line_of, owner_in, posting_words
from nearcast.routing.ps2stream.adjust.gather import add_corners, spread
from nearcast.routing.ps2stream.adjust.stats import CellStats, Costs, Numbers, Reals

CELLS, ACROSS, ALONG, CORNERS = range(4)


class Touched(NamedTuple):
    """The updates of a period, all shards together, and what a copy of one costs."""

    counts: Numbers  # [4, side, side]: of cells; of those and the next; and the next line; of four
    each: float


def touched_of(
    table: GridTable, stats: list[CellStats], counts: Numbers, costs: Costs
) -> Touched | None:
    """Such that all copies by the present table cost what all rows do; None: nothing came."""
    total = sum(float((costs.c3 * s.inserted + costs.c4 * s.deleted).sum()) for s in stats)
    copies = sum(copies_at(table, s, counts, shard) for shard, s in enumerate(stats))
    return Touched(counts, total / copies) if copies > 0.0 else None


def copies_at(table: GridTable, stats: CellStats, counts: Numbers, shard: int) -> float:
    """Updates that a table sends to a shard. Of a cell divided by text it gets the share that its
    row gives."""
    share = (table.cells == shard).astype(np.float64)
    rows = np.flatnonzero(table.cells.ravel()[stats.cells] < 0)
    cells = stats.cells[rows]
    seen = np.maximum(counts[CELLS].ravel()[cells], 1)
    share.ravel()[cells] = np.minimum((stats.inserted + stats.deleted)[rows] / seen, 1.0)
    across, along = _both(share, axis=1), _both(share, axis=0)
    found = (share * counts[CELLS]).sum() + (_both(along, axis=1) * counts[CORNERS]).sum()
    return float(found - (across * counts[ACROSS]).sum() - (along * counts[ALONG]).sum())


def _both(share: Reals, axis: int) -> Reals:
    """The smaller share of each cell and the next along an axis; the last has none."""
    out = np.zeros_like(share)
    most = len(share) - 1
    a, b = (np.take(share, np.arange(first, first + most), axis) for first in (0, 1))
    out[: most if axis == 0 else None, : most if axis == 1 else None] = np.minimum(a, b)
    return out


@njit
def touched_by(t: GridTable, shard: int, s: RegionSurvey) -> NDArray[np.int64]:
    """Counts of `Touched`, of the subscriptions that only this shard reports: it owns their first
    word in their first cell."""
    side = len(t.cells)
    out = np.zeros((4, side + 1, side + 1), np.int64)
    for row in range(len(s.conjunction)):
        first, stop = posting_words(
            t, s.words, s.word_offsets[row], s.word_offsets[row + 1], s.conjunction[row]
        )
        word = s.words[first] if first < stop else UNIVERSAL
        for b in range(s.box_offsets[row], s.box_offsets[row + 1]):
            left, right = column_of(t, s.boxes[b, 0]), column_of(t, s.boxes[b, 2])
            low, high = line_of(t, s.boxes[b, 1]), line_of(t, s.boxes[b, 3])
            if owner_in(t, t.cells[low, left], word) != shard:
                continue
            add_corners(out[CELLS], left, low, right, high, 1)
            if left < right:
                add_corners(out[ACROSS], left, low, right - 1, high, 1)
            if low < high:
                add_corners(out[ALONG], left, low, right, high - 1, 1)
            if left < right and low < high:
                add_corners(out[CORNERS], left, low, right - 1, high - 1, 1)
    for kind in range(4):
        spread(out[kind])
    return out[:, :side, :side].copy()
