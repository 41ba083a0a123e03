"""Skype's cost model of a partial k-skyband (section 6.2, equations 9 to 13), as plain functions.

`n` is |s.A'_init| = prob(s.theta)·|W|, the objects of the window whose score is at least
s.theta; to choose the threshold is to choose n, because the n-th best score of the window has just
that probability in history. So all costs are functions of n. They count entries touched for each
message update, an arrival or an expiry.

`rise` is the share of arrivals among updates: one half, unless a window of time says otherwise
(section 6.3). The paper has no formula for the walk of equation 12 then; `moves` is it.
docs/papers/skype.md works all of them out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "best_size",
    "expected_skyband",
    "expected_updates",
    "maintenance_cost",
    "moves",
    "reevaluation_cost",
    "skyband_size",
    "step_probabilities",
    "total_cost",
]

Reals = NDArray[np.float64]


def skyband_size(k: int, n: Reals | float) -> Reals:
    """|s.A| as section 6.2.1 prints it: k·ln(n/k).

    The k best are in every k-skyband too, so it is too low by about k (`expected_skyband`).
    """
    return np.asarray(k * np.log(np.maximum(np.asarray(n, np.float64) / k, 1.0)))


def expected_skyband(k: int, n: int) -> float:
    """The mean size of the k-skyband of n objects whose scores and arrivals are independent.

    The i-th best is in it if fewer than k of the i - 1 better ones came later: min(1, k/i).
    """
    ranks = np.arange(1, n + 1)
    return float(np.sum(np.minimum(1.0, k / ranks)))


def step_probabilities(prob: float, rise: float = 0.5) -> tuple[float, float, float]:
    """Equation 11: the probabilities that an update makes |s.A'| larger, smaller, or neither."""
    return rise * prob, (1.0 - rise) * prob, 1.0 - prob


def maintenance_cost(k: int, n: Reals, window: float) -> Reals:
    """Equation 9: C_sm(s) = prob·|s.A|, whatever the share of arrivals is."""
    prob = np.asarray(n, np.float64) / window
    return np.asarray(prob * skyband_size(k, n))


def moves(start: Reals, barrier: Reals, rise: float = 0.5) -> Reals:
    """How often a walk moves, on average, before it has come down from `start` to 0.

    At the `barrier` it cannot rise: there it stays instead. With an even walk that is
    start·(2·barrier + 1 - start).
    """
    start, barrier = np.asarray(start, np.float64), np.asarray(barrier, np.float64)
    if abs(rise - 0.5) < 1e-9:
        return np.asarray(start * (2.0 * barrier + 1.0 - start))
    fall = 1.0 - rise
    if rise == 1.0:
        return np.full(np.shape(start), np.inf)
    ratio = rise / fall
    with np.errstate(over="ignore"):
        powers = ratio ** (barrier - start + 1.0) * (ratio**start - 1.0) / (ratio - 1.0)
    return np.asarray((powers - start) / (rise - fall))


def expected_updates(k: int, n: Reals, window: float, rise: float = 0.5) -> Reals:
    """Equation 12: Z'(s), how many updates it takes until fewer than k objects are left.

    From n down to k - 1, with a barrier at 2n; an update moves with probability prob = n/window.
    An even walk: (n-k+1)·2n/prob + (n-k+1)·(n-k+2)/prob.
    """
    n = np.asarray(n, np.float64)
    prob = n / window
    return np.asarray(moves(n - k + 1.0, 2.0 * n - k + 1.0, rise) / prob)


def reevaluation_cost(k: int, n: Reals, window: float, search: float, rise: float = 0.5) -> Reals:
    """Equation 10: C_re(s) = C_topk(s) / Z(s), and Z = Z' (theorem 6)."""
    return np.asarray(search / expected_updates(k, n, window, rise))


def total_cost(k: int, n: Reals, window: float, search: float, rise: float = 0.5) -> Reals:
    """Equation 13: C(s) = C_sm(s) + C_re(s)."""
    upkeep = maintenance_cost(k, n, window)
    return np.asarray(upkeep + reevaluation_cost(k, n, window, search, rise))


def best_size(k: int, window: int, search: float, rise: float = 0.5) -> int:
    """The n from k to `window` with the least total cost: a descent with steps that double.

    The cost falls with n first, and rises from then on.
    """

    def cost(n: int) -> float:
        return float(total_cost(k, np.asarray(float(n)), float(window), search, rise))

    at, step, most = k, 1, max(window, k)
    here = cost(at)
    while step:
        there = cost(at + step) if at + step <= most else np.inf
        if there < here:
            at, here, step = at + step, there, 2 * step
        elif step > 1:
            step //= 2
        else:
            below = cost(at - 1) if at > k else np.inf
            if below >= here:
                break
            at, here = at - 1, below
    return at
