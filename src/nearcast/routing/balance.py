"""Live balance: the settings of a run for it, what a load is, and what routers decide.

Loads are counted, never timed: a batch that is repeated repeats its decisions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from nearcast.model.errors import NearcastError

OFF, AUTO, LOCAL, GLOBAL = "off", "auto", "local", "global"
_MODES = (OFF, AUTO, LOCAL, GLOBAL)
# Settings that routers of cells and words read in every mode.
COMMON = ("threshold", "least", "wait")
_SELECTIONS = ("dp", "gr", "si", "ra")


@dataclass(frozen=True, slots=True)
class Balance:
    """When and how a run balances its shards."""

    mode: str = OFF  # auto: all that the router can do; local, global: that part of it
    threshold: float = 1.2  # nothing is done while the largest load is at most this times the mean
    least: int = 10_000  # nor while it is less than this: too small a batch to be worth a move
    wait: int = 8  # batches after a look that found nothing to do, unless the loads get worse
    selection: str = "gr"  # PS2Stream: which cells move: dp, gr, si, ra
    cells: int = 8  # PS2Stream: cells that Phase I looks at
    slack: float = 0.2  # PS2Stream: share by which a split may raise the total load, at the last
    side: int = 128  # PS2Stream: cells of the grid along each axis, at least; a power of two
    rounds: int = 64  # adjustments in one decision, each on the result of the one before
    gain: float = 0.1  # PS2Stream: share of the total load that a new strategy must save
    few: float = 0.1  # PS2Stream: share of subscriptions with which an old strategy ends
    every: int = 100  # PS2Stream: batches between two looks at a new strategy; an old one's end
    beta: float = 1.0  # Tornado: what moving a subscription costs, in subscribes
    horizon: int = 10  # Tornado: batches within which a move must pay for itself
    rectangles: int = 8  # Tornado: at most so many per shard on average; 1: as in the paper
    ratio: float = 6.0  # SSTD, instead of threshold: λ, the largest load over the smallest
    epsilon: float = 0.5  # SSTD: ε, with a larger ĥ a leaf is split by words, else by place

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
            ("horizon", 1), ("rectangles", 1), ("ratio", 1.0), ("epsilon", 0.0),
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
    reported: int = 0
    held: int = 0  # subscriptions, counted only while two strategies are in use
    old: int = 0  # of them, those that the old one placed

    @property
    def each(self) -> float:
        """Cost per object, independent of candidates."""
        return _OBJECT * self.objects + _LOOKUP * self.lookups

    @property
    def checks(self) -> float:
        """Cost of checking objects against candidate subscriptions."""
        return _SCANNED * self.scanned + _EXAMINED * self.examined + _REPORTED * self.reported

    @property
    def updates(self) -> float:
        """Cost of subscribes and unsubscribes."""
        return CONTROL * self.controls

    @property
    def load(self) -> float:
        """Definition 1 of PS2Stream, its terms counted instead of estimated."""
        return self.each + self.checks + self.updates


# About nanoseconds, with `pyramid` and its notifications written: objects and matches fitted to the
# seconds of shards in `bench balance`, the rest from the stages of the index alone. Only their
# proportions decide anything.
_OBJECT, _LOOKUP, _SCANNED, _EXAMINED, _REPORTED, CONTROL = 800.0, 150.0, 8.0, 20.0, 600.0, 6000.0


def imbalance(loads: list[float]) -> float:
    """The largest load divided by the mean; 1 if no shard has any."""
    total = sum(loads)
    return max(loads) * len(loads) / total if total > 0 else 1.0


# What the driver orders shards to gather.
CELLS, PLAN = "cells", "plan"  # statistics for an adjustment; what a new plan must know


class Rest(msgspec.Struct):
    """A look that found nothing to do. No other is taken for a while, unless loads get worse."""

    until: int
    ratio: float  # largest load over the mean
    order: str = CELLS  # what it looked at


class Picture(NamedTuple):
    """Who owns which part of the space, before and after a decision."""

    bounds: list[float]
    before: list[list[int]]  # shard of each cell, -1: several, by text; lowest line first
    after: list[list[int]]


class Change(NamedTuple):
    """A new table for the balance, the decisions that led to it, and what they should lead to."""

    decisions: list[dict[str, Any]]  # each as people may read it
    before: NDArray[np.float64]  # load of each shard as the router sees it
    after: NDArray[np.float64]  # and as it should become
    picture: Picture
    data: bytes = b""  # what the file of the new table holds; empty: there is no file
    beside: bool = False  # new subscriptions go by it; present ones stay with the present table


class Look(NamedTuple):
    """What follows from a look at the loads of shards: gather statistics, or change at once."""

    question: str = ""  # CELLS or PLAN
    change: Change | None = None
