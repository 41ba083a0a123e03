"""Algorithm 2 of DkM-SKS: Subscription-Partitioning, by space or by cost, whichever is cheaper."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.dkm.assignment import deal
from nearcast.routing.dkm.costs import (
    Memo,
    Subscriptions,
    begin_box,
    enclose,
    hybrid_cost,
    hybrid_subset_cost,
)
from nearcast.routing.dkm.heap import pop, push
from nearcast.routing.dkm.places import Box, Places
from nearcast.routing.dkm.space import (
    Cut,
    Subsets,
    keep,
    new_cut,
    replace,
    space_only_partition,
    whole,
)

Members = NDArray[np.int64]


@njit
def subscription_partitioning(
    s: Subscriptions, p: Places, memo: Memo, target: int, gamma2: float
) -> Subsets:
    """Algorithm 2: split the most expensive subset until there are `target` = gamma1 · m.

    Subsets with more than `gamma2` subscriptions are split by space alone. One of them whose
    subscriptions are all at one spot stays whole, as one with a single subscription does.
    """
    c = whole(s, p, target + 3)
    scratch = np.empty((2, len(s.x)), np.int64)
    keys, items = np.empty(target + 3), np.empty(target + 3, np.int64)
    spatial, hybrid = new_cut(), new_cut()
    count, size = 1, push(keys, items, 0, 0.0, 0)  # line 1: C(S) = 0, it is split anyway
    c.costs[0] = hybrid_subset_cost(p, memo, s.asked, c.order, c.boxes[0])
    while size > 0 and count < target:
        size = pop(keys, items, size)
        at = items[size]
        members = c.order[c.first[at] : c.last[at]]
        box, cell = c.boxes[at], c.cells[at]
        if len(members) > gamma2:
            if not space_only_partition(s, members, scratch[0], cell, spatial):
                continue
            _cost_parts(s, p, memo, members, spatial)
            before, count = count, replace(c, count, at, spatial)
        elif len(members) > 1:
            cut = _better(s, p, memo, members, scratch, cell, box, spatial, hybrid)
            before, count = count, replace(c, count, at, cut)
        else:
            continue
        size = push(keys, items, size, -c.costs[at], at)
        for new in range(before, count):
            size = push(keys, items, size, -c.costs[new], new)
    return keep(c, count)


@njit
def _cost_parts(s: Subscriptions, p: Places, memo: Memo, members: Members, cut: Cut) -> None:
    """R and equation (6) of each part."""
    for part in range(4):
        mine = members[cut.bounds[part] : cut.bounds[part + 1]]
        enclose(s.boxes, mine, cut.boxes[part])
        cut.costs[part] = hybrid_subset_cost(p, memo, s.asked, mine, cut.boxes[part])


@njit
def _better(
    s: Subscriptions,
    p: Places,
    memo: Memo,
    members: Members,
    scratch: NDArray[np.int64],
    cell: Box,
    box: Box,
    spatial: Cut,
    hybrid: Cut,
) -> Cut:
    """Lines 10 to 17: the cheaper of both partitions, with `members` in its order.

    C_s and C_h are the sums over their subsets; Hybrid-Partition unless C_s < C_h.
    """
    dealt = scratch[1][: len(members)]
    hybrid_partition(s, p, memo, members, box, dealt, hybrid)
    hybrid.cells[:] = cell
    _cost_parts(s, p, memo, dealt, hybrid)
    if space_only_partition(s, members, scratch[0], cell, spatial):
        _cost_parts(s, p, memo, members, spatial)
        if spatial.costs.sum() < hybrid.costs.sum():
            return spatial
    members[:] = dealt
    return hybrid


@njit
def hybrid_partition(
    s: Subscriptions,
    p: Places,
    memo: Memo,
    members: Members,
    box: Box,
    dealt: Members,
    cut: Cut,
) -> None:
    """Hybrid-Partition (section 4.2): deal by descending C(s), equation (5), to four subsets.

    Writes `members`, subset after subset, to `dealt`. The least sum gets the next (Algorithm 1).
    """
    n = len(members)
    costs = np.empty(n)
    begin_box(memo)
    for i in range(n):
        costs[i] = hybrid_cost(p, memo, s.asked, members[i], box)
    order = np.argsort(-costs, kind="mergesort")
    part, _ = deal(order, costs, np.zeros(4))
    cut.bounds[:] = 0
    for i in range(n):
        cut.bounds[part[i] + 1] += 1
    for i in range(4):
        cut.bounds[i + 1] += cut.bounds[i]
    top = cut.bounds[:4].copy()
    for i in order:
        dealt[top[part[i]]] = members[i]
        top[part[i]] += 1


@njit
def hybrid_costs(s: Subscriptions, p: Places, memo: Memo, c: Subsets) -> NDArray[np.float64]:
    """C(s) of every subscription by the R of its subset (equation 5)."""
    costs = np.empty(len(c.order))
    for i in range(len(c.first)):
        begin_box(memo)
        for t in range(c.first[i], c.last[i]):
            costs[c.order[t]] = hybrid_cost(p, memo, s.asked, c.order[t], c.boxes[i])
    return costs
