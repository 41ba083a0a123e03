"""Who gets what: the greedy assignments of DkM-SKS (Algorithms 1 and 3).

Both deal in a given order, each time to the worker with the least C(w); they differ in the order.
Ties go to the lowest worker, and to the subscription (or subset) that comes first, as in the
paper's Example 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.dkm.heap import sift_down

Costs = NDArray[np.float64]
Numbers = NDArray[np.int64]


def subscription_assignment(costs: Costs, m: int) -> tuple[Numbers, Costs]:
    """Algorithm 1 (section 3.1): (worker of each cost, C(w) of each of `m` workers).

    Space-oriented partition gives it the costs of subsets (section 3.2) in place of those of
    subscriptions.
    """
    return deal(descending(costs), costs, np.zeros(m))


def subset_assignment(costs: Costs, subset: Numbers, m: int) -> tuple[Numbers, Costs]:
    """Algorithm 3 (section 4.2): the most expensive subset first, in it the most expensive s.

    `subset[s]` is the subset of subscription s; C(S') is the sum of its costs (equation 6).
    Subscriptions of one subset are close in space and words: new objects touch them together, so
    dealing them to different workers lets these work at the same time.
    """
    subset_costs = np.bincount(subset, costs)
    rank = np.empty(len(subset_costs), np.int64)
    rank[descending(subset_costs)] = np.arange(len(subset_costs))
    return deal(np.lexsort((-costs, rank[subset])), costs, np.zeros(m))


def descending(costs: Costs) -> Numbers:
    """The places of `costs`, highest first, equal ones as they come."""
    return np.argsort(-costs, kind="stable")


@njit
def deal(order: Numbers, costs: Costs, loads: Costs) -> tuple[Numbers, Costs]:
    """Each of `order` to the worker with the least load, one after the other.

    (worker of each cost int64[n], loads after that float64[m]); `loads` is left as it is.
    """
    m = len(loads)
    keys = loads.copy()
    workers = np.arange(m)
    for at in range(m - 1, -1, -1):
        sift_down(keys, workers, m, at)
    chosen = np.empty(len(costs), np.int64)
    for s in order:
        chosen[s] = workers[0]
        keys[0] += costs[s]
        sift_down(keys, workers, m, 0)
    after = np.empty(m)
    for at in range(m):
        after[workers[at]] = keys[at]
    return chosen, after
