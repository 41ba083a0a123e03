"""DP (section V-A.1): the smallest set, by dynamic programming.

A(i, j), the most load that cells 1 to i have with a total size of at most j, is a step function of
j. Only its steps are kept: at most as many as there are sizes up to P, and far fewer where sizes
are large, so that bytes need no rounding to larger units. P, the upper bound that the paper asks
for, is the size of GR's answer. Where the steps outgrow `limit`, GR's answer is given, marked as
not exact: for the O(nP) of DP the paper's own remedy is GR.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.ps2stream.adjust.gr import gr
from nearcast.routing.ps2stream.adjust.selection import (
    Numbers,
    Reals,
    Selection,
    selection,
    trivial,
    whole,
)

LIMIT = 1 << 23  # steps kept in all, 24 bytes each


def dp(loads: Reals, sizes: Numbers, tau: float, seed: int = 0, limit: int = LIMIT) -> Selection:
    """A set of the least size. `seed` is not used."""
    units, needed = whole(loads, tau)
    found = trivial(units, needed)
    if found is not None:
        return found
    bound = gr(loads, sizes, tau)
    cells, steps = _solve(units, sizes, needed, bound.size, limit)
    if steps < 0:
        return bound._replace(steps=-steps)
    return selection(cells, loads, sizes, steps, exact=True)


@njit
def _solve(loads: Reals, sizes: Numbers, tau: float, bound: int, limit: int) -> tuple[Numbers, int]:
    """(cells, steps computed); steps below 0: given up after that many."""
    before, after = np.empty(64, np.int64), np.empty(64, np.int64)  # step numbers, A(i-1) and A(i)
    size, load = np.empty(1024, np.int64), np.empty(1024)  # of each step
    parent, cell = np.empty(1024, np.int32), np.empty(1024, np.int32)
    before[0], size[0], load[0], parent[0], cell[0] = 0, 0, 0.0, -1, -1
    count, made, steps = 1, 1, 0
    for i in range(len(loads)):
        if made + count > limit:
            return np.empty(0, np.int64), -max(steps, 1)
        if made + count > len(size):
            size, load = _wider(size, made + count), _wider(load, made + count)
            parent, cell = _wider(parent, made + count), _wider(cell, made + count)
        if 2 * count > len(after):
            before, after = _wider(before, 2 * count), _wider(after, 2 * count)
        steps += count
        made, count = _add(i, loads[i], sizes[i], tau, bound, before, count, after, made,
                           size, load, parent, cell)  # fmt: skip
        before, after = after, before
    return _path(before[count - 1], parent, cell), steps


@njit
def _wider(array: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    larger = np.empty(max(2 * len(array), least), array.dtype)
    larger[: len(array)] = array
    return larger


@njit(lean=True)
def _add(
    i: int,
    its_load: float,
    its_size: int,
    tau: float,
    bound: int,
    before: Numbers,
    count: int,
    after: Numbers,
    made: int,
    size: Numbers,
    load: Reals,
    parent: NDArray[np.int32],
    cell: NDArray[np.int32],
) -> tuple[int, int]:
    """A(i, ·) from A(i-1, ·): (steps made in all, steps of A(i, ·)).

    Both lists, without and with cell i, ascend in size; a step is kept if it has more load than
    the one before. Nothing is larger than P, and nothing follows the first step that reaches τ.
    """
    kept, a, b = 0, 0, 0
    most = -1.0
    while (a < count or b < count) and most < tau:
        with_it = size[before[b]] + its_size if b < count else bound + 1
        if a < count and size[before[a]] <= with_it:
            step = before[a]
            a += 1
            if load[step] > most:
                # of two steps of one size, the one of more load
                if kept > 0 and size[after[kept - 1]] == size[step]:
                    kept -= 1
                after[kept] = step
                kept += 1
                most = load[step]
        elif with_it > bound:
            break
        else:
            step = before[b]
            b += 1
            if load[step] + its_load > most:
                if kept > 0 and size[after[kept - 1]] == with_it:
                    kept -= 1
                size[made], load[made], parent[made], cell[made] = (
                    with_it, load[step] + its_load, step, i,
                )  # fmt: skip
                after[kept] = made
                made += 1
                kept += 1
                most = load[step] + its_load
    return made, kept


@njit
def _path(step: int, parent: NDArray[np.int32], cell: NDArray[np.int32]) -> Numbers:
    """The cells that led to a step."""
    count = 0
    at = step
    while cell[at] >= 0:
        count += 1
        at = parent[at]
    out = np.empty(count, np.int64)
    for place in range(count):
        out[place] = cell[step]
        step = parent[step]
    return out
