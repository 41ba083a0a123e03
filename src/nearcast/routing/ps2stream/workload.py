"""The workload (O, Q) that is partitioned: objects and queries in cells, words as numbers.

Cuts between nodes fall on lines of a fine grid, so that the grid^t made from them is exact. From
here on a place is a cell of that grid, and a word a *term*: its place in the vocabulary. The first
term is `UNIVERSAL`, which every object holds; a query that any object may match is posted there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.index.posting import UNIVERSAL
from nearcast.routing.base import Sample
from nearcast.routing.grid.survey import Numbers, Reals, RegionSurvey, Words, bounds_of, take
from nearcast.routing.ps2stream.load import Constants, constants_of, load
from nearcast.routing.ps2stream.pairs import drawn, pairs_of, weights_of

Region = tuple[int, int, int, int]  # first column and row, behind the last column and row

# `insertions`: |Q^i| for each object, of PS2Stream's stream (VI-A): 5 objects per update, and every
# other one an insertion. 0: all queries are insertions of the period, Definition 1 to the letter.
# `pairs`: objects count by what is looked at for them (`pairs`). 0: by |O|·|Q|, as in the paper.
PARAMETERS = {
    "discard": 0.0,
    "insertions": 0.1,
    "pairs": 1.0,
    "side": 256.0,
    "queries": 200_000.0,
}


class Rows(NamedTuple):
    """Rows of terms, one behind the other."""

    offsets: Numbers  # [n + 1]
    terms: Numbers

    def of(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """(row, term) of each entry of `rows`, in that order."""
        lengths = np.diff(self.offsets)[rows]
        ends = np.cumsum(lengths)
        at = np.repeat(self.offsets[rows] - (ends - lengths), lengths) + np.arange(lengths.sum())
        return np.repeat(rows, lengths), self.terms[at]

    def take(self, rows: Numbers) -> Rows:
        """Some of the rows, in that order; a row may come several times."""
        lengths = np.diff(self.offsets)[rows]
        return Rows(np.concatenate([[0], np.cumsum(lengths)]), self.of(rows)[1])


@dataclass(frozen=True, eq=False)
class Workload:
    """O and Q, laid out for planning."""

    constants: Constants
    discard: bool  # objects without a registered term are not sent (H2, section IV-C)
    weight: float  # queries that each one here stands for
    bounds: Reals  # [4]
    side: int
    vocabulary: Words  # ascending
    frequency: Numbers  # objects that hold each term
    stands_for: Reals  # of each object: how many of the sample (it may be drawn often, `pairs`)
    column: Numbers  # of each object
    line: Numbers
    held: Rows  # terms of objects
    boxes: Numbers  # [b, 4] first column and row, last column and row
    box_query: Numbers  # [b] whose box it is
    posting_terms: Rows  # terms that queries are posted under
    wanted: Rows  # all terms of queries

    @property
    def queries(self) -> int:
        """|Q|."""
        return len(self.posting_terms.offsets) - 1

    def load(self, objects: Any, queries: Any) -> Any:
        """Definition 1 for so many of the objects and queries here; numbers or arrays."""
        return load(self.constants, objects, queries * self.weight)


def lay_out(
    sample: Sample,
    survey: RegionSurvey,
    parameters: dict[str, float],
    hint: tuple[float, float, float, float] | None = None,
) -> Workload:
    """The workload of a plan; of many queries, as many as `queries` says stand for all."""
    total = len(survey.id_hash)
    limit = max(int(parameters["queries"]), 1)
    if total > limit:
        survey = take(survey, np.sort(np.argsort(survey.id_hash, kind="stable")[:limit]))
    side = max(int(parameters["side"]), 1)
    bounds = bounds_of(sample, survey, hint)
    vocabulary = np.unique(np.concatenate([[UNIVERSAL], sample.words, survey.words]))
    held = _held(sample, vocabulary)
    frequency = np.bincount(held.terms, minlength=len(vocabulary))
    wanted = Rows(survey.word_offsets, np.searchsorted(vocabulary, survey.words))
    columns = cells_of(survey.boxes[:, 0::2], bounds[0], bounds[2], side)
    lines = cells_of(survey.boxes[:, 1::2], bounds[1], bounds[3], side)
    posting_terms = posting_terms_of(wanted, survey.conjunction, frequency)
    box_query = np.repeat(np.arange(len(survey.id_hash)), np.diff(survey.box_offsets))
    n = len(sample.x)
    constants = _for_standing(constants_of(parameters), parameters["insertions"], n, total)
    rows, stands_for = np.arange(n), np.ones(n)
    if parameters["pairs"] and n:
        term = posting_terms.of(box_query)[1]  # of each box, in turn
        box = np.repeat(np.arange(len(box_query)), np.diff(posting_terms.offsets)[box_query])
        found = pairs_of(sample.x, sample.y, held, survey.boxes[box], term)
        read = found / max(float(found.mean()), 1e-9)
        weights = weights_of(constants.c2 + constants.c1 * total * read)
        rows = drawn(weights)
        stands_for = float(weights.mean()) / weights[rows]
        constants = constants._replace(c1=0.0, c2=float(weights.mean()))
        held = held.take(rows)
    return Workload(
        constants,
        bool(parameters["discard"]),
        total / max(len(survey.id_hash), 1),
        bounds,
        side,
        vocabulary,
        frequency,
        stands_for,
        cells_of(sample.x, bounds[0], bounds[2], side)[rows],
        cells_of(sample.y, bounds[1], bounds[3], side)[rows],
        held,
        np.stack([columns[:, 0], lines[:, 0], columns[:, 1], lines[:, 1]], axis=1),
        box_query,
        posting_terms,
        wanted,
    )


def _for_standing(c: Constants, insertions: float, objects: int, queries: int) -> Constants:
    """Constants for queries that stand while the objects come, and of which few are new.

    Objects are checked against all of them, but only so many are inserted and deleted: c3 and c4
    of a query count by that share.
    """
    if not insertions:
        return c
    share = insertions * objects / max(queries, 1)
    return c._replace(c3=c.c3 * share, c4=c.c4 * share)


def cells_of(values: Reals, low: float, high: float, side: int) -> Numbers:
    """Columns (or rows) of coordinates, as `grid.table` counts them."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        part = (0.5 * values - 0.5 * low) / (0.5 * high - 0.5 * low) * side
    inside = (values > low) & (values < high)
    part = np.where(inside, part, 0.0)
    found = np.minimum(part.astype(np.int64), side - 1)
    return np.where((values > low) & (values >= high), side - 1, found)


