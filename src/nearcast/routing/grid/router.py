"""The router that deals by a table of cells and words; planners make the table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index import LocalIndex
from nearcast.kernels.slots import PARITY
from nearcast.model.space import Space
from nearcast.routing.arrays import Arrays, reference
from nearcast.routing.balance import Balance
from nearcast.routing.base import Example, Mask, Placement, Router, Routes, Sample
from nearcast.routing.grid.both import unpack_both
from nearcast.routing.grid.cells import comes_to
from nearcast.routing.grid.leaving import leaving_by_table
from nearcast.routing.grid.reporting import reported_by
from nearcast.routing.grid.survey import RegionSurvey, join, survey_at, survey_of
from nearcast.routing.grid.table import (
    GridTable,
    Pairs,
    pack,
    place_rows,
    route,
    unpack,
)
from nearcast.routing.hash import home_of
from nearcast.routing.orders import TABLE, Leaving, Order, Plan, Slots
from nearcast.routing.sampling import sample_of
from nearcast.wire.changes import Changes
from nearcast.wire.tables import ObjectColumns, object_columns


class GridRouter(Router):
    """Copies of subscriptions and objects by a `GridTable`, which is what `plan` makes.

    Before there is a plan a subscription goes to the shard that its id's hash names, and objects
    go to every shard. With one, every copy may report, and who does is decided match by match: two
    copies may see the same object, and the one at `table.owner` reports it.
    """

    by_id = False
    plans = True
    selective = True
    plans_from = 50_000

    def __init__(self, shards: int, table: bytes = b"") -> None:
        super().__init__(shards, table)
        self.both = unpack_both(table)
        self.grid: GridTable | None = unpack(self.both.new) if table else None
        self.old: GridTable | None = unpack(self.both.old) if self.both.old else None

    @abstractmethod
    def prepare(
        self, sample: Sample, survey: RegionSurvey, parameters: dict[str, float]
    ) -> GridTable:
        """The table for what was seen so far, with all parameters given."""

    def survey(self, index: LocalIndex, now: int, settled: int, space: Space) -> Arrays:
        """Boxes, words and ids of all subscriptions, also of ended ones that await late objects."""
        del now, space  # boxes say all
        slots = index.living(settled)
        return survey_of(index.rows(slots)[0], index.id_hashes(slots))._asdict()

    def join(self, surveys: list[Arrays], sample: Sample) -> RegionSurvey:
        """One survey of all shards, with each id once."""
        del sample  # which word is the rarest is found by the plan
        return join([RegionSurvey(**arrays) for arrays in surveys])

    def plan(self, sample: Sample, survey: RegionSurvey, parameters: Mapping[str, float]) -> Plan:
        """The table for what was seen so far; its bytes are also what a router is made from."""
        return Plan(pack(self.prepare(sample, survey, self.given(parameters))))

    def table_at(self, plan: Plan, path: str) -> bytes:
        """What stands for the file."""
        del plan  # all of it is in the file
        return reference(path)

    def place(self, controls: pa.RecordBatch, id_hash: NDArray[np.uint64]) -> Placement:
        """By hash before a plan, then one copy per owner of a cell and a posting word."""
        rows, shards = self.copies(survey_of(controls, id_hash))
        return Placement(rows, shards, np.ones(len(rows), bool))

    def copies(self, survey: RegionSurvey) -> Pairs:
        """(rows, shards): where the subscriptions of a survey go, by row, then shard."""
        if self.grid is None:
            home = home_of(survey.id_hash, self.shards)
            return np.arange(len(home)), home
        return place_rows(self.grid, survey)

    def stand(self, survey: RegionSurvey, parity: NDArray[np.bool_]) -> Pairs:
        """(rows, shards): where running subscriptions are, each by the table that placed it."""
        if self.old is None:
            return self.copies(survey)
        mine = parity == self.both.parity
        by_new, by_old = self.copies(survey), place_rows(self.old, survey)
        keep_new, keep_old = mine[by_new[0]], ~mine[by_old[0]]
        rows = np.concatenate([by_new[0][keep_new], by_old[0][keep_old]])
        shards = np.concatenate([by_new[1][keep_new], by_old[1][keep_old]])
        order = np.lexsort((shards, rows))
        return rows[order], shards[order]

    def table_of(self, parity: bool) -> GridTable | None:
        """The table that subscriptions of a parity go by."""
        return self.grid if self.old is None or parity == self.both.parity else self.old

    def route(self, objects: pa.RecordBatch) -> Routes | None:
        """To every shard before a plan, then to the owners of the object's words in its cell, by
        all tables in use (once or twice is the same)."""
        if self.grid is None:
            return None
        found = [route(t, objects) for t in (self.grid, self.old) if t is not None]
        return Routes(*(np.concatenate(columns) for columns in zip(*found)))

    @property
    def mark(self) -> int:
        """The parity of the strategy that places."""
        return PARITY if self.both.parity else 0

    def sees(self, shard: int, objects: ObjectColumns) -> Mask | None:
        """What any table in use sends there; all before a plan."""
        if self.grid is None:
            return None
        o = objects
        mine = comes_to(self.grid, shard, o.x, o.y, o.word_offsets, o.words)
        if self.old is not None:
            mine |= comes_to(self.old, shard, o.x, o.y, o.word_offsets, o.words)
        return mine

    def reports(
        self, shard: int, index: LocalIndex, objects: ObjectColumns, changes: Changes
    ) -> Mask | None:
        """Each match by the table that placed its subscription."""
        if self.grid is None:
            return super().reports(shard, index, objects, changes)
        rows = objects.order[changes.order]
        mine = reported_by(self.grid, shard, objects, rows, changes.slot, index.wanted_words)
        if self.old is not None:
            by_old = index.parity(changes.slot) != self.both.parity
            also = reported_by(self.old, shard, objects, rows, changes.slot, index.wanted_words)
            mine = np.where(by_old, also, mine)
        return mine

    def tally(self, index: LocalIndex, settled: int) -> tuple[int, int]:
        """By the parity that subscriptions carry."""
        if self.old is None:
            return 0, 0
        living = index.living(settled)
        return len(living), int((index.parity(living) != self.both.parity).sum())

    def leaving(self, order: Order, shard: int, index: LocalIndex, slots: Slots) -> Leaving:
        """What the table of an order puts elsewhere."""
        return leaving_by_table(self, self.with_table(order[TABLE]), shard, index, slots)

    def warm_up(self, example: Example, balance: Balance) -> None:
        """A plan, copies, routes, and who reports."""
        del balance  # it needs no more with one
        index, objects = example()
        columns = object_columns(objects)
        held = survey_at(index, np.arange(len(index)))
        planned = self.with_table(self.plan(sample_of(columns), held, {}).data)
        assert planned.grid is not None
        planned.copies(held)
        planned.route(objects)
        none = np.empty(0, np.int64)
        reported_by(planned.grid, 0, columns, none, none, index.wanted_words)
        planned.sees(0, columns)
