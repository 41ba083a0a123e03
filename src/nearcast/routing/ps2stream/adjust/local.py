"""Local load adjustment (section V-A): one overloaded worker gives to one that has little."""

from __future__ import annotations

import numpy as np

from nearcast.routing.ps2stream.adjust.decisions import Decision
from nearcast.routing.ps2stream.adjust.phase1 import phase1
from nearcast.routing.ps2stream.adjust.phase2 import phase2
from nearcast.routing.ps2stream.adjust.situation import Settings, Situation, follow, loads_in
from nearcast.routing.ps2stream.adjust.stats import Reals


def violation(loads: Reals, sigma: float) -> tuple[int, int] | None:
    """(w_o, w_l), the most and the least loaded, if L_max / L_min > σ; of equal ones the lowest."""
    if len(loads) < 2:
        return None
    most, least = int(np.argmax(loads)), int(np.argmin(loads))
    return (most, least) if loads[most] > sigma * loads[least] else None


def local_adjustment(situation: Situation, settings: Settings) -> tuple[Situation, list[Decision]]:
    """Both phases for w_o and w_l, if the constraint is violated.

    (The situation as it should be afterwards, decisions in the order they are to be applied in.)
    """
    pair = violation(loads_in(situation, settings), settings.sigma)
    if pair is None:
        return situation, []
    situation, decisions = phase1(situation, *pair, settings)
    if violation(loads_in(situation, settings)[list(pair)], settings.sigma) is not None:
        decision = phase2(situation, *pair, settings)
        if decision is not None:
            situation = follow(situation, decision, settings)
            decisions.append(decision)
    return situation, decisions


def adjust(
    situation: Situation, settings: Settings, rounds: int = 1
) -> tuple[Situation, list[Decision]]:
    """Local adjustments one after the other, each on what the one before should lead to.

    The paper makes one at a time. More of them at once reach a balance of many shards sooner.
    """
    decisions: list[Decision] = []
    for _ in range(rounds):
        situation, new = local_adjustment(situation, settings)
        if not new:
            break
        decisions += new
    return situation, decisions
