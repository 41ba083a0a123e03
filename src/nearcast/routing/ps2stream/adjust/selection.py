"""Minimum Cost Migration (Definition 4): what its solvers take and give.

Of the cells of a worker, with loads L_g and sizes S_g, choose a set whose loads sum up to at least
τ and whose sizes to as little as possible. NP-hard (Theorem 2, from Partition).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]


class Selection(NamedTuple):
    """G_s: the cells to be migrated, by their places in the arrays of loads and sizes."""

    cells: Numbers  # ascending
    load: float
    size: int
    steps: int  # cells looked at; for DP, steps of A(i, ·) computed
    reached: bool  # the load is at least τ; if no set reaches it, `cells` is empty
    exact: bool  # no other set that reaches τ is smaller


def selection(
    cells: Numbers, loads: Reals, sizes: Numbers, steps: int, exact: bool = False
) -> Selection:
    """A set of cells that reaches τ."""
    cells = np.sort(cells)
    load, size = float(loads[cells].sum()), int(sizes[cells].sum())
    return Selection(cells, load, size, steps, True, exact)


def whole(loads: Reals, tau: float) -> tuple[Reals, float]:
    """Loads and τ as whole numbers of one small unit, a power of two.

    Sums are then exact and the same in every order, and what is a tie stays one. The unit is a
    2⁻⁵⁰th of all loads or smaller; whole loads stay as they are.
    """
    total = float(loads.sum())
    if not total > 0:
        return np.zeros(len(loads)), tau
    shift = 50 - int(np.frexp(total)[1])
    units = np.rint(np.ldexp(loads, shift))
    needed = max(float(np.rint(np.ldexp(tau, shift))), 1.0) if tau > 0 else 0.0
    return units, min(needed, float(units.sum())) if tau <= total else np.inf


def trivial(loads: Reals, tau: float) -> Selection | None:
    """The answer where there is nothing to choose: τ is 0, or all cells together are too little."""
    none = np.empty(0, np.int64)
    if tau <= 0:
        return Selection(none, 0.0, 0, 0, True, True)
    if not loads.sum() >= tau:
        return Selection(none, 0.0, 0, 0, False, True)
    return None


def along(order: Numbers, loads: Reals, sizes: Numbers, tau: float) -> Selection:
    """As many of `order`, from the first on, as it takes."""
    units, needed = whole(loads, tau)
    found = trivial(units, needed)
    if found is not None:
        return found
    count = prefix(order, units, needed)
    return selection(order[:count], loads, sizes, count)


def prefix(order: Numbers, loads: Reals, tau: float) -> int:
    """How many of `order`, from the first on, have a load of τ together."""
    sums = np.cumsum(loads[order])
    return min(int(np.searchsorted(sums, tau)) + 1, len(order))
