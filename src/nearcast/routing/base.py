"""What every router promises: which shards see a subscription, and which see an object.

The engine calls these methods and never looks at a router's class. Methods beyond `place` and
`route` have defaults here that fit a router without plans, moves and balance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index import LocalIndex
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.routing.arrays import Arrays
from nearcast.routing.balance import Balance, Change, Counts, Look, Picture, Rest
from nearcast.routing.orders import Leaving, Order, Plan, Slots
from nearcast.wire.changes import Changes
from nearcast.wire.tables import ObjectColumns

Hashes = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Box = tuple[float, float, float, float]


@dataclass(slots=True)
class Placement:
    """Copies of subscriptions: row `rows[i]` goes to `shards[i]`, and reports if `reports[i]`."""

    rows: NDArray[np.int64]
    shards: NDArray[np.int64]
    reports: NDArray[np.bool_]
    costs: NDArray[np.float64] | None = None  # that each adds to its shard, by a plan


@dataclass(slots=True)
class Routes:
    """Copies of objects: row `rows[i]` goes to `shards[i]`."""

    rows: NDArray[np.int64]
    shards: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Load:
    """What a shard did in a batch, for decisions on moves."""

    shard: int
    subscriptions: int
    objects: int
    examined: int
    seconds: float


class Sample(NamedTuple):
    """Objects of the past that a plan is made from (O_init of DkM-SKS), as flat arrays."""

    x: NDArray[np.float64]  # [n]
    y: NDArray[np.float64]  # [n]
    word_offsets: NDArray[np.int64]  # [n + 1]
    words: NDArray[np.uint64]  # those of object i: words[word_offsets[i]:word_offsets[i + 1]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a shard knows at the end of a batch, for the balance: its index, and slots of it."""

    index: LocalIndex
    objects: Sample  # that came to it
    held: Slots
    inserted: Slots
    ended: Slots


# Makes an index with a few subscriptions, and a few objects, rows of OBJECTS.
Example = Callable[[], tuple[LocalIndex, pa.RecordBatch]]


