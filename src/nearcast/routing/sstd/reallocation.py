"""Load imbalance and workload reallocation of SSTD (sections 5.1 and 5.2): λ, PM and FM.

Only continuous queries move from worker to worker, never objects; `versions` says how snapshot
queries still find the objects.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.assignment import assigned
from nearcast.routing.sstd.karmarkar_karp import karmarkar_karp

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
_UNIT = 1024.0  # transfer costs are whole numbers of this part of a query


class Leaves(NamedTuple):
    """The leaves of a tree, and what moving each would cost."""

    load: Reals  # [n]: W(P)
    worker: Numbers  # [n]
    queries: Reals  # [n]: |P.Q|
    at: Reals  # [n, m]: how many of these a worker has already


def worker_loads(leaves: Leaves, worker: Numbers | None = None) -> Reals:
    """The load of each worker, by this mapping or the present one."""
    owner = leaves.worker if worker is None else worker
    return np.bincount(owner, leaves.load, leaves.at.shape[1]).astype(np.float64)


def load_ratio(loads: Reals) -> float:
    """L_max / L_min of definition 4; infinite if only some workers have nothing to do."""
    most, least = float(loads.max()), float(loads.min())
    if most <= 0:
        return 1.0
    return most / least if least > 0 else math.inf


def transfer_cost(leaves: Leaves, worker: Numbers) -> float:
    """Continuous queries that a new mapping moves: Σ |P.Q| over the leaves that change hands."""
    return float((leaves.queries - leaves.at[np.arange(len(worker)), worker]).sum())


def fm(leaves: Leaves) -> Numbers:
    """FM: all leaves shuffled by Karmarkar–Karp, subsets to workers by the Hungarian method."""
    workers = leaves.at.shape[1]
    return _assigned(leaves, karmarkar_karp(leaves.load, workers), np.arange(workers))


def pm(leaves: Leaves) -> Numbers:
    """PM: the same with the leaves of the most and of the least loaded worker only."""
    loads = worker_loads(leaves)
    pair = np.array([loads.argmax(), loads.argmin()])
    if pair[0] == pair[1]:
        return leaves.worker.copy()
    mine = np.flatnonzero(np.isin(leaves.worker, pair))
    some = Leaves(leaves.load[mine], leaves.worker[mine], leaves.queries[mine], leaves.at[mine])
    out = leaves.worker.copy()
    out[mine] = _assigned(some, karmarkar_karp(some.load, 2), pair)
    return out


def _assigned(leaves: Leaves, subset: Numbers, workers: Numbers) -> Numbers:
    """The worker of each leaf if subsets go to `workers` at the least transfer cost.

    Of equal ones, the one by which more leaves stay.
    """
    n = len(workers)
    worth = np.zeros((n, n), np.int64)
    for column, worker in enumerate(workers.tolist()):
        stays = np.rint(_UNIT * leaves.at[:, worker]) + (leaves.worker == worker)
        worth[:, column] = np.bincount(subset, stays, n)
    chosen: Numbers = workers[assigned(worth)[subset]]
    return chosen
