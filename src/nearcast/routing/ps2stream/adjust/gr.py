"""GR (section V-A.2): cells by their cost relative to their load, with one that tops it up.

A set found is at most twice as large as the smallest one; docs/papers/ps2stream.md has the
proof, which the paper leaves out.
"""

from __future__ import annotations

import numpy as np

from nearcast.model.jit import njit
from nearcast.routing.ps2stream.adjust.selection import (
    Numbers,
    Reals,
    Selection,
    selection,
    trivial,
    whole,
)


def gr(loads: Reals, sizes: Numbers, tau: float, seed: int = 0) -> Selection:
    """GS_1 ∪ … ∪ GS_t ∪ {g'} of the least size."""
    del seed  # nothing is drawn by lot
    units, needed = whole(loads, tau)
    found = trivial(units, needed)
    if found is not None:
        return found
    cells, steps = _scan(by_relative_cost(units, sizes), units, sizes, needed)
    return selection(cells, loads, sizes, steps)


def by_relative_cost(loads: Reals, sizes: Numbers) -> Numbers:
    """Cells in ascending order of S_g / L_g, equal ones as they come; without those of no load."""
    able = np.flatnonzero(loads > 0)
    return able[np.argsort(sizes[able] / loads[able], kind="stable")]


@njit
def _scan(order: Numbers, loads: Reals, sizes: Numbers, tau: float) -> tuple[Numbers, int]:
    """(cells of the best candidate, cells looked at). `order` as a whole has a load of τ."""
    taken = np.empty(len(order), np.int64)  # all "GS" so far
    count, load, size = 0, 0.0, 0
    best_count, best_cell, best_size = -1, -1, 0
    for g in order:
        if load + loads[g] < tau:
            taken[count] = g
            count += 1
            load += loads[g]
            size += sizes[g]
        elif best_cell < 0 or size + sizes[g] < best_size:
            best_count, best_cell, best_size = count, g, size + sizes[g]
    found = taken[: best_count + 1].copy()
    found[best_count] = best_cell
    return found, len(order)
