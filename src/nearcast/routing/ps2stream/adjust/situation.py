"""What adjustments are decided on, and what it becomes by a decision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.routing.grid.table import GridTable
from nearcast.routing.ps2stream.adjust.decisions import SPLIT, Decision, apply, owns, window
from nearcast.routing.ps2stream.adjust.stats import (
    CellObjects,
    CellStats,
    Costs,
    Numbers,
    Reals,
    Words,
    join,
    row_of,
    take,
    without,
    worker_load,
)
from nearcast.routing.ps2stream.adjust.text import count_owners
from nearcast.routing.ps2stream.adjust.touched import Touched, copies_at


class Settings(NamedTuple):
    """The settings of a local adjustment."""

    costs: Costs
    sigma: float = 1.5  # the most that L_max / L_min may be
    aim: float = 0.0  # L_o / L_l that Phase II moves for; 0: sigma, so as little as will do
    p: int = 8  # cells that Phase I looks at
    selector: str = "GR"
    seed: int = 0  # of RA
    slack: float = 0.0  # share by which Phase I may raise the total; the paper's is 0
    deeper: bool = False  # Phase I may split a part that is split already; not in the paper
    discard: bool = False  # objects only go by words that subscriptions are posted under (H2)


class Situation(NamedTuple):
    """A table, and what its shards did in a period. `sample`: recent objects, for Phase I.

    With `touched`, an update costs once at each shard that it is sent to; without, cell by cell.
    """

    table: GridTable
    stats: list[CellStats]  # of each shard
    sample: CellObjects
    touched: Touched | None = None


def follow(situation: Situation, decision: Decision, settings: Settings) -> Situation:
    """The situation after a decision: the new table, and what shards would then have done."""
    return situation._replace(
        table=apply(decision, situation.table), stats=forecast(situation, decision, settings)
    )


def forecast(situation: Situation, decision: Decision, settings: Settings) -> list[CellStats]:
    """What shards would have done with the table after `decision`.

    A cell that is one shard's moves as it is. How many objects reach a part of a cell is
    estimated from the sample; without one, a part that is joined brings all of its objects.
    """
    giver, taker = situation.stats[decision.origin], situation.stats[decision.target]
    rows = np.flatnonzero(np.isin(giver.cells, decision.cells))
    if decision.kind == SPLIT:
        moved, stays = _halves(take(giver, rows), decision.words)
        given, taken = join(without(giver, rows), stays), join(taker, moved)
    else:
        given, taken = without(giver, rows), join(taker, take(giver, rows))
    stats = list(situation.stats)
    stats[decision.origin], stats[decision.target] = given, taken
    tables: dict[int, tuple[GridTable, GridTable]] = {}  # by what a cell holds
    for cell in giver.cells[rows]:
        held = int(situation.table.cells.flat[cell])
        if held not in tables:
            now = window(situation.table, int(cell))
            tables[held] = now, apply(decision._replace(cells=np.zeros(1, np.int64)), now)
        if decision.kind == SPLIT or owns(tables[held][0], 0, decision.target):
            _estimate(situation, decision, int(cell), tables[held], settings.discard, stats)
    return stats


def load_at(situation: Situation, shard: int, settings: Settings) -> float:
    """The load of a shard, with the copies of updates that the table sends to it."""
    stats, touched = situation.stats[shard], situation.touched
    if touched is None:
        return worker_load(stats, settings.costs)
    matching = worker_load(stats, settings.costs._replace(c3=0.0, c4=0.0))
    return matching + touched.each * copies_at(situation.table, stats, touched.counts, shard)


def loads_in(situation: Situation, settings: Settings) -> Reals:
    """The load of each shard."""
    return np.array([load_at(situation, n, settings) for n in range(len(situation.stats))])


def loads_after(situation: Situation, decision: Decision, settings: Settings) -> Reals:
    """What the loads `decision.before` become by a decision: those of two shards change."""
    after, loads = follow(situation, decision, settings), decision.before.copy()
    for shard in (decision.origin, decision.target):
        loads[shard] = load_at(after, shard, settings)
    return loads


def reach(
    situation: Situation, cell: int, table: GridTable, shards: list[int], discard: bool
) -> Numbers:
    """How many sampled objects of a cell go to each of `shards` by `table`, a window on it."""
    used = [_words_of(situation.stats[shard], cell) for shard in shards]
    return count_owners(
        table,
        int(table.cells[0, 0]),
        situation.sample,
        cell,
        np.array(shards),
        np.unique(np.concatenate(used)),
        discard,
    )


def _estimate(
    situation: Situation,
    decision: Decision,
    cell: int,
    tables: tuple[GridTable, GridTable],
    discard: bool,
    stats: list[CellStats],
) -> None:
    """Set the objects of both shards in a cell: as many for each sampled one as before."""
    shards = [decision.origin, decision.target]
    before = reach(situation, cell, tables[0], shards, discard)
    if before.sum() == 0:
        return
    per = sum(_objects(situation.stats[shard], cell) for shard in shards) / before.sum()
    after = reach(situation, cell, tables[1], shards, discard)
    for shard, count in zip(shards, after, strict=True):
        row = row_of(stats[shard], cell)
        if row >= 0:
            stats[shard].objects[row] = per * count


def _halves(whole: CellStats, words: Words) -> tuple[CellStats, CellStats]:
    """One row as two: (these words, the others). Both have all the objects, for now.

    A subscription under words of both counts in both, but none counts twice in one.
    """
    if len(whole.cells) == 0:
        return whole, whole
    mine = np.isin(whole.words, words)
    share = float(whole.word_held[mine].sum()) / max(float(whole.word_held.sum()), 1.0)
    return _half(whole, mine, share), _half(whole, ~mine, 1.0 - share)


def _half(whole: CellStats, mine: np.ndarray, share: float) -> CellStats:
    held, size = whole.word_held[mine], whole.word_size[mine]
    return whole._replace(
        held=np.minimum(whole.held, held.sum()),
        inserted=whole.inserted * share,
        deleted=whole.deleted * share,
        size=np.minimum(whole.size, size.sum()),
        word_offsets=np.array([0, mine.sum()], np.int64),
        words=whole.words[mine],
        word_held=held,
        word_size=size,
    )


def _objects(stats: CellStats, cell: int) -> float:
    row = row_of(stats, cell)
    return float(stats.objects[row]) if row >= 0 else 0.0


def _words_of(stats: CellStats, cell: int) -> Words:
    row = row_of(stats, cell)
    if row < 0:
        return stats.words[:0]
    return stats.words[stats.word_offsets[row] : stats.word_offsets[row + 1]]
