"""sim_t(O, Q): the text similarity between the objects and the queries of a node."""

from __future__ import annotations

import math

import numpy as np

from nearcast.routing.ps2stream.nodes import Node
from nearcast.routing.ps2stream.workload import Workload


def text_similarity(w: Workload, node: Node) -> float:
    """Cosine of how often objects hold each word and how often queries want it.

    All words of a query count, also those of a conjunction that it is not posted under. A node
    without objects, or without words in its queries, has nothing that text-partitioning could
    keep apart: 1.
    """
    owner, term = w.held.of(node.inside)
    held = np.bincount(term, w.stands_for[owner], minlength=len(w.vocabulary))
    wanted = np.bincount(w.wanted.of(node.queries)[1], minlength=len(w.vocabulary))
    held[0] = wanted[0] = 0  # UNIVERSAL is no word
    squares = float(held @ held) * float(wanted @ wanted)
    return float(held @ wanted) / math.sqrt(squares) if squares else 1.0
