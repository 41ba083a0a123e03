"""Algorithm 2 of DkM-SKS: Subscription-Partitioning, by space or by cost, whichever is cheaper."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.heap import pop, push
from nearcast.model.jit import njit
from nearcast.routing.dealing import deal
from nearcast.routing.dkm.costs import (
    Memo,
    Subscriptions,
    enclose,
    hybrid_subset_cost,
)
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
) -> tuple[Subsets, NDArray[np.float64]]:
    """Algorithm 2: split the most expensive subset until there are `target` = gamma1 · m.

    Subsets with more than `gamma2` subscriptions are split by space alone. One of them whose
    subscriptions are all at one spot stays whole, as one with a single subscription does.
    Also gives C(s) of every subscription, equation (5) by the R of its subset.
    """
    c = whole(s, p, target + 3)
    scratch = np.empty((2, len(s.x)), np.int64)
    each = np.empty((2, len(s.x)))  # C(s), and C(s) in a partition that may be refused
    keys, items = np.empty(target + 3), np.empty(target + 3, np.int64)
    spatial, hybrid = new_cut(), new_cut()
    count, size = 1, push(keys, items, 0, 0.0, 0)  # line 1: C(S) = 0, it is split anyway
    c.costs[0] = hybrid_subset_cost(p, memo, s.wanted, c.order, c.boxes[0], each[0])
    while size > 0 and count < target:
        size = pop(keys, items, size)
        at = items[size]
        members = c.order[c.first[at] : c.last[at]]
        cell = c.cells[at]
        if len(members) > gamma2:
            if not space_only_partition(s, members, scratch[0], cell, spatial):
                continue
            _cost_parts(s, p, memo, members, spatial, each[0])
            before, count = count, replace(c, count, at, spatial)
        elif len(members) > 1:
            cut = _better(s, p, memo, members, scratch, cell, each, spatial, hybrid)
            before, count = count, replace(c, count, at, cut)
        else:
            continue
        size = push(keys, items, size, -c.costs[at], at)
        for new in range(before, count):
            size = push(keys, items, size, -c.costs[new], new)
    return keep(c, count), each[0].copy()


@njit
def _cost_parts(
    s: Subscriptions,
    p: Places,
    memo: Memo,
    members: Members,
    cut: Cut,
    each: NDArray[np.float64],
) -> None:
    """R and equation (6) of each part, equation (5) of each subscription."""
    for part in range(4):
        mine = members[cut.bounds[part] : cut.bounds[part + 1]]
        enclose(s.boxes, mine, cut.boxes[part])
        cut.costs[part] = hybrid_subset_cost(p, memo, s.wanted, mine, cut.boxes[part], each)


@njit
def _better(
    s: Subscriptions,
    p: Places,
    memo: Memo,
    members: Members,
    scratch: NDArray[np.int64],
    cell: Box,
    each: NDArray[np.float64],
    spatial: Cut,
    hybrid: Cut,
) -> Cut:
    """Lines 10 to 17: the cheaper of both partitions, with `members` in its order.

    C_s and C_h are the sums over their subsets; Hybrid-Partition unless C_s < C_h.
    """
    dealt = scratch[1][: len(members)]
    hybrid_partition(each[0], members, dealt, hybrid)
    hybrid.cells[:] = cell
    _cost_parts(s, p, memo, dealt, hybrid, each[1])
    if space_only_partition(s, members, scratch[0], cell, spatial):
        _cost_parts(s, p, memo, members, spatial, each[0])
        if spatial.costs.sum() < hybrid.costs.sum():
            return spatial
    members[:] = dealt
    for i in members:
        each[0, i] = each[1, i]
    return hybrid


@njit
def hybrid_partition(each: NDArray[np.float64], members: Members, dealt: Members, cut: Cut) -> None:
    """Hybrid-Partition (section 4.2): deal to four subsets by descending C(s).

    C(s) by equation (5) is in `each`; the least sum gets the next, as in Algorithm 1. Writes
    `members`, subset after subset, to `dealt`.
    """
    n = len(members)
    costs = each[members]
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
