"""PartitionNode of PS2Stream: a node divided by text, or by space where that is cheaper."""

from __future__ import annotations

from nearcast.routing.ps2stream.nodes import Node, text_nodes
from nearcast.routing.ps2stream.space_partition import space_partition
from nearcast.routing.ps2stream.text_metric import metric_partition
from nearcast.routing.ps2stream.workload import Workload


def text_partition(w: Workload, node: Node, p: int) -> list[Node]:
    """The node divided by its terms into `p` nodes; fewer where there are not so many terms.

    The paper does not name the algorithm; this is the best of its three baselines.
    """
    made = text_nodes(w, node, metric_partition(w, node, p), p)
    return made if len(made) > 1 else [node]


def partition_node(w: Workload, node: Node, p: int) -> list[Node]:
    """Section IV-B, node partitioning: `p` new nodes, fewer where it cannot be divided so far.

    A node of N_t by text; one of N_s by text or space, whichever leaves the smaller sum of loads
    (by space if both do; one that cannot make `p` nodes loses to one that makes more).
    """
    if p < 2:
        return [node]
    by_text = text_partition(w, node, p)
    if node.text:
        return by_text
    by_space = space_partition(w, node, p)
    if len(by_text) != len(by_space):
        return max(by_space, by_text, key=len)
    return by_text if total(by_text) < total(by_space) else by_space


def total(nodes: list[Node]) -> float:
    """The sum of loads."""
    return sum(node.load for node in nodes)
