"""`text-metric`: terms dealt by a metric, the load that a worker would come to (S³-TM's SALB)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.grid.survey import Numbers
from nearcast.routing.ps2stream.baseline import TextRouter
from nearcast.routing.ps2stream.nodes import Node
from nearcast.routing.ps2stream.text_parts import Lists, TextParts, of_vocabulary, text_parts
from nearcast.routing.ps2stream.workload import Workload


class TextMetric(TextRouter):
    """Metric-based text-partitioning (section VI-B): an object counts once per worker."""

    name = "text-metric"
    about = "words dealt so that those of one object meet, by the load each worker comes to"

    def deal(self, w: Workload, node: Node) -> Numbers:
        """The worker of each term."""
        return metric_partition(w, node, self.shards)


def metric_partition(w: Workload, node: Node, p: int) -> Numbers:
    """Terms of a node dealt to `p` parts; of each term of the vocabulary its part, or -1.

    The heaviest term first, each to the part whose load (Definition 1) is then the least: an
    object that goes there already for another word costs nothing more. Terms without a
    posting follow, each to the part that then has the fewest objects with a word of its own.
    """
    parts = text_parts(w, node)
    held, wanted = np.diff(parts.holders.offsets), np.diff(parts.posted.offsets)
    weight = w.load(held, wanted)
    order = np.lexsort((np.where(parts.counted, -weight, -held), ~parts.counted))
    return of_vocabulary(w, parts, _deal(order, parts, p, *_steps(w)))


def _steps(w: Workload) -> tuple[float, float, float]:
    """Definition 1 as a·|O|·|Q| + b·|O| + c·|Q|, for the queries of the workload."""
    c = w.constants
    return c.c1 * w.weight, c.c2, (c.c3 + c.c4 * c.deletions) * w.weight


@njit(lean=True)
def _new(lists: Lists, term: int, marks: NDArray[np.bool_]) -> int:
    """How many of a term's items are not marked."""
    found = 0
    for i in range(lists.offsets[term], lists.offsets[term + 1]):
        if not marks[lists.items[i]]:
            found += 1
    return found


@njit(lean=True)
def _mark(lists: Lists, term: int, marks: NDArray[np.bool_]) -> None:
    for i in range(lists.offsets[term], lists.offsets[term + 1]):
        marks[lists.items[i]] = True


@njit
def _deal(order: Numbers, t: TextParts, p: int, a: float, b: float, c: float) -> Numbers:
    """The part of each term; equal metrics: the lowest part."""
    out = np.empty(len(order), np.int64)
    sent = np.zeros((p, t.objects), np.bool_)
    reached = np.zeros((p, t.objects), np.bool_)
    wanted = np.zeros((p, t.queries), np.bool_)
    size = np.zeros((p, 3))  # objects sent, queries, objects with a word of the part
    for term in order:
        best, least = 0, np.inf
        for i in range(p):
            if t.counted[term]:
                o = size[i, 0] + _new(t.holders, term, sent[i])
                q = size[i, 1] + _new(t.posted, term, wanted[i])
                metric = a * o * q + b * o + c * q
            else:
                metric = size[i, 2] + _new(t.holders, term, reached[i])
            if metric < least:
                best, least = i, metric
        out[term] = best
        size[best, 2] += _new(t.holders, term, reached[best])
        _mark(t.holders, term, reached[best])
        if t.counted[term]:
            size[best, 0] += _new(t.holders, term, sent[best])
            size[best, 1] += _new(t.posted, term, wanted[best])
            _mark(t.holders, term, sent[best])
            _mark(t.posted, term, wanted[best])
    return out
