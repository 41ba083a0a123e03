"""What every local index promises: batches of subscriptions and objects in, changes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.kernels.hashing import hash_ids
from nearcast.kernels.ragged import frozen, gather
from nearcast.kernels.slots import CONJUNCTION, PARITY
from nearcast.model.jit import njit
from nearcast.model.space import Space
from nearcast.wire.carried import Carried
from nearcast.wire.changes import Changes, Texts
from nearcast.wire.tables import NEVER, ObjectColumns, empty, lists, numbers

# Events of balls by their place among those of the kind.
ENTER, LEAVE = 0, 1


WantedWords = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.bool_]]


def wanted_words(controls: pa.RecordBatch) -> WantedWords:
    """Words that rows of CONTROLS are posted under: (offsets, words, which rows are conjunctions).

    The cover of an OR, all words of a conjunction; none: any object may match.
    """
    conjunction = numbers(controls["flags"]) & CONJUNCTION != 0
    covers, cover = lists(controls["cover"], np.uint64)
    programs, program = lists(controls["program"], np.uint64)
    by_cover = np.diff(covers) > 0
    conjunction &= ~by_cover
    lengths = np.where(by_cover, np.diff(covers), np.where(conjunction, np.diff(programs), 0))
    starts = np.where(by_cover, covers[:-1], programs[:-1] + len(cover))
    return *gather(np.concatenate([cover, program]), starts, lengths), conjunction


Boxes = tuple[NDArray[np.int64], NDArray[np.float64]]


def boxes_by(controls: pa.RecordBatch) -> Boxes:
    """Outer boxes of the regions of rows of CONTROLS: (offsets, boxes [b, 4])."""
    return _outer(*lists(controls["region"], np.float64), *lists(controls["boxes"], np.float64))


@njit
def _outer(
    region_offsets: NDArray[np.int64],
    region: NDArray[np.float64],
    box_offsets: NDArray[np.int64],
    boxes: NDArray[np.float64],
) -> Boxes:
    """The outer boxes of each row; without any, the region is its own box."""
    n = len(region_offsets) - 1
    offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        offsets[i + 1] = offsets[i] + max((box_offsets[i + 1] - box_offsets[i]) // 4, 1)
    out = np.empty((offsets[n], 4))
    for i in range(n):
        own = box_offsets[i + 1] == box_offsets[i]
        first = region_offsets[i] if own else box_offsets[i]
        for b in range(offsets[i], offsets[i + 1]):
            for side in range(4):
                out[b, side] = region[first + side] if own else boxes[first + side]
            first += 4
    return offsets, out


class LocalIndex(ABC):
    """The subscriptions of one kind on one shard; of the kind, an index knows only the shape.

    Slots number the subscriptions in the order in which `apply` brought them, from the last
    `load` on: the same calls give the same numbers, so stored results may refer to them.
    """

    name: ClassVar[str]
    shape: ClassVar[str] = ""  # of the subscriptions it is made for, if only for one
    controls: pa.Schema  # the columns of its subscriptions
    results: pa.Schema  # and of their stored results
    paper: ClassVar[str]
    about: ClassVar[str]

    past: Any = None
    """Of a kind that keeps objects (`Kind.keeps`): the store of them (`nearcast.objects`).

    When objects are matched, they are in it already: searches are limited by time and rank.
    """

    now: int = NEVER
    """How far time had come before the batch, where only time says it (a replay)."""

    ranked = 0
    """How many objects of the run came before the batch, for kinds that keep objects."""

    def __init__(self, space: Space, storage: Storage) -> None:
        self.space = space
        self.storage = storage

    def reach(self) -> int:
        """How many milliseconds back from now its subscriptions look into `past`; FOREVER: all."""
        return 0

    def first_rank(self, ranked: int) -> int:
        """The lowest rank of objects in `past` that it may need, whatever their times are.

        `ranked` objects came so far.
        """
        return ranked

    @abstractmethod
    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        """Apply subscribes and unsubscribes in order; `at` counts the objects before each."""

    def carry(self, carried: Carried) -> None:  # noqa: B027 -- most need no more than the columns
        """Take what the objects of the next `match` carry besides their columns, by row."""

    @abstractmethod
    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        """Changes by `objects`, and by time up to `now`; `clock[i]` is the time at object i.

        With `net`, changes that cancel out within the batch may be left out.
        """

    def matching(
        self,
        objects: ObjectColumns,
        clock: NDArray[np.int64],
        now: int,
        net: bool = False,
        in_order: bool = True,
    ) -> Iterator[Changes]:
        """What `match` gives, perhaps in pieces, one after the other; their work adds up.

        Unless `in_order`, matches of regions may come in any order of the objects, those of one
        object together. Changes of results always come in the order of the objects: they build
        upon each other.
        """
        del in_order  # what `match` gives always is
        yield self.match(objects, clock, now, net)

    @abstractmethod
    def drop(self, slots: NDArray[np.int64]) -> None:
        """Make these subscriptions, which moved away, see nothing any more."""

    @abstractmethod
    def close(self) -> None:
        """The batch is over."""

    def past_filled(self) -> None:  # noqa: B027 -- most remember nothing of it
        """`past` has other objects now: what the index remembers of it holds no more."""

    def changed(self) -> pa.RecordBatch:
        """Results of the slots that changed in this batch; empty where none are kept."""
        return empty(self.results)

    def restore(self, results: pa.RecordBatch) -> None:  # noqa: B027 -- most keep no results
        """Put results in place, as `changed` or `rows` gave them."""

    @abstractmethod
    def rows(self, slots: NDArray[np.int64]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Controls and results that make these slots anew; results count slots from 0."""

    @abstractmethod
    def ended(self) -> NDArray[np.int64]:
        """Slots that an event of this batch ended, ascending."""

    @abstractmethod
    def living(self, now: int) -> NDArray[np.int64]:
        """Slots that may still see objects at or after `now`, ascending."""

    @abstractmethod
    def texts(self, slots: NDArray[np.int64]) -> Texts:
        """Ids and echoes of slots."""

    @property
    def all_report(self) -> bool:
        """Whether no slot is silent, as far as is known without a look at each."""
        return False

    @abstractmethod
    def reports(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which slots report their changes (a copy for another shard's sake does not)."""

    @abstractmethod
    def __len__(self) -> int:
        """Slots in use, dead ones included."""

    def id_hashes(self, slots: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Hashes of the ids of slots, as routers know them."""
        texts = self.texts(slots)
        offsets, data = gather(texts.text, texts.starts, texts.id_lengths)
        return hash_ids(frozen(data), offsets)

    def wanted_words(self, slots: NDArray[np.int64]) -> WantedWords:
        """What the function `wanted_words` says, for slots."""
        return wanted_words(self.rows(slots)[0])

    def boxes(self, slots: NDArray[np.int64]) -> Boxes:
        """What `boxes_by` says, for slots."""
        return boxes_by(self.rows(slots)[0])

    def parity(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The parity of the strategy that placed slots (`routing.grid.both`)."""
        parity: NDArray[np.bool_] = numbers(self.rows(slots)[0]["flags"]) & PARITY != 0
        return parity

    def compact(self, now: int) -> None:
        """Forget what sees nothing at or after `now`, and number the rest anew."""
        controls, results = self.rows(self.living(now))
        self.storage.clear()
        self.load()
        self.apply(controls, np.zeros(controls.num_rows, np.int32))
        self.restore(results)
        self.close()

    @abstractmethod
    def load(self) -> None:
        """Attach what the storage holds (a new one holds nothing)."""
