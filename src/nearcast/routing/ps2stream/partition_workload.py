"""Algorithm 1 of PS2Stream: Partition Workload, both phases."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from math import inf

from nearcast.routing.ps2stream.load import balance
from nearcast.routing.ps2stream.merge_nodes import merge_nodes_into_partitions
from nearcast.routing.ps2stream.nodes import Node, root, space_node
from nearcast.routing.ps2stream.number_partitions import compute_number_partitions
from nearcast.routing.ps2stream.partition_node import loaded, partition_node, total
from nearcast.routing.ps2stream.similarity import text_similarity
from nearcast.routing.ps2stream.space_partition import halves, median_cut
from nearcast.routing.ps2stream.workload import Workload


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of Algorithm 1."""

    delta: float  # text similarity from which on a node is not for text-partitioning
    sigma: float  # L_max / L_min allowed
    theta: int  # nodes, at most
    epsilon: float  # a difference of similarities that counts as none


@dataclass(frozen=True, slots=True)
class Partitioned:
    """The leaves of the kd^t-tree, the worker of each, and the load of each worker."""

    nodes: list[Node]
    workers: list[int]
    loads: list[float]


def partition_workload(w: Workload, m: int, t: Thresholds) -> Partitioned:
    """Algorithm 1: leaves assigned to `m` workers.

    Divisions go on until an assignment keeps sigma. Of all on the way, the one with the least
    L_max is taken (equal ones: with the least L_max / L_min): text-partitioning makes loads ever
    more alike by making all of them larger.
    """
    nodes = identify_subspaces(w, t)
    if len(nodes) < m:
        nodes = divide(w, nodes, m)
    now = best = _merged(w, nodes, m)
    stuck: set[Node] = set()  # nodes that cannot be divided
    while balance(now.loads) > t.sigma and len(nodes) < t.theta:
        ready = [i for i, n in enumerate(nodes) if n.load > 0.0 and n not in stuck]
        if not ready:
            break
        at = max(ready, key=lambda i: nodes[i].load)
        parts = partition_node(w, nodes[at], 2)
        if loaded(parts) < 2:
            stuck.add(nodes[at])
            continue
        nodes = [*nodes[:at], *parts, *nodes[at + 1 :]]
        now = _merged(w, nodes, m)
        best = min(best, now, key=_rank)
    return best


def _merged(w: Workload, nodes: list[Node], m: int) -> Partitioned:
    return Partitioned(nodes, *merge_nodes_into_partitions(w, nodes, m))


def _rank(p: Partitioned) -> tuple[float, float]:
    return max(p.loads), balance(p.loads)


def identify_subspaces(w: Workload, t: Thresholds) -> list[Node]:
    """Phase one, lines 1 to 12: N_t and N_s (`Node.text` says which).

    The oldest undecided node first. With theta nodes no more are cut.
    """
    undecided, decided = deque([root(w)]), []
    while undecided:
        n = undecided.popleft()
        similarity = text_similarity(w, n)
        if similarity >= t.delta:
            decided.append(n)  # N_s
            continue
        parts, alpha = _cut(w, n)
        full = len(decided) + len(undecided) + 2 > t.theta
        if not parts or full or abs(alpha - similarity) <= t.epsilon:
            decided.append(replace(n, text=True))  # N_t
        else:
            undecided.extend(parts)
    return decided


def _cut(w: Workload, n: Node) -> tuple[list[Node], float]:
    """Line 8: (n1, n2) in the direction of the smaller alpha, x if both are equal; and alpha."""
    best: list[Node] = []
    alpha = inf
    for axis in range(2):
        at = median_cut(w, n, axis)
        if at is not None:
            parts = [space_node(w, half) for half in halves(n.region, axis, at)]
            least = min(text_similarity(w, part) for part in parts)
            if least < alpha:
                best, alpha = parts, least
    return best, alpha


def divide(w: Workload, nodes: list[Node], m: int) -> list[Node]:
    """Lines 13 to 16: fewer than m nodes become m, as ComputeNumberPartitions says."""
    ways = [[partition_node(w, n, k) for k in range(1, m - len(nodes) + 2)] for n in nodes]
    costs = [
        [total(parts) if k == 1 or loaded(parts) == k else inf for k, parts in enumerate(each, 1)]
        for each in ways
    ]
    numbers = compute_number_partitions(costs, m)
    return [part for each, k in zip(ways, numbers) for part in each[k - 1]]
