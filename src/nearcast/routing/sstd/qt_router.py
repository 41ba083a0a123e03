"""The router that deals by a QT-tree (SSTD, section 4.2), and plans it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index import LocalIndex
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.routing.arrays import Arrays, reference
from nearcast.routing.balance import Balance, Picture
from nearcast.routing.base import Example, Mask, Placement, Router, Routes, Sample
from nearcast.routing.grid.survey import (
    RegionSurvey,
    bounds_of,
    join,
    survey_at,
    survey_of,
    take,
)
from nearcast.routing.grid.table import Pairs
from nearcast.routing.hash import home_of
from nearcast.routing.orders import TABLE, Leaving, Order, Plan, Slots
from nearcast.routing.sampling import sample_of
from nearcast.routing.sstd.construction import allocate_leaves, qt_tree_construction
from nearcast.routing.sstd.draft import flattened
from nearcast.routing.sstd.drawing import drawn
from nearcast.routing.sstd.leaving import leaving_by_tree
from nearcast.routing.sstd.object_routing import Lists, lists_of, route_objects
from nearcast.routing.sstd.partitioning import Workloads
from nearcast.routing.sstd.qt_tree import QtTree, pack, unpack
from nearcast.routing.sstd.queries import joined, queries_of
from nearcast.routing.sstd.query_routing import query_shards
from nearcast.routing.sstd.statistics import QueryStatistics
from nearcast.wire.tables import ObjectColumns, lists, numbers, object_columns

QUERIES = 200_000  # that J is made from; of more, every n-th stands for n


class QtRouter(Router):
    """Copies of subscriptions at all leaves that they overlap, each object at one leaf.

    Before there is a plan a subscription goes to the shard that its id's hash names, and objects
    go to every shard. With one, an object is seen at one shard only, so all copies may report: the
    one that sees the object does.

    `theta`: leaves of the tree; `asks`: the part of all queries that are asks (SRQ), taken to be
    like the subscriptions; `lifetime`: how long subscriptions live, in times of the sample's.
    """

    plans = True
    selective = True
    stores = True
    plans_from = 50_000
    parameters: ClassVar[Mapping[str, float]] = {"theta": 64.0, "asks": 0.5, "lifetime": 1.0}

    def __init__(self, shards: int, table: bytes = b"") -> None:
        super().__init__(shards, table)
        self.tree: QtTree | None = unpack(table) if table else None

    @property
    @abstractmethod
    def methods(self) -> tuple[int, ...]:
        """By which nodes may be split: `qt_tree.SPATIAL`, `TEXTUAL`."""

    # -- plans ---------------------------------------------------------------------------------

    def survey(self, index: LocalIndex, now: int, settled: int, space: Space) -> Arrays:
        """Boxes, words and ids of all subscriptions, also of ended ones that await late objects."""
        del now, space  # boxes say all
        slots = index.living(settled)
        return survey_of(index.rows(slots)[0], index.id_hashes(slots))._asdict()

    def join(self, surveys: list[Arrays], sample: Sample) -> RegionSurvey:
        """One survey of all shards, with each id once."""
        del sample  # statistics are made by the plan
        return join([RegionSurvey(**arrays) for arrays in surveys])

    def plan(self, sample: Sample, survey: RegionSurvey, parameters: Mapping[str, float]) -> Plan:
        """Statistics J, the QT-tree by Algorithm 1, its leaves dealt by Karmarkar–Karp."""
        given = self.given(parameters)
        bounds = bounds_of(sample, survey, self.bounds)
        every = -(-len(survey.conjunction) // QUERIES) or 1
        some = take(survey, np.arange(0, len(survey.conjunction), every))
        j = self.statistics(bounds, [(some, float(every))], given)
        workloads = Workloads(j, sample, np.ones(len(sample.x)))
        root = qt_tree_construction(workloads, int(given["theta"]), self.methods)
        allocate_leaves(root, self.shards)
        return Plan(pack(flattened(root, bounds, j.lengths)))

    def planned(self, sample: Sample, index: LocalIndex, slots: Slots) -> bytes:
        """The table of a plan by objects and some subscriptions of one index."""
        return self.plan(sample, survey_at(index, slots), {}).data

    def statistics(
        self,
        bounds: NDArray[np.float64],
        surveys: Sequence[tuple[RegionSurvey, float]],
        given: Mapping[str, float],
    ) -> QueryStatistics:
        """J by subscriptions, and how many each of a survey stands for."""
        if not 0 <= given["asks"] <= 1:
            raise NearcastError(f"plan asks: {given['asks']:g} is not between 0 and 1")
        mix = given["asks"], given["lifetime"]
        return QueryStatistics(bounds, joined([queries_of(s, w, *mix) for s, w in surveys]))

    def table_at(self, plan: Plan, path: str) -> bytes:
        """What stands for the file."""
        del plan  # all of it is in the file
        return reference(path)

    # -- who gets what -------------------------------------------------------------------------

    def place(self, controls: pa.RecordBatch, id_hash: NDArray[np.uint64]) -> Placement:
        """By hash before a plan, then one copy per worker of a leaf that it overlaps."""
        rows, shards = self.copies(survey_of(controls, id_hash))
        return Placement(rows, shards, np.ones(len(rows), bool))

    def copies(self, survey: RegionSurvey) -> Pairs:
        """(rows, shards): where the subscriptions of a survey go, by row, then shard."""
        if self.tree is None:
            home = home_of(survey.id_hash, self.shards)
            return np.arange(len(home)), home
        return query_shards(self.tree, survey, self.shards)

    def route(self, objects: pa.RecordBatch) -> Routes | None:
        """To every shard before a plan, then to the worker of one leaf."""
        if self.tree is None:
            return None
        x, y = numbers(objects["x"]), numbers(objects["y"])
        shards = self._shards_of(x, y, *lists(objects["words"], np.uint64))
        return Routes(np.arange(len(shards)), shards)

    def sees(self, shard: int, objects: ObjectColumns) -> Mask | None:
        """What the tree sends there; all before a plan."""
        if self.tree is None:
            return None
        o = objects
        found: Mask = self._shards_of(o.x, o.y, o.word_offsets, o.words) == shard
        return found

    def _shards_of(
        self,
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        word_offsets: NDArray[np.int64],
        words: NDArray[np.uint64],
    ) -> NDArray[np.int64]:
        assert self.tree is not None
        leaves = route_objects(self.tree, self._lists, x, y, word_offsets, words)
        return self.tree.shard[leaves].astype(np.int64)

    @cached_property
    def _lists(self) -> Lists:
        """Keyword lists as the table has them. Routing leaves them as they are: all routers and
        shards, and a batch that is repeated, must find the same leaf for an object."""
        assert self.tree is not None
        return lists_of(self.tree)

    # -- moves ---------------------------------------------------------------------------------

    def leaving(self, order: Order, shard: int, index: LocalIndex, slots: Slots) -> Leaving:
        """What the tree of an order puts elsewhere."""
        return leaving_by_tree(self, self.with_table(order[TABLE]), shard, index, slots)

    def picture(self) -> Picture:
        """The worker of each place."""
        assert self.tree is not None
        cells = drawn(self.tree)
        return Picture(self.tree.bounds.tolist(), cells, cells)

    # -- warm-up -------------------------------------------------------------------------------

    def warm_up(self, example: Example, balance: Balance) -> None:
        """A plan, copies, routes, and what leaves by it."""
        del balance  # it needs no more with one
        index, objects = example()
        columns = object_columns(objects)
        slots = np.arange(len(index))
        planned = self.with_table(self.planned(sample_of(columns), index, slots))
        planned.route(objects)
        planned.sees(0, columns)
        leaving_by_tree(self, planned, 0, index, slots)
