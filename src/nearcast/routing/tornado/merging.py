"""Rectangles merged where there are too many: the second half of a split/merge (Tornado 4.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.tornado.a_grid import Cells
from nearcast.routing.tornado.cell_loads import CellLoads, shard_costs
from nearcast.routing.tornado.decision import Move, rectangle
from nearcast.routing.tornado.neighbours import mergeable_pairs
from nearcast.routing.tornado.pieces import pieces_of
from nearcast.routing.tornado.rebalance import Settings


@dataclass(frozen=True, slots=True)
class Deal:
    """Who has which cells in the middle of a chain, and who had them before it."""

    cells: Cells
    begin: Cells
    shards: int
    loads: CellLoads
    settings: Settings
    moves: tuple[Move, ...] = ()  # that led here from the operation before

    @property
    def most(self) -> int:
        """Rectangles that there may be."""
        return self.shards * self.settings.rectangles

    @property
    def moved(self) -> int:
        """Queries that are not where they were before the chain."""
        return int(self.loads.queries[self.cells != self.begin].sum())

    def cost_of_moves(self, source: int, target: int) -> NDArray[np.int64]:
        """[side, side]: what a cell of `source` adds to `moved` when it goes to `target`."""
        away = (self.begin != target).astype(np.int64) - (self.begin != source)
        added: NDArray[np.int64] = self.loads.queries * away
        return added

    def handed(self, move: Move) -> Deal:
        """As it is after a move."""
        x1, y1, x2, y2 = move.cells
        cells = self.cells.copy()
        cells[y1 : y2 + 1, x1 : x2 + 1] = move.target
        return replace(self, cells=cells, moves=(move,))


def merged(deal: Deal, most: int) -> Deal | None:
    """Neighbours given to each other's shards until there are at most so many rectangles.

    Those with the fewest queries to move first; nobody gets more than the largest cost that there
    is without. None: it cannot be done.
    """
    highest = shard_costs(deal.cells, deal.loads.costs, deal.shards).max()
    left = len(pieces_of(deal.cells).boxes)
    while left > most:
        move = _cheapest(deal, int(highest))
        if move is None:
            return None
        deal = replace(deal.handed(move), moves=(*deal.moves, move))
        fewer = len(pieces_of(deal.cells).boxes)
        if fewer >= left:
            return None
        left = fewer
    return deal


def _cheapest(deal: Deal, highest: int) -> Move | None:
    """The neighbour to hand over that moves the fewest queries."""
    there = pieces_of(deal.cells)
    costs = shard_costs(deal.cells, deal.loads.costs, deal.shards)
    best: tuple[int, Move] | None = None
    for pair in mergeable_pairs(there.boxes):
        for y, z in (pair, pair[::-1]):
            to, source = int(there.owners[y]), int(there.owners[z])
            x1, y1, x2, y2 = rectangle(there.boxes, z)
            part = slice(y1, y2 + 1), slice(x1, x2 + 1)
            if to == source or costs[to] + int(deal.loads.costs[part].sum()) > highest:
                continue
            begin = deal.begin[part]
            away = deal.loads.queries[part] * ((begin != to).astype(np.int64) - (begin != source))
            if best is None or away.sum() < best[0]:
                best = int(away.sum()), Move(source, to, (x1, y1, x2, y2))
    return best[1] if best is not None else None
