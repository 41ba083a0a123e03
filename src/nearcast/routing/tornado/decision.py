"""What load balancing decides, and the partitions and cells that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearcast.routing.tornado.a_grid import Cells, Partitions
from nearcast.routing.tornado.aggregates import Rectangle

HORIZONTAL = "horizontal shift"  # over a horizontal boundary: rows move
VERTICAL = "vertical shift"  # over a vertical boundary: columns move
CORNER = "corner shift"
SPLIT_MERGE = "split/merge"


@dataclass(frozen=True, slots=True)
class Move:
    """A rectangle of cells that goes from one evaluator to another."""

    source: int
    target: int
    cells: Rectangle


@dataclass(frozen=True, slots=True)
class Decision:
    """One operation of section 4.2, with the numbers that it was chosen by.

    A shift is one move; a split/merge is two: the part X2 that is split off, to the evaluator
    that gets free, and all cells of that one (Z) to the one it is merged with (Y).
    """

    kind: str
    moves: tuple[Move, ...]
    before: tuple[int, ...]  # cost of every evaluator
    after: tuple[int, ...]
    c_r: float  # cost reduction
    c_t: float  # cell transfer overhead
    reason: str


def cells_after(cells: Cells, decision: Decision) -> Cells:
    """The partition of each cell once the moves are made."""
    out = np.array(cells, np.int32)
    for move in decision.moves:
        x1, y1, x2, y2 = move.cells
        out[y1 : y2 + 1, x1 : x2 + 1] = move.target
    return out


def partitions_after(partitions: Partitions, decision: Decision) -> Partitions:
    """The partitions once the moves are made."""
    out = np.array(partitions, np.int32)
    free = {move.source for move in decision.moves} & {move.target for move in decision.moves}
    for move in reversed(decision.moves):  # an evaluator is freed before it is given cells
        if move.source not in free:
            out[move.source] = _without(rectangle(out, move.source), move.cells)
        own = move.target in free
        out[move.target] = move.cells if own else _around(rectangle(out, move.target), move.cells)
    return out


def rectangle(partitions: Partitions, p: int) -> Rectangle:
    """Partition p as plain numbers."""
    x1, y1, x2, y2 = partitions[p].tolist()
    return x1, y1, x2, y2


def _without(whole: Rectangle, band: Rectangle) -> Rectangle:
    """What a band of whole rows or columns at one end of a rectangle leaves."""
    x1, y1, x2, y2 = whole
    if (band[0], band[2]) == (x1, x2):
        return (x1, band[3] + 1, x2, y2) if band[1] == y1 else (x1, y1, x2, band[1] - 1)
    return (band[2] + 1, y1, x2, y2) if band[0] == x1 else (x1, y1, band[0] - 1, y2)


def _around(a: Rectangle, b: Rectangle) -> Rectangle:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])
