"""`text-frequency`: terms dealt by how often they occur."""

from __future__ import annotations

from nearcast.routing.dealing import deal_costliest_first
from nearcast.routing.grid.survey import Numbers
from nearcast.routing.ps2stream.baseline import TextRouter
from nearcast.routing.ps2stream.nodes import Node
from nearcast.routing.ps2stream.text_parts import of_vocabulary, text_parts
from nearcast.routing.ps2stream.workload import Workload


class TextFrequency(TextRouter):
    """Frequency-based text-partitioning (section VI-B)."""

    name = "text-frequency"
    about = "words dealt by frequency, the most frequent first, to the worker with the least"

    def deal(self, w: Workload, node: Node) -> Numbers:
        """The worker of each term."""
        return frequency_partition(w, node, self.shards)


def frequency_partition(w: Workload, node: Node, p: int) -> Numbers:
    """Terms of a node dealt to `p` parts; of each term of the vocabulary its part, or -1.

    The most frequent term first (equal ones: the smaller hash), always to the part with the least
    sum of frequencies (equal ones: the lowest).
    """
    parts = text_parts(w, node)
    chosen, _ = deal_costliest_first(parts.frequency().astype(float), p)
    return of_vocabulary(w, parts, chosen)
