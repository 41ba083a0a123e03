"""Phase II of the local adjustment (section V-A): Minimum Cost Migration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nearcast.routing.ps2stream.adjust.decisions import MIGRATE, Decision
from nearcast.routing.ps2stream.adjust.dp import dp
from nearcast.routing.ps2stream.adjust.gr import gr
from nearcast.routing.ps2stream.adjust.ra import ra
from nearcast.routing.ps2stream.adjust.selection import Selection
from nearcast.routing.ps2stream.adjust.si import si
from nearcast.routing.ps2stream.adjust.situation import Settings, Situation, loads_after, loads_in
from nearcast.routing.ps2stream.adjust.stats import Numbers, Reals, cell_loads

SELECTORS: dict[str, Callable[[Reals, Numbers, float, int], Selection]] = {
    "DP": dp,
    "GR": gr,
    "SI": si,
    "RA": ra,
}
TRIES = 16  # choices that are refused before giving up


def load_to_move(most: float, least: float, aim: float) -> float:
    """τ: the least load that must go from w_o to w_l for L_o / L_l to be at most `aim`."""
    return max((most - aim * least) / (1.0 + aim), 0.0)


def phase2(situation: Situation, origin: int, target: int, settings: Settings) -> Decision | None:
    """The cells of w_o that go to w_l; None: no choice makes the larger of both loads smaller.

    Definition 4 has no upper bound: a set of small size may have so much load that w_l is then
    worse off than w_o was, and the next adjustment would bring it back. Such a set is refused, and
    another chosen without its most loaded cell. Where no set reaches τ, all cells go that may.
    """
    before = loads_in(situation, settings)
    tau = load_to_move(before[origin], before[target], settings.aim or settings.sigma)
    stats = situation.stats[origin]
    loads = cell_loads(stats, settings.costs)
    rows = _candidates(situation, origin, loads, before[origin] - before[target])
    steps = 0
    for _ in range(TRIES):
        if len(rows) == 0 or tau <= 0:
            return None
        chosen = SELECTORS[settings.selector](loads[rows], stats.size[rows], tau, settings.seed)
        steps += chosen.steps
        mine = rows[chosen.cells] if chosen.reached else rows
        decision = Decision(
            MIGRATE, origin, target, stats.cells[mine], stats.words[:0],
            before, before, int(stats.size[mine].sum()), steps, "",
        )  # fmt: skip
        after = loads_after(situation, decision, settings)
        if max(after[origin], after[target]) < before[origin]:
            reason = _reason(decision, settings, float(loads[mine].sum()), tau, chosen)
            return decision._replace(after=after, reason=reason)
        rows = rows[rows != mine[np.argmax(loads[mine])]]
    return None


def _candidates(situation: Situation, origin: int, loads: Reals, below: float) -> Numbers:
    """Rows of w_o's cells that have a load, but not so much that moving one overloads w_l."""
    held = situation.table.cells.ravel()[situation.stats[origin].cells]
    return np.flatnonzero((loads > 0) & (loads < below) & ((held == origin) | (held < 0)))


def _reason(
    decision: Decision, settings: Settings, load: float, tau: float, chosen: Selection
) -> str:
    most, least = decision.before[decision.origin], decision.before[decision.target]
    times = f"{most / least:.2f} times the" if least > 0 else "all the"
    short = "" if chosen.reached else ", which is all that can move"
    by = settings.selector
    if by == "DP" and not chosen.exact:
        by = "GR, since DP outgrew its limit"
    return (
        f"shard {decision.origin} has {times} load of shard {decision.target}, more than "
        f"{settings.sigma:g}: {len(decision.cells)} cells with a load of {load:.6g} for "
        f"{tau:.6g} wanted, {decision.size} bytes, by {by}{short}"
    )