class Router(ABC):
    """Deals one kind of subscription to shards. Immutable: a change makes a new `table`.

    Exactly one copy of a subscription reports; every object that could change its result reaches
    the shards of all its copies. The same table gives the same answer on every machine. Decisions
    are functions of their arguments and the table alone, so that a repeated batch repeats them.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    about: ClassVar[str]
    by_id: ClassVar[bool] = False  # an id alone decides its shard: unsubscribes go to one shard
    selective: ClassVar[bool] = False  # some objects go to some shards only
    stores: ClassVar[bool] = False  # with a table, each object goes to one shard: it rests there
    plans: ClassVar[bool] = False  # makes a plan from objects and subscriptions that it has seen
    plans_from: ClassVar[int] = 0  # about so many objects, unless more are set; 0: all there are
    by_place: ClassVar[bool] = False  # its plan divides space into cells, for which bounds help
    keeps_ids: ClassVar[bool] = False  # its table says which subscriptions moved where: `moved`
    keeps_costs: ClassVar[bool] = False  # its table has a cost of each shard, kept by `adjusted`
    # mode of `Balance`: the settings that it reads in this mode; empty: it cannot balance
    balances: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    parameters: ClassVar[Mapping[str, float]] = {}  # of plans, with the usual values

    def __init__(self, shards: int, table: bytes = b"") -> None:
        self.shards = shards
        self.table = table
        self.chosen: Mapping[str, float] = {}
        self.bounds: Box | None = None  # where to lay cells, if the run says

    def with_table(self, table: bytes) -> Self:
        """The same router with another table."""
        other = type(self)(self.shards, table)
        other.chosen, other.bounds = self.chosen, self.bounds
        return other

    # -- its parameters ------------------------------------------------------------------------

    def tune(self, chosen: Mapping[str, float], bounds: Box | None) -> None:
        """Keep those of a run's plan parameters that this router has."""
        self.chosen = {n: v for n, v in chosen.items() if n in self.parameters}
        self.bounds = bounds

    def given(self, more: Mapping[str, float]) -> dict[str, float]:
        """All parameters with their values: from `more`, else from the run, else the usual ones."""
        unknown = sorted(set(more) - set(self.parameters))
        if unknown:
            there = ", ".join(self.parameters) or "none"
            raise NearcastError(f"{self.name}: no parameter {unknown[0]!r}; there are {there}")
        return {**self.parameters, **self.chosen, **more}

    # -- who gets what -------------------------------------------------------------------------

    def shares_homes(self, other: Router) -> bool:
        """Whether an id alone decides its shard, and `other` sends it to the same one."""
        return self.by_id and type(self) is type(other) and self.table == other.table

    @abstractmethod
    def place(self, controls: pa.RecordBatch, id_hash: Hashes) -> Placement:
        """Where subscriptions go."""

    def route(self, objects: pa.RecordBatch) -> Routes | None:
        """Where objects go; None: to every shard."""
        return None

    @property
    def mark(self) -> int:
        """Flags that new subscriptions carry, so that shards know which table placed them."""
        return 0

    # -- at a shard ----------------------------------------------------------------------------

    def sees(self, shard: int, objects: ObjectColumns) -> Mask | None:
        """Which objects came to a shard for this router's subscriptions; None: all of them.

        Others came for the sake of another kind.
        """
        return None

    def reports(
        self, shard: int, index: LocalIndex, objects: ObjectColumns, changes: Changes
    ) -> Mask | None:
        """Which changes a shard reports, as other copies may have seen them too; None: all."""
        return None if index.all_report else index.reports(changes.slot)

    def tally(self, index: LocalIndex, settled: int) -> tuple[int, int]:
        """(subscriptions, those that an old table placed); counted while two tables are in use.

        What ended before `settled` is over.
        """
        return 0, 0

    # -- moves ---------------------------------------------------------------------------------

    def order(self, batch: int, loads: list[Load]) -> Order | None:
        """What shards must export at the end of the batch after `batch`; None: nothing."""
        return None

    def homes(self, order: Order, shard: int, id_hash: Hashes) -> Slots:
        """The shard that each subscription of `shard` goes to; `shard` itself: it stays."""
        return np.full(len(id_hash), shard)

    def leaving(self, order: Order, shard: int, index: LocalIndex, slots: Slots) -> Leaving:
        """What an order makes of the living `slots` of a shard."""
        target = self.homes(order, shard, index.id_hashes(slots))
        going = np.flatnonzero(target != shard)
        return Leaving(slots[going], slots[going], target[going])

    def moved(self, id_hash: Hashes, shards: Slots) -> bytes:
        """The table with these subscriptions at their new shards."""
        return self.table

    # -- plans ---------------------------------------------------------------------------------

    def survey(self, index: LocalIndex, now: int, settled: int, space: Space) -> Arrays:
        """At a shard, after a batch that reached `now`: what a plan must know of subscriptions.

        What ended before `settled` is over.
        """
        raise NotImplementedError(f"{self.name} makes no plans")

    def join(self, surveys: list[Arrays], sample: Sample) -> Any:
        """The surveys of all shards as `plan` takes them."""
        raise NotImplementedError(f"{self.name} makes no plans")

    def plan(self, sample: Sample, survey: Any, parameters: Mapping[str, float]) -> Plan:
        """Deal all that was surveyed anew, by objects of the past."""
        raise NotImplementedError(f"{self.name} makes no plans")

    def table_at(self, plan: Plan, path: str) -> bytes:
        """The table of a plan whose file lies at `path`."""
        raise NotImplementedError(f"{self.name} makes no plans")

    # -- costs that a table keeps ---------------------------------------------------------------

    def costs(self, controls: pa.RecordBatch) -> NDArray[np.float64]:
        """Estimated costs of subscriptions that end, rows of CONTROLS; 0 before there is a plan."""
        return np.zeros(controls.num_rows)

    def adjusted(self, added: NDArray[np.float64]) -> bytes:
        """The table with `added` on top of the cost of each shard."""
        return self.table

    # -- balance -------------------------------------------------------------------------------

    def look(
        self, batch: int, counts: list[Counts], balance: Balance, rest: Rest | None
    ) -> Look | None:
        """After a batch: gather from shards, or change the table at once; None: do neither."""
        return None

    def gather(self, question: str, shard: int, seen: Seen, balance: Balance) -> Arrays:
        """At a shard: what `decide` must know of it."""
        raise NotImplementedError(f"{self.name} cannot balance")

    def decide(
        self, question: str, reported: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Change | None:
        """What to change, from what each shard gathered and counted; None: nothing."""
        return None

    def table_after(self, change: Change, path: str, since: int) -> bytes:
        """The table by which a change holds from batch `since` on, with its file at `path`."""
        return self.table

    def picture(self) -> Picture:
        """Who owns which part of the space now."""
        return Picture([], [], [])

    # -- warm-up -------------------------------------------------------------------------------

    def warm_up(self, example: Example, balance: Balance) -> None:  # noqa: B027 -- often nothing
        """Call every kernel that is needed besides those of the index, so that it is compiled."""
