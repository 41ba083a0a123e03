"""What every object store promises: objects in, searches of the past out, all in batches.

Objects come in object order. A search is a batch of queries, as flat arrays. What it finds are
*handles* of objects; `rows` and `fields` give the objects behind them. Handles are good until the
next `add`, `seal`, `expire` or `restore`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.kernels.queries import NO_RANKS, Centres, Queries, Wishes
from nearcast.model.frame import NO_IDF, Idf
from nearcast.model.space import Space
from nearcast.wire.tables import FOREVER, OBJECTS

__all__ = [
    "NOT_SEALED",
    "NO_IDF",
    "NO_RANKS",
    "STORED",
    "Centres",
    "Fields",
    "Found",
    "Idf",
    "ObjectStore",
    "Objects",
    "Queries",
    "Regions",
    "SliceInfo",
    "Slicing",
    "Wishes",
    "WordCounts",
]

NOT_SEALED = -1
"""For `snapshot` and `restore`: all objects that are in no sealed slice."""

_NUMBERS = pa.large_list(pa.field("item", pa.int32(), nullable=False))
STORED = pa.schema(
    [
        ("time", pa.int64()),
        ("rank", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("id", pa.large_binary()),
        ("words", OBJECTS.field("words").type),
        ("counts", _NUMBERS),
        ("firsts", _NUMBERS),
        ("text", pa.large_binary()),
        ("keywords", pa.large_binary()),
    ]
)
"""A slice as a table."""


class Objects(NamedTuple):
    """Objects by row. `words` of a row ascend; `counts` and `firsts` are parallel to them."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    time: NDArray[np.int64]
    rank: NDArray[np.int64]  # number in object order over the whole run
    word_offsets: NDArray[np.int64]  # [n + 1]
    words: NDArray[np.uint64]  # hashes
    counts: NDArray[np.int32]  # how often the object holds the word (tf)
    firsts: NDArray[np.int32]  # as which of its words it comes first, from 0
    id_offsets: NDArray[np.int64]  # [n + 1]
    id_bytes: NDArray[np.uint8]  # in JSON form


class Fields(NamedTuple):
    """What only answers read, parallel to `Objects`. The store never looks inside.

    No bytes at all mean that the object has no such field; so write values with their quotes.
    """

    text_offsets: NDArray[np.int64]  # [n + 1]
    text_bytes: NDArray[np.uint8]
    keyword_offsets: NDArray[np.int64]  # [n + 1]
    keyword_bytes: NDArray[np.uint8]


class Regions(NamedTuple):
    """A region per query, in the columns of `wire.tables.REGION_COLUMNS`."""

    code: NDArray[np.int64]  # `model.region`
    offsets: NDArray[np.int64]  # [q + 1]
    numbers: NDArray[np.float64]
    box_offsets: NDArray[np.int64]  # [q + 1], of numbers: four per box
    boxes: NDArray[np.float64]  # none: the region is its own box


class Found(NamedTuple):
    """Objects found by each query, in the order of the answer."""

    offsets: NDArray[np.int64]  # [q + 1]
    handles: NDArray[np.int64]
    time: NDArray[np.int64]
    rank: NDArray[np.int64]
    value: NDArray[np.float64]  # distance or score; 0 where the search has none
    examined: int  # objects looked at: counted work, the same on every machine


class WordCounts(NamedTuple):
    """Words and how many matching objects hold each, by query: most first, then by hash."""

    offsets: NDArray[np.int64]  # [q + 1]
    words: NDArray[np.uint64]
    counts: NDArray[np.int64]
    examined: int


@dataclass(frozen=True, slots=True)
class Slicing:
    """How objects are cut into slices.

    A sealed slice holds the objects of one interval of `delta_ms`, or of several if one has fewer
    than `least` objects; an interval with more than `most` has several slices.

    Before they are sealed, slices are merged as they come, up to `most`, and to no more than one
    `part`-th of all objects: so what a slice keeps of objects that are too old stays small.
    """

    delta_ms: int = 6 * 3_600_000
    least: int = 16_384
    most: int = 1 << 23
    part: int = 1

    def __post_init__(self) -> None:
        if min(self.delta_ms, self.part) < 1 or not 1 <= self.least <= self.most <= 1 << 24:
            raise ValueError("delta_ms and part must be >= 1, and 1 <= least <= most <= 2**24")


