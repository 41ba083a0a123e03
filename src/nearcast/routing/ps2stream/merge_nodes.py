"""MergeNodesIntoPartitions of PS2Stream: the leaves of the kd^t-tree dealt to workers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.ps2stream.load import balance
from nearcast.routing.ps2stream.nodes import Node
from nearcast.routing.ps2stream.workload import Workload


def merge_nodes_into_partitions(
    w: Workload, nodes: list[Node], m: int
) -> tuple[list[int], list[float]]:
    """(worker of each node, load of each worker), section IV-B, node merging.

    In descending order of load (equal ones: as they come), each to the partition whose load grows
    the least by it, unless that increases L_max / L_min; then to the one with the least load.
    Loads are those of Definition 1 for all that a partition has: what two of its nodes share
    counts once. While a partition is empty the factor is infinite, which no choice increases: the
    node then goes to an empty one, or all would gather where they share most.
    """
    objects = np.zeros((m, len(w.column)), bool)
    queries = np.zeros((m, w.queries), bool)
    sizes = np.zeros((m, 2), np.int64)
    loads = [0.0] * m
    workers = [0] * len(nodes)
    for n in sorted(range(len(nodes)), key=lambda n: -nodes[n].load):
        node = nodes[n]
        grown = sizes.copy()
        grown[:, 0] += _new(objects, node.objects)
        grown[:, 1] += _new(queries, node.queries)
        after = [w.load(int(o), int(q)) for o, q in grown]
        part = _chosen(loads, after)
        workers[n] = part
        objects[part, node.objects] = True
        queries[part, node.queries] = True
        sizes[part], loads[part] = grown[part], after[part]
    return workers, loads


def _chosen(loads: list[float], after: list[float]) -> int:
    """The partition for a node that would bring each to its load in `after`."""
    least = loads.index(min(loads))
    if loads[least] == 0.0:
        return least
    growth = [b - a for a, b in zip(loads, after)]
    part = growth.index(min(growth))
    made = [*loads[:part], after[part], *loads[part + 1 :]]
    return part if balance(made) <= balance(loads) else least


def _new(marks: NDArray[np.bool_], members: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of `members` each partition does not have."""
    missing: NDArray[np.int64] = np.count_nonzero(~marks[:, members], axis=1)
    return missing
