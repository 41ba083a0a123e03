"""What the three routers of DkM-SKS share: the table, and dealing by C(w).

Before the first plan a subscription goes where its id's hash says. With a plan the main server
of the paper, here whoever deals a batch, keeps C(w) of each worker and gives each new subscription
to the worker with the least (section 3.1). Objects go to every worker (section 2).
"""

from __future__ import annotations

from abc import abstractmethod

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.routing.base import CanPlan, Placement, Router, Sample, Survey
from nearcast.routing.dkm.arrays import Arrays, load, pack, unpack
from nearcast.routing.dkm.assignment import deal
from nearcast.wire.tables import lists, numbers

Numbers = NDArray[np.int64]
Costs = NDArray[np.float64]


class Table(msgspec.Struct, omit_defaults=True):
    """A routing table: where the plan is, and how loaded the workers are by it."""

    plan: str = ""  # path of a file
    data: bytes = b""  # the plan itself, where there is no file
    costs: list[float] = []  # C(w)


def table_of_plan(costs: Costs, *, path: str = "", data: bytes = b"") -> bytes:
    """The table for a plan whose first part lies at `path` (or is `data`)."""
    return msgspec.msgpack.encode(Table(path, data, costs.tolist()))


class PlannedRouter(Router, CanPlan):
    """A router of the paper: a cost model for new subscriptions, a way to deal the running ones."""

    paper = "DkM-SKS (Tsuruoka et al.)"
    kinds = ("knn",)
    by_id = False

    def __init__(self, shards: int, table: bytes = b"") -> None:
        super().__init__(shards, table)
        self._table = msgspec.msgpack.decode(table, type=Table) if table else Table()

    @abstractmethod
    def prepare(
        self, sample: Sample, survey: Survey, parameters: dict[str, float]
    ) -> tuple[Arrays, Numbers, Costs]:
        """`plan` with all parameters given, and with the arrays that its first part holds."""

    @abstractmethod
    def estimate(self, plan: Arrays, controls: pa.RecordBatch) -> Costs:
        """`costs` by a plan."""

    def estimate_new(self, plan: Arrays, controls: pa.RecordBatch) -> Costs:
        """What subscriptions that come now, without results, are dealt by: their `costs`."""
        return self.estimate(plan, controls)

    def plan(
        self, sample: Sample, survey: Survey, parameters: dict[str, float]
    ) -> tuple[bytes, Numbers, Costs]:
        """(what costs of later subscriptions need, worker of each subscription, C(w) of each)."""
        arrays, workers, costs = self.prepare(sample, survey, self.given(parameters))
        return pack(arrays), workers, costs

    def costs(self, controls: pa.RecordBatch) -> Costs:
        """Estimated costs of new subscriptions, rows of CONTROLS; 0 before there is a plan."""
        if not self.table or controls.num_rows == 0:
            return np.zeros(controls.num_rows)
        return self.estimate(self._plan(), controls)

    def _plan(self) -> Arrays:
        return load(self._table.plan) if self._table.plan else unpack(self._table.data)

    def place(self, controls: pa.RecordBatch, id_hash: NDArray[np.uint64]) -> Placement:
        """One copy: by hash before a plan, then each to the worker with the least C(w)."""
        n = controls.num_rows
        costs = None
        if self.table:
            costs = self.estimate_new(self._plan(), controls) if n else np.zeros(0)
            workers, _ = deal(np.arange(n), costs, np.array(self._table.costs))
        else:
            workers = (id_hash % np.uint64(self.shards)).astype(np.int64)
        return Placement(np.arange(n), workers, np.ones(n, bool), costs)

    def adjusted(self, added: Costs) -> bytes:
        """The table with `added` on top of C(w): costs that came, less costs that went.

        C(w) stays at 0 or above: what leaves is estimated anew and may seem to cost more than
        when it came.
        """
        if not self.table:
            return b""
        costs = np.maximum(np.array(self._table.costs) + added, 0.0)
        return msgspec.msgpack.encode(msgspec.structs.replace(self._table, costs=costs.tolist()))


def points_of(controls: pa.RecordBatch) -> tuple[Costs, NDArray[np.int64]]:
    """(places float64[n, 2], k int64[n]) of knn subscriptions, rows of CONTROLS."""
    _, region = lists(controls["region"], np.float64)
    return region.reshape(-1, 2), numbers(controls["k"])
