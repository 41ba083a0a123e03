"""Query distribution statistics on a quadtree J (SSTD, section 4.1.1, figure 5).

Of each cell: with which probability a query of each type arrives there, how many objects arrive
per time unit, and how query keywords are distributed. Cells are filled in when they are looked at:
a quarter takes its queries from those of its parent, so no level is the last but the finest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.sstd.cells import WHOLE, Cell, box_units, touches
from nearcast.routing.sstd.queries import CRQ, SKQ, SRQ, TYPES, Numbers, Queries, Reals, Words

_MOST_WORDS = 16  # Pr(|q.φ| = l) is kept up to this l; a longer query counts as one of this length
_KEPT = 8  # cells whose keyword distributions are kept: those of a node and its children


class QueryStatistics:
    """J, from historical queries; the number of objects is that of whoever looks a cell up."""

    def __init__(self, bounds: Reals, queries: Queries) -> None:
        self.bounds = bounds
        self._queries = queries
        self._units = box_units(bounds, queries.boxes)
        n = len(queries.type)
        self._owner = np.repeat(np.arange(n), np.diff(queries.box_offsets))
        self._single = bool((np.diff(queries.box_offsets) <= 1).all())
        self._boxes: dict[Cell, Numbers] = {WHOLE: np.arange(len(self._units))}
        self._probabilities: dict[Cell, Reals] = {}
        self._keywords: dict[Cell, Reals] = {}
        self.vocabulary: Words = np.unique(queries.words)
        self._ids = np.searchsorted(self.vocabulary, queries.words)
        self._word_weight = _word_weights(queries)
        self._totals = np.bincount(queries.type, queries.weight, TYPES)
        self.share = self._totals / max(float(self._totals.sum()), 1e-300)  # Pr(srq) … Pr(ctq)
        lengths = np.stack([self._lengths(t) for t in (SRQ, SKQ)])
        longest = np.flatnonzero(lengths.any(axis=0))
        self.lengths = lengths[:, : longest[-1] + 1 if len(longest) else 1]
        self.duration = self._mean_duration()

    def probabilities(self, cell: Cell) -> Reals:
        """[6]: p_srq … p_ctq, the part of the queries of each type that overlaps the cell."""
        if cell not in self._probabilities:
            rows = self._rows(cell)
            found = np.bincount(self._queries.type[rows], self._queries.weight[rows], TYPES)
            self._probabilities[cell] = found / np.maximum(self._totals, 1e-300)
        return self._probabilities[cell]

    def continuous(self, cell: Cell) -> float:
        """|P.Q|: how many continuous queries overlap the cell."""
        return float((self.probabilities(cell) * self._totals)[CRQ:].sum())

    def keywords(self, cell: Cell) -> Reals:
        """[2, words of `vocabulary`]: M_srq and M_skq, from the queries that overlap the cell."""
        if cell not in self._keywords:
            if len(self._keywords) == _KEPT:
                del self._keywords[next(iter(self._keywords))]
            self._keywords[cell] = self._counted(cell)
        return self._keywords[cell]

    def _counted(self, cell: Cell) -> Reals:
        """The words of the queries that overlap the cell, as probabilities."""
        rows = self._rows(cell)
        out = np.zeros((2, len(self.vocabulary)))
        offsets = self._queries.word_offsets
        for i, type_ in enumerate((SRQ, SKQ)):
            mine = rows[self._queries.type[rows] == type_]
            counts = np.diff(offsets)[mine]
            at = np.repeat(offsets[mine] - np.cumsum(counts) + counts, counts) + np.arange(
                counts.sum()
            )
            found = np.bincount(self._ids[at], self._word_weight[at], len(self.vocabulary))
            if found.sum() > 0:
                out[i] = found / found.sum()
        return out

    def _rows(self, cell: Cell) -> Numbers:
        """The queries that overlap the cell, each once."""
        owners = self._owner[self._overlapping(cell)]
        return owners if self._single else np.unique(owners)

    def _overlapping(self, cell: Cell) -> Numbers:
        """The boxes that overlap the cell."""
        if cell not in self._boxes:
            parent = Cell(cell.level - 1, cell.column // 2, cell.line // 2)
            boxes = self._overlapping(parent)
            self._boxes[cell] = boxes[touches(cell, self._units[boxes])]
        return self._boxes[cell]

    def _lengths(self, type_: int) -> Reals:
        """Pr(|q.φ| = l) for l = 0, 1, …, `_MOST_WORDS`."""
        mine = self._queries.type == type_
        counts = np.diff(self._queries.word_offsets)
        counts = np.where(self._queries.conjunction, counts, np.minimum(counts, 1))[mine]
        out = np.zeros(_MOST_WORDS + 1)
        if len(counts):
            lengths = np.minimum(counts, _MOST_WORDS)
            out += np.bincount(lengths, self._queries.weight[mine], _MOST_WORDS + 1)
            out /= max(out.sum(), 1e-300)
        return out

    def _mean_duration(self) -> float:
        """Σ_T Pr(q.τ = T)·T over continuous queries."""
        mine = self._queries.type >= CRQ
        weight = self._queries.weight[mine]
        total = float(weight.sum())
        return float((weight * self._queries.duration[mine]).sum() / total) if total > 0 else 0.0


def _word_weights(queries: Queries) -> Reals:
    """What each word of a query counts: 1 in a conjunction; 1/n in the cover of an OR, of which
    one word is enough."""
    counts = np.diff(queries.word_offsets)
    each = np.where(queries.conjunction, 1.0, 1.0 / np.maximum(counts, 1)) * queries.weight
    weights: NDArray[np.float64] = np.repeat(each, counts)
    return weights
