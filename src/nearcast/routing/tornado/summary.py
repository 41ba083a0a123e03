"""What an evaluator reports to the routing layer about its load (Tornado 4.3): a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.routing.tornado.a_grid import Partitions
from nearcast.routing.tornado.aggregates import Aggregates, Rectangle, band_of
from nearcast.routing.tornado.decision import rectangle
from nearcast.routing.tornado.neighbours import corner_band, used
from nearcast.routing.tornado.split import NONE, ROWS, best_split


@dataclass(frozen=True, slots=True)
class Piece:
    """Cells of an evaluator that could go to another."""

    cells: Rectangle
    cost: int
    queries: int
    target: int = -1  # -1: whoever is free


@dataclass(frozen=True, slots=True)
class Summary:
    """Load of an evaluator, its best split, and what each corner shift would move."""

    cost: int
    queries: int
    split: Piece | None  # X2; what is left is X1
    corners: tuple[Piece, ...]  # at most eight

    @property
    def numbers(self) -> int:
        """How many numbers are sent, where the centralised way sends two for every cell."""
        return 2 + (4 if self.split else 0) + 3 * len(self.corners)


def summarise(partitions: Partitions, evaluator: int, a: Aggregates) -> Summary:
    """The summary that an evaluator makes of its aggregates."""
    mine = rectangle(partitions, evaluator)
    corners = []
    for other in used(partitions) if mine[0] <= mine[2] else []:
        band = corner_band(mine, rectangle(partitions, other))
        if band is not None:
            corners.append(Piece(band, *band_of(a, mine, band), other))
    cost, queries = a.overall.tolist()
    return Summary(cost, queries, _split_off(mine, a), tuple(corners))


def _split_off(mine: Rectangle, a: Aggregates) -> Piece | None:
    """X2 of the best split: of both parts the one with fewer queries, as it is to move."""
    x1, y1, x2, y2 = mine
    axis, at, _ = best_split(a.columns[x1 : x2 + 1], a.rows[y1 : y2 + 1], a.overall[0])
    if axis == NONE:
        return None
    if axis == ROWS:
        parts = (x1, y1, x2, y1 + at - 1), (x1, y1 + at, x2, y2)
    else:
        parts = (x1, y1, x1 + at - 1, y2), (x1 + at, y1, x2, y2)
    first, second = (Piece(part, *band_of(a, mine, part)) for part in parts)
    return first if first.queries < second.queries else second
