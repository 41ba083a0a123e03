"""What load balancing decides, and the partitions and cells that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearcast.routing.tornado.a_grid import Cells, Partitions, cells_of, partitions_of
from nearcast.routing.tornado.aggregates import Rectangle

HORIZONTAL = "horizontal shift"  # over a horizontal boundary: rows move
VERTICAL = "vertical shift"  # over a vertical boundary: columns move
CORNER = "corner shift"
SPLIT_MERGE = "split/merge"
SPLIT = "split"  # ours, as all below: into a rectangle more, see `chain`
HAND_OVER = "hand-over"  # of a whole rectangle
NEW_PARTITIONS = "new partitions"  # see `repartition`
NEW_BOUNDS = "new bounds"  # see `refit`


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
    side = int(partitions[:, 2].max()) + 1
    return partitions_of(cells_after(cells_of(partitions, side), decision), len(partitions))


def rectangle(partitions: Partitions, p: int) -> Rectangle:
    """Partition p as plain numbers."""
    x1, y1, x2, y2 = partitions[p].tolist()
    return x1, y1, x2, y2
