"""New partitions for all, where shifts and split/merge have nothing left to offer. Not in Tornado.

Operations of the paper relieve one evaluator at a time and keep what others have. They can end
with an evaluator that no neighbour can relieve while others are idle, but not mergeable: in tries
with 4 to 32 evaluators at up to 1.8 times the mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.assignment import assigned
from nearcast.routing.tornado.a_grid import Cells, Partitions, cells_of
from nearcast.routing.tornado.cell_loads import CellLoads, Plan, plan_of, shard_costs
from nearcast.routing.tornado.decision import NEW_PARTITIONS, Decision, Move, rectangle
from nearcast.routing.tornado.initialization import initial_partitions
from nearcast.routing.tornado.neighbours import used
from nearcast.routing.tornado.pieces import pieces_of
from nearcast.routing.tornado.rebalance import Settings


def repartition(cells: Cells, shards: int, loads: CellLoads, settings: Settings) -> Plan | None:
    """Section 4.1 on current costs, if that brings more than it costs.

    New partitions go to shards so that the most queries stay where they are.
    """
    before = shard_costs(cells, loads.costs, shards)
    most, total = int(before.max()), int(before.sum())
    if most * shards <= settings.threshold * total:
        return None
    wanted = initial_partitions(loads.costs, shards)
    by_partition = cells_of(wanted, len(cells))
    owner = assigned(_staying(by_partition, cells, loads.queries, shards))
    new = owner.astype(np.int32)[by_partition]
    after = shard_costs(new, loads.costs, shards)
    c_r, c_t = most - int(after.max()), settings.beta * int(loads.queries[new != cells].sum())
    reason = (
        f"shard {int(before.argmax())} has cost {most}, {most * shards / total:.2f} times the "
        f"mean; new partitions: the largest becomes {int(after.max())}; "
        f"{settings.horizon:g} C_r {c_r:g} > C_t {c_t:g}"
    )
    moves = _moves(cells, wanted, owner)
    made = Decision(
        NEW_PARTITIONS, moves, tuple(before.tolist()), tuple(after.tolist()), c_r, c_t, reason
    )
    return plan_of([made], cells, new, loads, shards, settings)


def _staying(new: Cells, old: Cells, queries: NDArray[np.int64], shards: int) -> NDArray[np.int64]:
    """[partition, shard]: queries that it would keep; of as many, more cells are better."""
    worth = queries * queries.size + 1
    out = np.zeros(shards * shards, np.int64)
    np.add.at(out, (new.astype(np.int64) * shards + old).ravel(), worth.ravel())
    return out.reshape(shards, shards)


def _moves(old: Cells, wanted: Partitions, owner: NDArray[np.int64]) -> tuple[Move, ...]:
    """What of each old rectangle belongs to another shard."""
    there = pieces_of(old)
    moves = []
    for i, source in enumerate(there.owners.tolist()):
        x1, y1, x2, y2 = rectangle(there.boxes, i)
        for p in used(wanted):
            u1, v1, u2, v2 = rectangle(wanted, p)
            cells = max(x1, u1), max(y1, v1), min(x2, u2), min(y2, v2)
            if source != owner[p] and cells[0] <= cells[2] and cells[1] <= cells[3]:
                moves.append(Move(source, int(owner[p]), cells))
    return tuple(moves)
