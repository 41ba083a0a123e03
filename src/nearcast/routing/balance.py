"""Live balance: what a run may be told of it, what a load is, and what a router must do for it.

Loads are counted, never timed: a batch that is repeated repeats its decisions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import gather
from nearcast.model.errors import NearcastError
from nearcast.routing.base import Sample
from nearcast.routing.dkm.arrays import Arrays
from nearcast.routing.grid.survey import RangeSurvey
from nearcast.routing.grid.table import GridTable

OFF, AUTO, LOCAL, GLOBAL = "off", "auto", "local", "global"
_MODES = (OFF, AUTO, LOCAL, GLOBAL)
_SELECTIONS = ("dp", "gr", "si", "ra")


@dataclass(frozen=True, slots=True)
class Balance:
    """When and how a run balances its shards."""

    mode: str = OFF  # auto: all that the router can do; local, global: that part of it
    threshold: float = 1.2  # nothing is done while the largest load is at most this many means
    least: int = 10_000  # nor while it is less than this: a batch too small to be worth a move
    wait: int = 8  # batches after a look that found nothing to do, unless the loads get worse
    selection: str = "gr"  # PS2Stream: which cells move: dp, gr, si, ra
    cells: int = 8  # PS2Stream: cells that Phase I looks at
    slack: float = 0.2  # PS2Stream: share by which a split may raise the total load, at the last
    side: int = 128  # PS2Stream: cells of the grid along each axis, at least; a power of two
    rounds: int = 64  # adjustments, each on what the one before leads to, at once
    gain: float = 0.1  # PS2Stream: share of the total load that a new strategy must save
    few: float = 0.1  # PS2Stream: share of subscriptions with which an old strategy ends
    every: int = 100  # PS2Stream: batches between two looks at a new strategy; an old one's end
    beta: float = 1.0  # Tornado: what moving a subscription costs, in subscribes
    horizon: int = 10  # Tornado: batches within which a move must pay for itself
    rectangles: int = 8  # Tornado: of a shard, on the average at most; 1: as in the paper

    def __post_init__(self) -> None:
        """Refuse nonsense with a line that says what to write."""
        for name, known in (("mode", _MODES), ("selection", _SELECTIONS)):
            if getattr(self, name) not in known:
                raise NearcastError(
                    f"balance {name}: {getattr(self, name)!r}; use one of {', '.join(known)}"
                )
        for name, least in (
            ("threshold", 1.0), ("least", 0), ("wait", 0), ("cells", 0), ("slack", 0.0),
            ("side", 1), ("rounds", 1), ("gain", 0.0), ("few", 0.0), ("every", 1), ("beta", 0.0),
            ("horizon", 1), ("rectangles", 1),
        ):  # fmt: skip
            if not getattr(self, name) >= least:
                raise NearcastError(
                    f"balance {name}: {getattr(self, name)!r} is less than {least:g}"
                )
        if self.side & (self.side - 1):
            raise NearcastError(f"balance side: {self.side} is not a power of two")

    @property
    def on(self) -> bool:
        """Whether there is any balance."""
        return self.mode != OFF

    def to_json(self) -> dict[str, Any]:
        """As `from_json` reads it."""
        return asdict(self)

    @staticmethod
    def from_json(values: dict[str, Any]) -> Balance:
        """The settings that `to_json` gave, or some of them by name."""
        known = [f.name for f in fields(Balance)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise NearcastError(f"balance: no setting {unknown[0]!r}; there are {', '.join(known)}")
        try:
            return msgspec.convert(values, Balance)
        except msgspec.ValidationError as error:
            raise NearcastError(f"balance: {error}") from error


class Counts(msgspec.Struct):
    """What one kind of subscriptions made a shard do in a batch."""

    objects: int = 0
    controls: int = 0
    lookups: int = 0
    scanned: int = 0
    examined: int = 0
    told: int = 0
    held: int = 0  # subscriptions, counted only while two strategies are in use
    old: int = 0  # of them, those that the old one placed

    @property
    def each(self) -> float:
        """The load by objects as such, whatever they are held against."""
        return _OBJECT * self.objects + _LOOKUP * self.lookups

    @property
    def checks(self) -> float:
        """The load by subscriptions that objects are held against."""
        return _SCANNED * self.scanned + _EXAMINED * self.examined + _TOLD * self.told

    @property
    def updates(self) -> float:
        """The load by subscribes and unsubscribes."""
        return CONTROL * self.controls

    @property
    def load(self) -> float:
        """Definition 1 of PS2Stream, its terms counted instead of estimated."""
        return self.each + self.checks + self.updates


# About nanoseconds, with `pyramid` and its notifications written: objects and matches fitted to the
# seconds of shards in `bench balance`, the rest from the stages of the index alone. Only their
# proportions decide anything.
_OBJECT, _LOOKUP, _SCANNED, _EXAMINED, _TOLD, CONTROL = 800.0, 150.0, 8.0, 20.0, 600.0, 6000.0


def imbalance(loads: list[float]) -> float:
    """The largest load over the mean; 1 where nobody has any."""
    total = sum(loads)
    return max(loads) * len(loads) / total if total > 0 else 1.0


class Period(NamedTuple):
    """What a shard knows of a batch, for decisions."""

    objects: Sample  # that came to it
    held: RangeSurvey  # subscriptions at the end
    inserted: RangeSurvey
    deleted: RangeSurvey


def thinned(sample: Sample, most: int) -> tuple[Sample, int]:
    """At most about so many objects, every n-th; and n, the number that each stands for."""
    step = -(-len(sample.x) // most) if most else 1
    if step <= 1:
        return sample, 1
    return taken(sample, np.arange(0, len(sample.x), step)), step


def taken(sample: Sample, rows: NDArray[np.int64]) -> Sample:
    """Some of the objects."""
    words = gather(sample.words, sample.word_offsets[rows], np.diff(sample.word_offsets)[rows])
    return Sample(sample.x[rows], sample.y[rows], *words)


class Adjustment(NamedTuple):
    """A new table, and the decisions that led to it, each as people may read it."""

    table: GridTable
    decisions: list[dict[str, Any]]
    before: NDArray[np.float64]  # load of each shard as the router sees it
    after: NDArray[np.float64]  # and as it should become


class CanBalance(ABC):
    """A router that adjusts its table to the loads of shards.

    Both methods are functions of their arguments and the table alone.
    """

    @abstractmethod
    def gather(self, shard: int, period: Period, balance: Balance) -> Arrays:
        """At a shard: what `rebalance` must know of it."""

    @abstractmethod
    def rebalance(
        self, told: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Adjustment | None:
        """What to change, by what each shard gathered and counted; None: nothing."""


class CanReplan(ABC):
    """A router that may begin a new strategy beside the one in use (PS2Stream V-B)."""

    @abstractmethod
    def gather_all(self, shard: int, period: Period) -> Arrays:
        """At a shard: what a new plan must know, subscriptions with their ids."""

    @abstractmethod
    def replan(
        self, told: list[Arrays], counts: list[Counts], balance: Balance
    ) -> Adjustment | None:
        """A new strategy, if it is worth it."""
