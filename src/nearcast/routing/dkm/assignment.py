"""Who gets what: the greedy assignments of DkM-SKS (Algorithms 1 and 3).

Both deal in a given order, each time to the worker with the least C(w); they differ in the order.
Ties are broken as in the paper's Example 3 (`routing.dealing`).
"""

from __future__ import annotations

import numpy as np

from nearcast.routing.dealing import Costs, Numbers, deal, deal_costliest_first, descending


def subscription_assignment(costs: Costs, m: int) -> tuple[Numbers, Costs]:
    """Algorithm 1 (section 3.1): (worker of each cost, C(w) of each of `m` workers).

    Space-oriented partition gives it the costs of subsets (section 3.2) in place of those of
    subscriptions.
    """
    return deal_costliest_first(costs, m)


def subset_assignment(costs: Costs, subset: Numbers, m: int) -> tuple[Numbers, Costs]:
    """Algorithm 3 (section 4.2): the most expensive subset first, in it the most expensive s.

    `subset[s]` is the subset of subscription s; C(S') is the sum of its costs (equation 6).
    Subscriptions of one subset are close in space and words: new objects touch them together, so
    dealing them to different workers lets these work at the same time.
    """
    subset_costs = np.bincount(subset, costs).astype(np.float64)
    rank = np.empty(len(subset_costs), np.int64)
    rank[descending(subset_costs)] = np.arange(len(subset_costs))
    return deal(np.lexsort((-costs, rank[subset])), costs, np.zeros(m))
