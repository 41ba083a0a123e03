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

    A node of N_t by text, or by space where its words do not make `p` parts. A node of N_s by text
    or space: the one that makes more parts; otherwise by text if its largest part has less load
    than those by space have on average. Regions can be cut again until they are even, parts by
    text hardly. By the sums alone, as the paper has it, text-partitioning that puts all into one
    part would win: nothing is copied. Where objects are sent by all of their words (no `discard`),
    N_t is as N_s: queries that want other words than objects hold save nothing then.
    """
    if p < 2:
        return [node]
    by_text = text_partition(w, node, p)
    only = node.text and w.discard
    if node.terms is not None or (only and loaded(by_text) == p):
        return by_text
    by_space = space_partition(w, node, p)
    if only:
        return max(by_text, by_space, key=loaded)
    if loaded(by_space) != loaded(by_text):
        return max(by_space, by_text, key=loaded)
    largest = max(part.load for part in by_text)
    return by_text if largest * len(by_space) < total(by_space) else by_space


def total(nodes: list[Node]) -> float:
    """The sum of loads."""
    return sum(node.load for node in nodes)


def loaded(nodes: list[Node]) -> int:
    """How many nodes have any load: the parts that a division really made."""
    return sum(node.load > 0.0 for node in nodes)
