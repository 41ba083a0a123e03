"""The Karmarkar–Karp differencing method for m subsets (SSTD, sections 4.1.2 and 5.2)."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
_Subset = tuple[float, int, tuple[int, ...]]  # sum, how many numbers, which


def karmarkar_karp(loads: Reals, m: int) -> Numbers:
    """The subset, 0 to m - 1, of each number, so that the sums differ little.

    Every number begins as a partial solution of its own: m subsets of which one has it. The two
    solutions whose sums differ most become one, the largest subset of one with the smallest of the
    other, and so on, which leaves about the difference of their differences. Subset 0 has the
    largest sum. Of equal sums those with fewer numbers count as smaller: so numbers that are all 0
    are spread, too.
    """
    if m < 1:
        raise ValueError("there must be a subset")
    heap: list[tuple[float, int, int, list[_Subset]]] = []
    none: _Subset = (0.0, 0, ())
    for i, load in enumerate(loads.tolist()):
        heap.append((-load, -1, i, [(load, 1, (i,)), *[none] * (m - 1)]))
    heapify(heap)
    turn = len(heap)
    while len(heap) > 1:
        one, other = heappop(heap)[3], heappop(heap)[3]
        pairs = zip(one, reversed(other), strict=True)
        made = [(a[0] + b[0], a[1] + b[1], a[2] + b[2]) for a, b in pairs]
        made.sort(key=lambda s: (-s[0], -s[1], s[2]))
        heappush(heap, (*_difference(made), turn, made))
        turn += 1
    out = np.zeros(len(loads), np.int64)
    for number, subset in enumerate(heap[0][3] if heap else []):
        out[list(subset[2])] = number
    return out


def _difference(subsets: list[_Subset]) -> tuple[float, int]:
    """The largest sum less the smallest, and of counts, as a heap orders them."""
    counts = [s[1] for s in subsets]
    return subsets[-1][0] - subsets[0][0], min(counts) - max(counts)
