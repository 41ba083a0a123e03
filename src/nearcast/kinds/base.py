"""What every kind of query says of itself; the rest of nearcast knows kinds only by this.

A kind is a folder here, or one file of a plug-in (`nearcast.kinds.kinds_of`). It brings

- its name, and a number that is never used for another kind;
- its query: how it is read from JSON, checked, laid out in columns and read back;
- its results, the events that report their changes, and the value that these carry;
- what it needs of objects, so that a run pays only for what its kinds need;
- the routers and indexes that it works with, and which of them is the default, and why;
- its definition in plain Python (`model.standing`), and examples for tests and for the warm-up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from random import Random
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index import INDEXES
from nearcast.index.arena import Storage
from nearcast.index.base import LocalIndex
from nearcast.index.scan import Scan
from nearcast.kinds.answers import Answers
from nearcast.kinds.firsts import FirstResults
from nearcast.model.errors import NearcastError
from nearcast.model.frame import Frame, Window
from nearcast.model.space import Space
from nearcast.model.standing import Needs, Standing
from nearcast.objects.base import Slicing
from nearcast.wire.kind import Event, PlainRows
from nearcast.wire.tables import controls_with, results_with

__all__ = ["Event", "Examples", "Kind", "Needs", "Places", "Story"]

Json = dict[str, Any]
MakeIndex = Callable[[Space, Storage], LocalIndex]


class Places(Protocol):
    """Where the queries of a random log lie: `testing.logs.LogMaker` gives edges and ties."""

    space: Space

    def at(self, rng: Random) -> list[float]:
        """A position."""

    def region(self, rng: Random) -> Json:
        """A region."""


@dataclass(frozen=True, slots=True)
class Story:
    """A hand-made log and what it must report, as (id, event, object, time).

    Of an event with a field of its own (`Event.field`), what that holds stands for the object.
    """

    name: str
    log: list[Json]
    reported: list[tuple[str, str, Any, int]]
    space: Space = Space.PLANAR
    cuts: tuple[Sequence[int], ...] = ((),)
    """Where the log is cut into batches, each of them tried."""
    in_order: bool = True


def _no_stories(_: int) -> Iterator[Story]:
    yield from ()


@dataclass(frozen=True, slots=True)
class Examples:
    """Queries of a kind, as JSON without `where`."""

    everything: Json
    """Every object within 8 of the origin matches, and each of a thousand is reported at once."""
    draw: Callable[[Random, Places], Json]
    """A query for a random log."""
    warm: tuple[Json, ...]
    """Together these call every kernel; the first of them is subscribed by the hundred."""
    busy: Callable[[Space], list[Json]]
    """Queries that most objects of a random log match."""
    bad: tuple[tuple[Json, str, list[Any]], ...]
    """(query, field, values): the query is refused when its field has one of the values."""
    fresh: Json = field(default_factory=dict)
    """More fields for `everything`, with which an old result would show in a new one."""
    many: tuple[Json, ...] = ()
    """More queries for a log of hundreds."""
    stories: Callable[[int], Iterator[Story]] = _no_stories
    """What this kind alone promises; the argument is a seed."""


class Variant(Protocol):
    """What `nearcast strategies` says of a way to work."""

    name: ClassVar[str]
    paper: ClassVar[str]
    about: ClassVar[str]


class Kind(ABC):
    """A kind of query. Instances have no state but what a run says to them (`of_run`)."""

    name: ClassVar[str]
    number: ClassVar[int]
    """Files name kinds by it; it is never used again for another kind."""
    query: ClassVar[type[msgspec.Struct]]
    """How the query is written in JSON, `kind` as its tag; `where` as in all kinds."""
    columns: ClassVar[pa.Schema]
    """The columns of its subscriptions besides the common ones (`wire.tables.CONTROLS`)."""
    results: ClassVar[pa.Schema] = pa.schema([])
    """The columns of its stored results besides the slot."""
    events: ClassVar[tuple[Event, ...]]
    """What is reported; indexes name an event by its place here."""
    value: ClassVar[str] = ""
    """The field of notifications that holds the value of an event; empty: none has one."""
    needs: ClassVar[Needs] = Needs.NOTHING
    keeps: ClassVar[bool] = False
    """Whether its indexes look at objects of the past (`LocalIndex.past`).

    Each shard then keeps all objects that its router sends there, as far back as the indexes of
    any shard look (`LocalIndex.reach`, `first_rank`). It must need COUNTS and RANK, and its
    routers must send every object to every shard.
    """
    slicing: ClassVar[Slicing] = Slicing(most=1 << 18)
    """How what it keeps is cut: small slices, so that what is too old goes soon."""
    after_objects: ClassVar[bool] = False
    """Whether its moments come after the objects of their time, not before (SPEC section 4).

    Such a moment has passed when an event of a greater time comes, or when a replay ends. Nothing
    that its subscriptions hold matters any more at moments from their end on.
    """
    answers: ClassVar[Answers | None] = None
    """How its asks are answered; None: it has no asks."""
    firsts: ClassVar[FirstResults | None] = None
    """What `last` means for a new subscription; None: it does not look back."""
    shape: ClassVar[str] = ""
    """The shape that its subscriptions have for indexes (`index.INDEXES`); empty: its own."""
    routers: ClassVar[Mapping[str, str]]
    """The routers that can place it, each with the index that it takes by default."""
    default: ClassVar[str]
    """The strategy unless another is chosen, ROUTER+INDEX."""
    reason: ClassVar[str]
    """Why that one."""
    examples: ClassVar[Examples]
    frame_options: ClassVar[frozenset[str]] = frozenset()
    """The fields of a run's `Frame` that change what its results are."""
    from_start: ClassVar[bool] = False
    """Whether objects count that came before the first subscription of this kind. It must say
    `keeps`. A live run then holds its window in parts until that subscription comes; a replay
    sends it objects from the beginning if any of its logs names it."""

    frame: Frame = Frame()
    """What the run says; without a run, what is usual."""

    def of_run(self, frame: Frame) -> Kind:
        """The kind as a run has it."""
        del frame  # most mean the same in all runs
        return self

    @property
    def window(self) -> Window | None:
        """The window of the run, if its objects are in results whatever their time; None: only
        objects count that a subscription sees from its beginning on, or by its `last`."""
        return None

    @cached_property
    def schema(self) -> pa.Schema:
        """All columns of its subscriptions."""
        return controls_with(self.columns)

    @cached_property
    def results_schema(self) -> pa.Schema:
        """All columns of its stored results."""
        return results_with(self.results)

    def index_classes(self) -> list[type[LocalIndex]]:
        """The indexes that its subscriptions can rest in."""
        return [Scan, *INDEXES.get(self.shape, {}).values()]

    @property
    def indexes(self) -> list[str]:
        """Their names."""
        return [index.name for index in self.index_classes()]

    @property
    def variants(self) -> Mapping[str, type[Variant]]:
        """Ways in which an index of this kind may work, by name; chosen as INDEX/NAME."""
        return {}

    def index(self, name: str) -> MakeIndex:
        """What makes the index of that name."""
        if name == Scan.name:
            return partial(Scan, self)
        found = INDEXES.get(self.shape, {}).get(name)
        if found is None:
            there = ", ".join(self.indexes)
            raise NearcastError(f"strategy: no index {name!r} for {self.name}; there are {there}")
        return found

    @abstractmethod
    def compile(self, query: Any, space: Space) -> tuple[int, tuple[Any, ...]]:
        """(bits of the flags, values of its columns) of a query; raises `Invalid`."""

    def read_plain(
        self, data: NDArray[np.uint8], offsets: NDArray[np.int64], space: Space
    ) -> PlainRows | None:
        """Queries in their plainest form, many at once, from their JSON texts; None: no such way.

        It makes the same rows as `compile` does of these, and leaves all others alone.
        """
        del data, offsets, space  # a kind may have one
        return None

    @abstractmethod
    def standing(self, row: Json, space: Space) -> Standing:
        """A subscription in plain Python, read back from its row of `schema`; words are hashes."""

    @abstractmethod
    def read(self, query: Json, space: Space) -> Standing:
        """A subscription in plain Python, from its JSON; words are text. Raises `Invalid`."""
