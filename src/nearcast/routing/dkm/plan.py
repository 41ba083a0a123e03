"""What the three routers of DkM-SKS share: the table, and dealing by C(w).

Before the first plan a subscription goes to the shard that its id's hash names. With a plan the
main server of the paper (here the task that deals a batch) keeps C(w) of each worker and gives each
new subscription to the worker with the least (section 3.1). Objects go to every worker (section 2).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index import LocalIndex
from nearcast.model.space import Space
from nearcast.routing.arrays import Arrays, load, pack, unpack
from nearcast.routing.base import Placement, Router, Sample
from nearcast.routing.costed import counted
from nearcast.routing.dealing import deal
from nearcast.routing.dkm.survey import Survey, join_surveys, survey
from nearcast.routing.hash import home_of
from nearcast.routing.orders import HOMES, Order, Plan, Slots
from nearcast.wire.tables import numbers

Numbers = NDArray[np.int64]
Costs = NDArray[np.float64]


class Table(msgspec.Struct, omit_defaults=True):
    """A routing table: where the plan is, and how loaded the workers are by it."""

    plan: str = ""  # name of a file, see `arrays.load`
    data: bytes = b""  # the plan itself, where there is no file
    costs: list[float] = []  # C(w)


def table_of_plan(costs: Costs, *, path: str = "", data: bytes = b"") -> bytes:
    """The table for a plan whose first part is the file `path` (or is `data`)."""
    return msgspec.msgpack.encode(Table(path, data, costs.tolist()))


class PlannedRouter(Router):
    """A router of the paper: a cost model for new subscriptions, a way to deal the running ones."""

    paper = "DkM-SKS (Tsuruoka et al.)"
    by_id = False
    plans = True
    keeps_costs = True

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

    def survey(self, index: LocalIndex, now: int, settled: int, space: Space) -> Arrays:
        """Places, balls and words of the subscriptions whose costs count."""
        del settled  # what has ended costs nothing any more
        slots = counted(index, now)
        return survey(*index.rows(slots), index.id_hashes(slots), space)

    def join(self, surveys: list[Arrays], sample: Sample) -> Survey:
        """One survey of all; a conjunction is known by its rarest word in the sample."""
        return join_surveys(surveys, sample)

    def plan(self, sample: Sample, survey: Survey, parameters: Mapping[str, float]) -> Plan:
        """What costs of later subscriptions need, the worker of each one, C(w) of each."""
        arrays, workers, costs = self.prepare(sample, survey, self.given(parameters))
        return Plan(pack(arrays), survey.id_hash, workers, costs)

    def table_at(self, plan: Plan, path: str) -> bytes:
        """C(w) by the plan, and where it lies."""
        return table_of_plan(plan.costs, path=path)

    def homes(self, order: Order, shard: int, id_hash: NDArray[np.uint64]) -> Slots:
        """Where a plan puts each subscription; those it does not know stay at `shard`."""
        if HOMES not in order:  # it knows none
            return super().homes(order, shard, id_hash)
        known = load(order[HOMES])
        ids, homes = known["ids"], known["homes"]
        at = np.minimum(np.searchsorted(ids, id_hash), len(ids) - 1)
        return np.where(ids[at] == id_hash, homes[at], shard)

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
            workers = home_of(id_hash, self.shards)
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
    """(places float64[n, 2], k int64[n]) of subscriptions, rows of BALLS."""
    places = np.column_stack([numbers(controls["x"]), numbers(controls["y"])])
    return places, numbers(controls["k"])
