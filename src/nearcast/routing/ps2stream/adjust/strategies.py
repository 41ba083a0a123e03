"""Global load adjustment (section V-B): two strategies side by side until the old one is small.

What holds is a `Strategies`, which goes with a routing version: it names tables, by version. A
subscription belongs to the table that placed it. New ones are placed by the newest table alone;
objects, and the ends of subscriptions, go by all tables in use, once to each shard.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.routing.ps2stream.adjust.decisions import NOBODY, REPARTITION, RETIRE, Decision
from nearcast.routing.ps2stream.adjust.local import violation
from nearcast.routing.ps2stream.adjust.stats import Reals

NONE = -1


class Strategies(NamedTuple):
    """The tables in use."""

    new: int  # the version that places
    old: int = NONE  # the version that still routes for its subscriptions
    since: int = 0  # the batch from which `new` places


def places(strategies: Strategies) -> int:
    """The version that new subscriptions are placed by."""
    return strategies.new


def routes(strategies: Strategies) -> tuple[int, ...]:
    """The versions that objects are routed by."""
    if strategies.old == NONE:
        return (strategies.new,)
    return strategies.old, strategies.new


def check_due(strategies: Strategies, batch: int, every: int) -> bool:
    """Is it time to ask whether a repartitioning pays? Never while an old strategy is there."""
    return strategies.old == NONE and batch - strategies.since >= every


def repartition(
    strategies: Strategies, now: Reals, then: Reals, sigma: float, gain: float
) -> Decision | None:
    """Does a new table pay? Loads of shards by the present and by the new one, on one sample.

    Yes if it saves at least `gain` (a share) of the total load, or if it keeps σ where the present
    one violates it and the total does not grow. The paper leaves the check open.
    """
    total, next_total = float(now.sum()), float(then.sum())
    saves = next_total <= total * (1.0 - gain) and next_total < total
    balances = (
        violation(now, sigma) is not None and violation(then, sigma) is None and next_total <= total
    )
    if strategies.old != NONE or not (saves or balances):
        return None
    why = f"total load {total:.6g} to {next_total:.6g} on a recent sample"
    if balances:
        why += f", and no shard has more than {sigma:g} times another's"
    return _global(REPARTITION, strategies.new, now, then, 0, why)


def begin(strategies: Strategies, version: int, batch: int) -> Strategies:
    """A new table places from `batch` on; the present one becomes the old one."""
    if strategies.old != NONE:
        raise ValueError("two strategies are in use already: the old one must go first")
    return Strategies(version, strategies.new, batch)


def retire(
    strategies: Strategies, old_held: int, held: int, size: int, few: float, loads: Reals
) -> Decision | None:
    """Is the old strategy to go? When it has at most `few` (a share) of all subscriptions.

    `size`: bytes of the old subscriptions, which move to where the new table has them.
    """
    if strategies.old == NONE or old_held > few * held:
        return None
    why = f"{old_held} of {held} subscriptions are left of the old strategy, at most {few:g} of all"
    return _global(RETIRE, strategies.old, loads, loads, size, why)


def finish(strategies: Strategies) -> Strategies:
    """The new table alone, once the old subscriptions have moved."""
    return Strategies(strategies.new, NONE, strategies.since)


def replaced(strategies: Strategies, version: int, by: int) -> Strategies:
    """A local adjustment made table `by` from `version`; the part it plays stays the same."""
    new, old, since = strategies
    return Strategies(by if new == version else new, by if old == version else old, since)


def _global(kind: str, version: int, before: Reals, after: Reals, size: int, why: str) -> Decision:
    none, words = np.empty(0, np.int64), np.empty(0, np.uint64)
    return Decision(kind, version, NOBODY, NOBODY, none, words, before, after, size, 0, why)
