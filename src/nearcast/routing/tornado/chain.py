"""Operations one after the other within one decision, each on the result of the one before.

With one rectangle per shard they are those of the paper, chosen as the paper does. With more, a
part of any rectangle of the hottest shard may go to any shard: a shift where it joins a rectangle
there, a split where it does not, a split/merge where there would be too many rectangles.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.routing.grid.cells import summed
from nearcast.routing.tornado.a_grid import Cells, cells_of, partitions_of
from nearcast.routing.tornado.aggregates import Rectangle
from nearcast.routing.tornado.cell_loads import (
    CellLoads,
    Plan,
    aggregates_from,
    plan_of,
    shard_costs,
)
from nearcast.routing.tornado.cuts import best_cuts
from nearcast.routing.tornado.decision import (
    CORNER,
    HAND_OVER,
    HORIZONTAL,
    SPLIT,
    SPLIT_MERGE,
    VERTICAL,
    Decision,
    Move,
    partitions_after,
    rectangle,
)
from nearcast.routing.tornado.merging import Deal, merged
from nearcast.routing.tornado.neighbours import mergeable, shares_horizontal, shares_vertical
from nearcast.routing.tornado.pieces import Pieces, pieces_of
from nearcast.routing.tornado.rebalance import Settings, adjust

_TARGETS = 4  # shards that could take a part, the coldest
_TRIED = 8  # parts that are looked at closely, the best


def chain_of_the_paper(
    cells: Cells, shards: int, loads: CellLoads, settings: Settings
) -> Plan | None:
    """Shifts and split/merges of section 4.2; every shard has a rectangle, and keeps one."""
    partitions = partitions_of(cells, shards)
    decisions: list[Decision] = []
    eager = replace(settings, threshold=settings.goal)
    for _ in range(settings.rounds):
        made = adjust(partitions, aggregates_from(partitions, loads), eager)
        if made is None:
            break
        decisions.append(made)
        partitions = partitions_after(partitions, made)
    new = cells_of(partitions, len(cells))
    return plan_of(decisions, cells, new, loads, shards, settings)


def chain_of_pieces(cells: Cells, shards: int, loads: CellLoads, settings: Settings) -> Plan | None:
    """Parts of the hottest shard handed over, until it is hot no more."""
    deal = Deal(np.array(cells), cells, shards, loads, settings)
    decisions: list[Decision] = []
    for _ in range(settings.rounds):
        made = _next(deal)
        if made is None:
            break
        decision, deal = made
        decisions.append(decision)
    return plan_of(decisions, cells, deal.cells, loads, shards, settings)


def _next(deal: Deal) -> tuple[Decision, Deal] | None:
    """The best part to hand over now, and where that leads."""
    costs = shard_costs(deal.cells, deal.loads.costs, deal.shards)
    hot = int(costs.argmax())
    if costs[hot] * deal.shards <= deal.settings.goal * costs.sum():
        return None
    there = pieces_of(deal.cells)
    best: tuple[float, Decision, Deal] | None = None
    for worth, box, target in _parts(deal, there, costs, hot):
        if best is not None and worth <= best[0]:
            break  # merging only ever takes away from it
        made = merged(deal.handed(Move(hot, target, box)), max(len(there.boxes), deal.most))
        if made is None:
            continue
        value = worth - deal.settings.beta * (made.moved - deal.handed(made.moves[0]).moved)
        if value > 0 and (best is None or value > best[0]):
            best = value, _decision(deal, made, there, costs), made
    return None if best is None else best[1:]


def _parts(
    deal: Deal, there: Pieces, costs: NDArray[np.int64], hot: int
) -> list[tuple[float, Rectangle, int]]:
    """(worth, part, to whom), the best first; ties: the colder shard, then the first part."""
    s = deal.settings
    boxes = frozen(there.boxes[there.owners == hot])
    sums = frozen(summed(deal.loads.costs))
    found = []
    for target in np.argsort(costs, kind="stable")[:_TARGETS].tolist():
        if target == hot or costs[target] >= costs[hot]:
            continue
        moves = frozen(summed(deal.cost_of_moves(hot, target)))
        cuts = best_cuts(boxes, sums, moves, costs[hot], costs[target], s.horizon, s.beta)
        for i in np.flatnonzero(cuts.worth > 0).tolist():
            found.append((float(cuts.worth[i]), rectangle(cuts.boxes, i), target))
    found.sort(key=lambda part: -part[0])
    return found[:_TRIED]


def _decision(deal: Deal, made: Deal, there: Pieces, costs: NDArray[np.int64]) -> Decision:
    before, after = costs.tolist(), shard_costs(made.cells, made.loads.costs, made.shards).tolist()
    first = made.moves[0]
    touched = sorted({m.source for m in made.moves} | {m.target for m in made.moves})
    c_r = before[first.source] - max(after[p] for p in touched)
    c_t = deal.settings.beta * (made.moved - deal.moved)
    kind = _kind(first, there) if len(made.moves) == 1 else SPLIT_MERGE
    mean = sum(before) / len(before)
    texts = [f"cells {m.cells} of {m.source} to {m.target}" for m in made.moves]
    reason = (
        f"shard {first.source} has cost {before[first.source]}, "
        f"{before[first.source] / mean:.2f} times the mean; {kind}, {', '.join(texts)}: "
        f"the largest of {', '.join(map(str, touched))} becomes {max(after[p] for p in touched)}; "
        f"{deal.settings.horizon:g} C_r {c_r:g} > C_t {c_t:g}"
    )
    return Decision(kind, made.moves, tuple(before), tuple(after), c_r, c_t, reason)


def _kind(move: Move, there: Pieces) -> str:
    """What the paper would call it."""
    whole = next(
        rectangle(there.boxes, i)
        for i in np.flatnonzero(there.owners == move.source).tolist()
        if _holds(rectangle(there.boxes, i), move.cells)
    )
    if whole == move.cells:
        return HAND_OVER
    for i in np.flatnonzero(there.owners == move.target).tolist():
        other = rectangle(there.boxes, i)
        if mergeable(move.cells, other) and not mergeable(whole, other):
            return CORNER
        if shares_horizontal(move.cells, other):
            return HORIZONTAL
        if shares_vertical(move.cells, other):
            return VERTICAL
    return SPLIT


def _holds(a: Rectangle, b: Rectangle) -> bool:
    return a[0] <= b[0] and a[1] <= b[1] and a[2] >= b[2] and a[3] >= b[3]
