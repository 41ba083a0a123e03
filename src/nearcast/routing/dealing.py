"""Dealing by cost: always to the worker with the least load so far.

Ties go to the lowest worker, and to what comes first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.heap import sift_down
from nearcast.model.jit import njit

Costs = NDArray[np.float64]
Numbers = NDArray[np.int64]


def deal_costliest_first(costs: Costs, m: int) -> tuple[Numbers, Costs]:
    """(worker of each cost, load of each of `m` workers), the highest cost dealt first."""
    return deal(descending(costs), costs, np.zeros(m))


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
