"""`text-hypergraph`: terms that occur together dealt together, by partitioning a hypergraph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.grid.survey import Numbers
from nearcast.routing.ps2stream.baseline import TextRouter
from nearcast.routing.ps2stream.nodes import Node
from nearcast.routing.ps2stream.text_parts import Lists, TextParts, of_vocabulary, text_parts
from nearcast.routing.ps2stream.workload import Workload

SLACK = 0.1  # how much heavier than the mean a part may be
PASSES = 10  # of refinement, at most


class TextHypergraph(TextRouter):
    """Hypergraph-based text-partitioning (section VI-B, after Cambazoglu et al.)."""

    name = "text-hypergraph"
    about = "words that occur together dealt together, workers with equal sums of frequencies"

    def deal(self, w: Workload, node: Node) -> Numbers:
        """The worker of each term."""
        return hypergraph_partition(w, node, self.shards)


def hypergraph_partition(w: Workload, node: Node, p: int) -> Numbers:
    """Terms of a node dealt to `p` parts; of each term of the vocabulary its part, or -1.

    Terms are vertices, weighted by frequency; an object is a net over its terms, a query one over
    those that it is posted under. A net in n parts is copied to n workers: the sum of n - 1 is made
    small, with no part heavier than `SLACK` above the mean. The start is greedy, the heaviest
    first, each to the part that has most of its nets; then single terms move while that helps.
    """
    parts = text_parts(w, node)
    weight = parts.frequency().astype(np.float64)
    order = np.argsort(-weight, kind="stable")
    return of_vocabulary(w, parts, _partition(order, parts, weight, p))


@njit(lean=True)
def _pins(lists: Lists, term: int, count: NDArray[np.int32], part: int, least: int) -> int:
    """How many nets of a term have at most `least` pins in a part."""
    found = 0
    for i in range(lists.offsets[term], lists.offsets[term + 1]):
        if count[lists.items[i], part] <= least:
            found += 1
    return found


@njit(lean=True)
def _put(lists: Lists, term: int, count: NDArray[np.int32], part: int, by: int) -> None:
    for i in range(lists.offsets[term], lists.offsets[term + 1]):
        count[lists.items[i], part] += np.int32(by)


class Cut(NamedTuple):
    """A partition so far: parts of terms, their weights, and the pins of each net in each part."""

    part: Numbers  # -1: none yet
    heavy: NDArray[np.float64]
    of_objects: NDArray[np.int32]  # [objects, p]
    of_queries: NDArray[np.int32]  # [queries, p]


@njit(lean=True)
def _few(t: TextParts, c: Cut, term: int, part: int, least: int) -> int:
    """How many nets of a term have at most `least` pins in a part."""
    objects = _pins(t.holders, term, c.of_objects, part, least)
    return objects + _pins(t.posted, term, c.of_queries, part, least)


@njit(lean=True)
def _shift(t: TextParts, c: Cut, term: int, part: int, by: int, weight: float) -> None:
    """Put a term into a part (`by` 1), or take it away (-1)."""
    _put(t.holders, term, c.of_objects, part, by)
    _put(t.posted, term, c.of_queries, part, by)
    c.heavy[part] += by * weight


@njit(lean=True)
def _best(t: TextParts, c: Cut, term: int, weight: float, limit: float) -> int:
    """The part for a term: where most nets are saved; equal ones: the lighter, then the lower.

    It stays where it is unless it saves something; a part over the limit takes nothing more.
    """
    now = c.part[term]
    alone = _few(t, c, term, now, 1) if now >= 0 else 0  # nets without another pin there
    best, gain = now, 0
    for i in range(len(c.heavy)):
        if i == now or (c.heavy[i] > 0.0 and c.heavy[i] + weight > limit):
            continue
        saved = alone - _few(t, c, term, i, 0)
        tie = saved == gain and best != now and c.heavy[i] < c.heavy[best]
        if best < 0 or saved > gain or tie:
            best, gain = i, saved
    return best if best >= 0 else np.argmin(c.heavy)


@njit
def _partition(order: Numbers, t: TextParts, weight: NDArray[np.float64], p: int) -> Numbers:
    """The part of each term."""
    c = Cut(
        np.full(len(order), -1),
        np.zeros(p),
        np.zeros((t.objects, p), np.int32),
        np.zeros((t.queries, p), np.int32),
    )
    limit = (1.0 + SLACK) * weight.sum() / p
    for _ in range(1 + PASSES):
        moved = False
        for term in order:
            now = c.part[term]
            best = _best(t, c, term, weight[term], limit)
            if best != now:
                if now >= 0:
                    _shift(t, c, term, now, -1, weight[term])
                _shift(t, c, term, best, 1, weight[term])
                c.part[term] = best
                moved = True
        if not moved:
            break
    return c.part