def _held(sample: Sample, vocabulary: Words) -> Rows:
    """The terms of objects, `UNIVERSAL` first."""
    n = len(sample.x)
    terms = np.searchsorted(vocabulary, sample.words)
    offsets = sample.word_offsets + np.arange(n + 1)
    return Rows(offsets, np.insert(terms, sample.word_offsets[:-1], 0))


def posting_terms_of(wanted: Rows, conjunction: NDArray[np.bool_], frequency: Numbers) -> Rows:
    """The terms that queries are posted under: all, a conjunction's rarest, 0 if there is none.

    As in `grid.table.posting_words`; terms are numbered by hash, so the smaller number wins a tie.
    """
    n = len(conjunction)
    rows, terms = wanted.of(np.arange(n))
    order = np.lexsort((terms, frequency[terms], rows))
    first = np.ones(len(rows), bool)
    first[1:] = rows[order][1:] != rows[order][:-1]
    keep = np.zeros(len(rows), bool)
    keep[order[first]] = True
    keep |= ~conjunction[rows]
    lengths = np.bincount(rows[keep], minlength=n)
    empty = np.flatnonzero(lengths == 0)
    lengths[empty] = 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    out = np.zeros(offsets[-1], np.int64)
    is_word = np.ones(len(out), bool)
    is_word[offsets[empty]] = False
    out[is_word] = terms[keep]
    return Rows(offsets, out)
