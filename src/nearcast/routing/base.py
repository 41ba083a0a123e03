"""What every router promises: which shards see a subscription, and which see an object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.model.errors import NearcastError


@dataclass(slots=True)
class Placement:
    """Copies of subscriptions: row `rows[i]` goes to `shards[i]`, and tells if `reports[i]`."""

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


class Router(ABC):
    """Deals one kind of subscription to shards. Immutable: a change makes a new `table`.

    Exactly one copy of a subscription reports; every object that could change its result reaches
    the shards of all its copies. The same table gives the same answer on every machine.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    about: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    indexes: ClassVar[dict[str, str]]  # kind: the index it works with unless told otherwise
    by_id: ClassVar[bool] = False  # an id has one home whatever it asks, so ends need no broadcast

    def __init__(self, shards: int, table: bytes = b"") -> None:
        self.shards = shards
        self.table = table

    @abstractmethod
    def place(self, controls: pa.RecordBatch, id_hash: NDArray[np.uint64]) -> Placement:
        """Where subscriptions go."""

    def route(self, objects: pa.RecordBatch) -> Routes | None:
        """Where objects go; None: to every shard."""
        return None


class CanMove(ABC):
    """A router that moves running subscriptions: it orders, shards select, a new table follows."""

    @abstractmethod
    def order(self, batch: int, loads: list[Load]) -> dict[str, Any] | None:
        """What shards shall export at the end of the batch after `batch`; None: nothing.

        A function of its arguments and the table alone, so that a repeated batch repeats it.
        """

    @abstractmethod
    def select(
        self, order: dict[str, Any], shard: int, id_hash: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """The shard that each subscription of `shard` goes to; `shard` itself: it stays."""

    @abstractmethod
    def moved(self, id_hash: NDArray[np.uint64], shards: NDArray[np.int64]) -> bytes:
        """The table with these subscriptions at their new shards."""


class Sample(NamedTuple):
    """Objects of the past that a plan is made from (O_init of DkM-SKS), as flat arrays."""

    x: NDArray[np.float64]  # [n]
    y: NDArray[np.float64]  # [n]
    word_offsets: NDArray[np.int64]  # [n + 1]
    words: NDArray[np.uint64]  # those of object i: words[word_offsets[i]:word_offsets[i + 1]]


class Survey(NamedTuple):
    """Running subscriptions that a plan deals out (S of DkM-SKS), as flat arrays."""

    id_hash: NDArray[np.uint64]  # [m]
    x: NDArray[np.float64]  # [m]
    y: NDArray[np.float64]  # [m]
    boxes: NDArray[np.float64]  # [m, 4] minx, miny, maxx, maxy of B(s); infinite below k results
    word_offsets: NDArray[np.int64]  # [m + 1]
    words: NDArray[np.uint64]  # cover words; a conjunction has one; none: any object may match


class Tunable:
    """A router whose plans have parameters: thresholds and costs of its paper."""

    name: ClassVar[str]
    parameters: ClassVar[dict[str, float]] = {}  # what a plan can be told, with the usual values
    told: Mapping[str, float] = {}

    def given(self, more: Mapping[str, float]) -> dict[str, float]:
        """All parameters, as told; `more` goes before what the run was told."""
        unknown = sorted(set(more) - set(self.parameters))
        if unknown:
            there = ", ".join(self.parameters) or "none"
            raise NearcastError(f"{self.name}: no parameter {unknown[0]!r}; there are {there}")
        return {**self.parameters, **self.told, **more}


class CanPlan(Tunable, ABC):
    """A router that deals all running subscriptions anew from what was seen so far."""

    @abstractmethod
    def plan(
        self, sample: Sample, survey: Survey, parameters: dict[str, float]
    ) -> tuple[bytes, NDArray[np.int64], NDArray[np.float64]]:
        """(what costs of later subscriptions need, worker of each subscription, C(w) of each)."""

    @abstractmethod
    def costs(self, controls: pa.RecordBatch) -> NDArray[np.float64]:
        """Estimated costs of new subscriptions, rows of CONTROLS; 0 before there is a plan."""

    @abstractmethod
    def adjusted(self, added: NDArray[np.float64]) -> bytes:
        """The table with `added` on top of C(w): costs that came, less costs that went."""
