"""Global load adjustment (section V-B): when a new strategy begins, and when the old one goes.

Both are in use side by side until the old one is small (`routing.grid.both`): a subscription
belongs to the table that placed it. New ones are placed by the newest table alone; objects, and the
ends of subscriptions, go by all tables in use, once to each shard.
"""

from __future__ import annotations

from nearcast.routing.ps2stream.adjust.decisions import REPARTITION, RETIRE, Decision, about_all
from nearcast.routing.ps2stream.adjust.local import violation
from nearcast.routing.ps2stream.adjust.stats import Reals


def repartition(now: Reals, then: Reals, sigma: float, gain: float) -> Decision | None:
    """Does a new table pay? Loads of shards by the present and by the new one, on one sample.

    Yes if it saves at least `gain` (a share) of the total load, or if it keeps σ where the present
    one violates it and the total does not grow. The paper leaves the check open.
    """
    total, next_total = float(now.sum()), float(then.sum())
    saves = next_total <= total * (1.0 - gain) and next_total < total
    balances = (
        violation(now, sigma) is not None and violation(then, sigma) is None and next_total <= total
    )
    if not (saves or balances):
        return None
    why = f"total load {total:.6g} to {next_total:.6g} on a recent sample"
    if balances:
        why += f", and no shard has more than {sigma:g} times another's"
    return about_all(REPARTITION, now, then, why)


def retire(old_held: int, held: int, few: float, loads: Reals) -> Decision | None:
    """End the old strategy when it has at most `few` (a share) of all subscriptions."""
    if old_held > few * held:
        return None
    why = f"{old_held} of {held} subscriptions are left of the old strategy, at most {few:g} of all"
    return about_all(RETIRE, loads, loads, why)
