"""DP (section V-A.1): the smallest set, by dynamic programming.

A(i, j), the most load that cells 1 to i have with a total size of at most j, is a step function of
j. Only its steps are kept: at most as many as there are sizes up to P, and far fewer where sizes
are large, so that bytes need no rounding to larger units. P, the upper bound that the paper
needs, is the size of GR's answer. Cells come in GR's order, so that what a step still lacks costs
at least what the next cells cost, the last of them in part: a step that exceeds P by that is left
out. Where the steps outgrow `limit`, GR's answer is given, marked as not exact: for the time and
memory of DP the paper's own remedy is GR.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.ps2stream.adjust.gr import by_relative_cost, gr
from nearcast.routing.ps2stream.adjust.selection import (
    Numbers,
    Reals,
    Selection,
    selection,
    trivial,
    whole,
)

LIMIT = 1 << 20  # steps computed in all: a twentieth of a second, while batches wait


def dp(loads: Reals, sizes: Numbers, tau: float, seed: int = 0, limit: int = LIMIT) -> Selection:
    """A set of the least size, GR's if that is one."""
    del seed  # nothing is drawn by lot
    units, needed = whole(loads, tau)
    found = trivial(units, needed)
    if found is not None:
        return found
    bound = gr(loads, sizes, tau)
    order = by_relative_cost(units, sizes)
    chosen, steps = _solve(_cells(units[order], sizes[order]), needed, bound.size, limit)
    if steps < 0:
        return bound._replace(steps=-steps)
    if len(chosen) == 0:
        return bound._replace(steps=steps, exact=True)
    return selection(order[chosen], loads, sizes, steps, exact=True)


class _Cells(NamedTuple):
    """Cells in ascending order of S_g / L_g, with sums of those before each."""

    loads: Reals
    sizes: Numbers
    load_sums: Reals  # [n + 1]
    size_sums: Numbers  # [n + 1]


class _Steps(NamedTuple):
    """All steps made so far, each a set of cells: its last cell, and the step without that."""

    size: Numbers
    load: Reals
    parent: NDArray[np.int32]
    cell: NDArray[np.int32]


def _cells(loads: Reals, sizes: Numbers) -> _Cells:
    size_sums = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return _Cells(loads, sizes, np.concatenate([[0.0], np.cumsum(loads)]), size_sums)


@njit
def _solve(c: _Cells, tau: float, bound: int, limit: int) -> tuple[Numbers, int]:
    """(cells of a set smaller than `bound`, steps computed); none: there is no such set.

    Steps below 0: given up after that many.
    """
    steps = _room_for(1024)
    steps.size[0], steps.load[0], steps.parent[0], steps.cell[0] = 0, 0.0, -1, -1
    before, after = np.zeros(64, np.int64), np.zeros(64, np.int64)  # steps of A(i-1), of A(i)
    count, made, work = 1, 1, 0
    for i in range(len(c.loads)):
        if work + count > limit:  # more than are kept
            return np.empty(0, np.int64), -max(work, 1)
        if made + count > len(steps.size):
            wider = _room_for(2 * (made + count))
            wider.size[:made], wider.load[:made] = steps.size[:made], steps.load[:made]
            wider.parent[:made], wider.cell[:made] = steps.parent[:made], steps.cell[:made]
            steps = wider
        if 2 * count > len(after):
            after = np.zeros(4 * count, np.int64)
        work += count
        made, count = _add(c, i, tau, bound, steps, made, before, count, after)
        before, after = after, before
    if count == 0 or steps.load[before[count - 1]] < tau:
        return np.empty(0, np.int64), work
    return _path(before[count - 1], steps), work


@njit
def _room_for(n: int) -> _Steps:
    return _Steps(np.empty(n, np.int64), np.empty(n), np.empty(n, np.int32), np.empty(n, np.int32))


@njit(lean=True)
def _add(
    c: _Cells,
    i: int,
    tau: float,
    bound: int,
    steps: _Steps,
    made: int,
    before: Numbers,
    count: int,
    after: Numbers,
) -> tuple[int, int]:
    """A(i, ·) from A(i-1, ·): (steps made in all, steps of A(i, ·), which are in `after`).

    Both lists, without and with cell i, ascend in size. A step counts if it has more load than
    all before it, and nothing counts after the first that reaches τ.
    """
    kept, a, b = 0, 0, 0
    most = -1.0
    while (a < count or b < count) and most < tau:
        step = before[a] if a < count else -1
        if b < count and (step < 0 or steps.size[before[b]] + c.sizes[i] < steps.size[step]):
            old = before[b]
            b += 1
            size, load = steps.size[old] + c.sizes[i], steps.load[old] + c.loads[i]
            if load > most and _may_do(c, i + 1, tau, bound, size, load):
                steps.size[made], steps.load[made] = size, load
                steps.parent[made], steps.cell[made] = old, i
                step = made
                made += 1
            else:
                continue
        else:
            a += 1
            size, load = steps.size[step], steps.load[step]
            if not load > most or not _may_do(c, i + 1, tau, bound, size, load):
                continue
        most = load
        if kept > 0 and steps.size[after[kept - 1]] == size:
            kept -= 1  # no larger, and more load
        after[kept] = step
        kept += 1
    return made, kept


@njit(lean=True)
def _may_do(c: _Cells, first: int, tau: float, bound: int, size: int, load: float) -> bool:
    """Can a step become a set that reaches τ and is smaller than `bound`, by cells from `first`?"""
    if load >= tau:
        return size < bound
    goal = tau - load + c.load_sums[first]
    k = np.searchsorted(c.load_sums, goal)  # cells first … k-1 reach it, all but the last whole
    if k >= len(c.load_sums):
        return False
    part = (goal - c.load_sums[k - 1]) / c.loads[k - 1]
    least = size + c.size_sums[k - 1] - c.size_sums[first]
    return least + part * c.sizes[k - 1] * (1.0 - 1e-12) < bound - 0.999


@njit
def _path(step: int, steps: _Steps) -> Numbers:
    """The cells that led to a step."""
    count = 0
    at = step
    while steps.cell[at] >= 0:
        count += 1
        at = steps.parent[at]
    out = np.empty(count, np.int64)
    for place in range(count):
        out[place] = steps.cell[step]
        step = steps.parent[step]
    return out
