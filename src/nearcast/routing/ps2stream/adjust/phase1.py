"""Phase I of the local adjustment (section V-A): splits and merges that lower the total load."""

from __future__ import annotations

import numpy as np

from nearcast.routing.ps2stream.adjust.decisions import (
    MERGE,
    SPLIT,
    Decision,
    owns,
    window,
)
from nearcast.routing.ps2stream.adjust.situation import (
    Settings,
    Situation,
    follow,
    loads_after,
    loads_in,
    reach,
)
from nearcast.routing.ps2stream.adjust.stats import Reals, Words, cell_loads, row_of
from nearcast.routing.ps2stream.adjust.text import divide, holders


def phase1(
    situation: Situation, origin: int, target: int, settings: Settings
) -> tuple[Situation, list[Decision]]:
    """Look at G_p, the p most loaded cells of w_o, and do what lowers the total load.

    A cell without text-partitioning is split by text, and the smaller part goes to w_l. A cell
    with text-partitioning of which w_l has a part too is merged there. Neither is done if w_l
    would then have as much load as w_o had.
    """
    stats = situation.stats[origin]
    loads = cell_loads(stats, settings.costs)
    most = np.argsort(-loads, kind="stable")[: settings.p]
    decisions: list[Decision] = []
    for cell in stats.cells[most[loads[most] > 0]]:
        for kind in _kinds(situation, int(cell), origin, target, settings):
            decision = _proposal(situation, int(cell), kind, origin, target, settings)
            if decision is not None:
                decisions.append(decision)
                situation = follow(situation, decision, settings)
                break
    return situation, decisions


def _kinds(
    situation: Situation, cell: int, origin: int, target: int, settings: Settings
) -> list[str]:
    """What can be done with a cell."""
    held = int(situation.table.cells.flat[cell])
    if held >= 0:
        return [SPLIT] if held == origin else []
    table = situation.table
    if not owns(table, cell, origin):
        return []
    merge = [MERGE] if owns(table, cell, target) else []
    return merge + [SPLIT] if settings.deeper else merge


def _proposal(
    situation: Situation, cell: int, kind: str, origin: int, target: int, settings: Settings
) -> Decision | None:
    """The decision, if it is one that lowers the total load; otherwise None."""
    stats = situation.stats[origin]
    words = stats.words[:0]
    if kind == SPLIT:
        words = split_words(situation, cell, origin, settings)
        if len(words) == 0:
            return None
    before = loads_in(situation, settings)
    decision = Decision(kind, origin, target, np.array([cell]), words, before, before, 0, 1, "")
    after = loads_after(situation, decision, settings)
    if not _lowers(before, after, origin, target, settings.slack):
        return None
    row = row_of(stats, cell)
    size = int(stats.size[row])
    if kind == SPLIT:
        mine = slice(stats.word_offsets[row], stats.word_offsets[row + 1])
        moving = np.isin(stats.words[mine], words)
        size = min(size, int(stats.word_size[mine][moving].sum()))
    return decision._replace(after=after, size=size, reason=_reason(decision, after))


def split_words(situation: Situation, cell: int, origin: int, settings: Settings) -> Words:
    """The words of the smaller of g_1 and g_2; none if the cell cannot be judged or divided."""
    stats = situation.stats[origin]
    row = row_of(stats, cell)
    mine = slice(stats.word_offsets[row], stats.word_offsets[row + 1])
    words, held = stats.words[mine], stats.word_held[mine]
    seen = reach(situation, cell, window(situation.table, cell), [origin], settings.discard)[0]
    if len(words) < 2 or seen == 0:
        return words[:0]
    c = settings.costs
    updates = float(c.c3 * stats.inserted[row] + c.c4 * stats.deleted[row])
    parts = divide(
        held,
        holders(words, situation.sample, cell),
        c,
        updates / max(float(held.sum()), 1.0),
        float(stats.objects[row]) / float(seen),
        settings.sigma,
    )
    sizes = np.bincount(parts, stats.word_size[mine], 2)
    lighter: Words = words[parts == (1 if sizes[1] <= sizes[0] else 0)]
    return lighter


def _lowers(before: Reals, after: Reals, origin: int, target: int, slack: float) -> bool:
    if not after.sum() < before.sum() * (1.0 + slack):
        return False
    return bool(max(after[origin], after[target]) < before[origin])


def _reason(decision: Decision, after: Reals) -> str:
    cell, total = int(decision.cells[0]), float(decision.before.sum())
    if decision.kind == SPLIT:
        what = f"cell {cell} split by text, {len(decision.words)} words"
    else:
        what = f"part of cell {cell} merged with the part there"
    return (
        f"{what}: from shard {decision.origin} to shard {decision.target}, "
        f"total load {total:.6g} to {float(after.sum()):.6g}"
    )
