"""The router that deals by a table of cells and words; planners make the table."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.routing.base import Placement, Router, Routes, Sample, Tunable
from nearcast.routing.grid.both import unpack_both
from nearcast.routing.grid.survey import RangeSurvey, survey_of
from nearcast.routing.grid.table import GridTable, Pairs, pack, place_rows, route, unpack


class GridRouter(Tunable, Router):
    """Copies of subscriptions and objects by a `GridTable`, which is what `plan` makes.

    Before there is a plan a subscription goes where its id's hash says, and objects everywhere.
    With one, every copy reports, and who reports what is decided match by match: two copies may
    see the same object, and the one at `table.decides` tells it.
    """

    by_id = False

    def __init__(self, shards: int, table: bytes = b"") -> None:
        super().__init__(shards, table)
        self.both = unpack_both(table)
        self.grid: GridTable | None = unpack(self.both.new) if table else None
        self.old: GridTable | None = unpack(self.both.old) if self.both.old else None

    @abstractmethod
    def prepare(
        self, sample: Sample, survey: RangeSurvey, parameters: dict[str, float]
    ) -> GridTable:
        """The table for what was seen so far, with all parameters given."""

    def plan(self, sample: Sample, survey: RangeSurvey, parameters: dict[str, float]) -> bytes:
        """The table for what was seen so far, as the bytes that a router is made from."""
        return pack(self.prepare(sample, survey, self.given(parameters)))

    def place(self, controls: pa.RecordBatch, id_hash: NDArray[np.uint64]) -> Placement:
        """By hash before a plan, then a copy at every owner of a cell and a hook."""
        rows, shards = self.copies(survey_of(controls, id_hash))
        return Placement(rows, shards, np.ones(len(rows), bool))

    def copies(self, survey: RangeSurvey) -> Pairs:
        """(rows, shards): where the subscriptions of a survey go, by row, then shard."""
        if self.grid is None:
            home = (survey.id_hash % np.uint64(self.shards)).astype(np.int64)
            return np.arange(len(home)), home
        return place_rows(self.grid, survey)

    def stand(self, survey: RangeSurvey, parity: NDArray[np.bool_]) -> Pairs:
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
