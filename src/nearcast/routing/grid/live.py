"""Live balance of routers by cells and words: when shards gather, and the table that follows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from nearcast.routing.arrays import Arrays, reference
from nearcast.routing.balance import (
    CELLS,
    Balance,
    Change,
    Counts,
    Look,
    Picture,
    Rest,
    imbalance,
)
from nearcast.routing.base import Example, Sample, Seen
from nearcast.routing.grid.both import Both, pack_both
from nearcast.routing.grid.cells import refined, touching
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.survey import RegionSurvey, survey_at
from nearcast.routing.grid.table import GridTable, pack
from nearcast.routing.sampling import sample_of
from nearcast.wire.tables import object_columns

_DRAWN = 64  # cells along each axis that a picture has of a table, at most


class Period(NamedTuple):
    """What a shard knows of a batch, for decisions."""

    objects: Sample  # that came to it
    held: RegionSurvey  # subscriptions at the end
    inserted: RegionSurvey
    deleted: RegionSurvey


class Adjustment(NamedTuple):
    """A new table, and the decisions that led to it, each as people may read it."""

    table: GridTable
    decisions: list[dict[str, Any]]
    before: NDArray[np.float64]  # load of each shard as the router sees it
    after: NDArray[np.float64]  # and as it should become


class BalancingRouter(GridRouter):
    """A router that adjusts its table to the loads of shards."""

    @abstractmethod
    def gather_cells(self, shard: int, period: Period, balance: Balance) -> Arrays:
        """At a shard: what `rebalance` must know of it."""

    @abstractmethod
    def rebalance(
        self, reported: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Adjustment | None:
        """What to change, from what each shard gathered and counted; None: nothing."""

    def look(
        self, batch: int, counts: list[Counts], balance: Balance, rest: Rest | None
    ) -> Look | None:
        """Gather statistics of cells if loads differ too much and no recent look was in vain."""
        loads = [c.load for c in counts]
        resting = rest is not None and batch < rest.until and imbalance(loads) < 1.1 * rest.ratio
        return None if resting or not uneven(loads, balance) else Look(CELLS)

    def gather(self, question: str, shard: int, seen: Seen, balance: Balance) -> Arrays:
        """Statistics of cells."""
        del question  # there is one only
        return self.gather_cells(shard, period_of(seen), balance)

    def decide(
        self, question: str, reported: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Change | None:
        """An adjustment of the table in use."""
        del question  # there is one only
        return self.change_of(self.rebalance(reported, counts, balance))

    def change_of(self, found: Adjustment | None, beside: bool = False) -> Change | None:
        """An adjustment as the engine takes it; `beside`: the present table stays in use."""
        if found is None:
            return None
        assert self.grid is not None
        bounds = self.grid.bounds.tolist()
        before, after = refined(self.grid, len(found.table.cells)), found.table
        picture = Picture(bounds, drawn(before), drawn(after))
        data = pack(found.table)
        return Change(found.decisions, found.before, found.after, picture, data, beside)

    def table_after(self, change: Change, path: str, since: int) -> bytes:
        """The new table in place of the present one or beside it; no new one: the old one ends."""
        if not change.data:
            return pack_both(msgspec.structs.replace(self.both, old=b""))
        new = reference(path)
        if not change.beside:
            return pack_both(msgspec.structs.replace(self.both, new=new))
        # It moves no subscription: each stays with the table that placed it.
        return pack_both(Both(new, self.both.new, not self.both.parity, since))

    def picture(self) -> Picture:
        """The cells of the table that places."""
        assert self.grid is not None
        cells = drawn(self.grid)
        return Picture(self.grid.bounds.tolist(), cells, cells)

    def warm_up(self, example: Example, balance: Balance) -> None:
        """With a balance also statistics, an adjustment and what leaves by it."""
        super().warm_up(example, balance)
        if not balance.on:
            return
        index, objects = example()
        held = survey_at(index, np.arange(len(index)))
        sample = sample_of(object_columns(objects))
        planned = self.with_table(self.plan(sample, held, {}).data)
        assert planned.grid is not None
        eager = replace(balance, threshold=1.0)
        period = Period(sample, held, held, held)
        reported = [planned.gather_cells(shard, period, eager) for shard in range(planned.shards)]
        heavy = Counts(objects.num_rows, 0, 1, 1, 1, 1)
        planned.rebalance(reported, [heavy] * planned.shards, eager)
        every = np.ones(planned.grid.cells.shape, bool)
        touching(planned.grid, every, held.box_offsets, held.boxes)


def uneven(loads: list[float], balance: Balance) -> bool:
    """Whether the largest load is worth a look."""
    return max(loads) >= balance.least and imbalance(loads) > balance.threshold


def period_of(seen: Seen, ids: bool = False) -> Period:
    """What a shard has seen as surveys; `ids`: of subscriptions held with the hashes of ids."""
    held = survey_at(seen.index, seen.held)
    if ids:
        held = held._replace(id_hash=seen.index.id_hashes(seen.held))
    inserted, ended = (survey_at(seen.index, slots) for slots in (seen.inserted, seen.ended))
    return Period(seen.objects, held, inserted, ended)


def drawn(table: GridTable) -> list[list[int]]:
    """The shard of each cell for a picture, every n-th cell of a fine grid."""
    step = -(-len(table.cells) // _DRAWN)
    cells: list[list[int]] = np.maximum(table.cells[::step, ::step], -1).tolist()
    return cells
