"""New partitions for all, where shifts and split/merge have nothing left to offer. Not in Tornado.

Operations of the paper relieve one evaluator at a time and keep what others have. They can end
with an evaluator that no neighbour can relieve while others are idle, but not mergeable: in tries
with 4 to 32 evaluators at up to 1.8 times the mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.tornado.a_grid import Partitions, cells_of
from nearcast.routing.tornado.balance import Settings
from nearcast.routing.tornado.costs import Costs, partition_costs
from nearcast.routing.tornado.decision import NEW_PARTITIONS, Decision, Move, rectangle
from nearcast.routing.tornado.initialization import initial_partitions
from nearcast.routing.tornado.neighbours import used


def repartition(
    partitions: Partitions, costs: Costs, queries: Sequence[int], settings: Settings
) -> Decision | None:
    """Section 4.1 on current costs of all cells, if that brings more than it costs (C_r > C_t).

    A new partition goes to the evaluator that has most of its cost already. `queries` of each
    evaluator: as for a shift, they are taken to move as the costs do.
    """
    before = partition_costs(costs, partitions)
    n, most, total = len(before), int(before.max()), int(before.sum())
    if most * n <= settings.threshold * total:
        return None
    wanted = initial_partitions(costs, n)
    shared = _shared(partitions, wanted, costs)
    owner = _owners(shared)
    new = np.empty_like(wanted)
    new[owner] = wanted
    after = partition_costs(costs, new)
    c_r = most - int(after.max())
    staying = shared[np.argsort(owner), np.arange(n)]
    share = np.divide(before - staying, before, out=np.zeros(n), where=before > 0)
    c_t = settings.beta * float(np.asarray(queries, float) @ share)
    if not c_r > c_t:
        return None
    reason = (
        f"evaluator {int(before.argmax())} has cost {most}, {most * n / total:.2f} times the mean; "
        f"new partitions: the largest becomes {int(after.max())}; C_r {c_r:g} > C_t {c_t:g}"
    )
    moves = _moves(partitions, new)
    return Decision(
        NEW_PARTITIONS, moves, tuple(before.tolist()), tuple(after.tolist()), c_r, c_t, reason
    )


def _shared(old: Partitions, new: Partitions, costs: Costs) -> NDArray[np.int64]:
    """[new, old]: the cost of the cells that both have."""
    n = len(old)
    pairs = cells_of(new, len(costs)).astype(np.int64) * n + cells_of(old, len(costs))
    out = np.zeros(n * n, np.int64)
    np.add.at(out, pairs.ravel(), costs.ravel())
    return out.reshape(n, n)


def _owners(shared: NDArray[np.int64]) -> NDArray[np.int64]:
    """The evaluator of each new partition: the largest share first, then the lowest numbers."""
    n = len(shared)
    owner = np.full(n, -1, np.int64)
    taken = np.zeros(n, bool)
    for pair in np.argsort(-shared.ravel(), kind="stable"):
        new, old = divmod(int(pair), n)
        if owner[new] < 0 and not taken[old]:
            owner[new] = old
            taken[old] = True
    return owner


def _moves(old: Partitions, new: Partitions) -> tuple[Move, ...]:
    """What of each old partition belongs to another evaluator."""
    moves = []
    for source in used(old):
        x1, y1, x2, y2 = rectangle(old, source)
        for target in used(new):
            u1, v1, u2, v2 = rectangle(new, target)
            cells = max(x1, u1), max(y1, v1), min(x2, u2), min(y2, v2)
            if source != target and cells[0] <= cells[2] and cells[1] <= cells[3]:
                moves.append(Move(source, target, cells))
    return tuple(moves)