class SliceInfo(NamedTuple):
    """One slice of a store."""

    number: int  # never used again in this store
    sealed: bool
    objects: int
    first_time: int
    last_time: int
    first_rank: int
    last_rank: int


class ObjectStore(ABC):
    """The objects of one shard that stay."""

    name: ClassVar[str]
    paper: ClassVar[str]
    about: ClassVar[str]

    def __init__(
        self,
        space: Space,
        storage: Storage,
        slicing: Slicing = Slicing(),  # noqa: B008 -- frozen
        idf: Idf = NO_IDF,
    ) -> None:
        """A store on what the storage holds (a new one holds nothing)."""
        self.space = space
        self.storage = storage
        self.slicing = slicing
        self.idf = idf

    @abstractmethod
    def add(self, objects: Objects, fields: Fields | None = None) -> None:
        """Take in objects. Their ranks are above all before; their times may be late."""

    @abstractmethod
    def seal(self, before: int) -> None:
        """No object with a lower time is expected: seal the intervals that end by then.

        A late object may come nevertheless. It goes to a slice of its own.
        """

    @abstractmethod
    def expire(self, before: int, rank: int = FOREVER) -> None:
        """Drop slices all of whose objects have `time <= before` and a rank below `rank`.

        What else is too old may stay: limits of queries are exact by themselves.
        """

    @abstractmethod
    def within(self, queries: Queries, regions: Regions, limit: NDArray[np.int64]) -> Found:
        """Objects inside regions, by time, then rank; `limit` n > 0: only the latest n."""

    @abstractmethod
    def nearest(self, queries: Queries, centres: Centres) -> Found:
        """The k nearest objects, nearest first; of equally near ones the lower rank first."""

    @abstractmethod
    def best(self, queries: Queries, centres: Centres, wishes: Wishes) -> Found:
        """The k objects of highest score that share a keyword, best first; ties: higher rank."""

    @abstractmethod
    def word_counts(
        self,
        queries: Queries,
        regions: Regions,
        k: NDArray[np.int64],
        exclude_offsets: NDArray[np.int64],
        exclude: NDArray[np.uint64],
        in_order: bool = True,
    ) -> WordCounts:
        """The k words (without `exclude`) held by most matching objects, with all their ties.

        The texts of words decide ties, and the store has only hashes: so it gives all words whose
        count is at least the k-th count. k = 0 gives all words. Results of several shards add up
        exactly only with k = 0, because a word may be seldom on each shard and frequent on all.
        Unless `in_order`, the words of a query may come in any order.
        """

    @abstractmethod
    def words(self) -> NDArray[np.uint64]:
        """All words that objects hold, ascending."""

    @abstractmethod
    def rows(self, handles: NDArray[np.int64]) -> Objects:
        """The objects behind handles, in this order."""

    @abstractmethod
    def fields(self, handles: NDArray[np.int64]) -> Fields:
        """Their fields for answers."""

    @abstractmethod
    def slices(self) -> list[SliceInfo]:
        """All slices; of the sealed ones each holds the same objects as long as it is listed."""

    @abstractmethod
    def snapshot(self, number: int) -> pa.RecordBatch:
        """One sealed slice as STORED, or all that is NOT_SEALED."""

    @abstractmethod
    def restore(self, number: int, table: pa.RecordBatch) -> None:
        """Put back what `snapshot` gave: a sealed slice under its number, or what is NOT_SEALED.

        Restore sealed slices first: later slices get higher numbers.
        """

    @abstractmethod
    def clear(self) -> None:
        """Forget everything."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Bytes held, without the fields for answers."""

    @abstractmethod
    def __len__(self) -> int:
        """Objects held."""
