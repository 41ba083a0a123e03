"""What every local index promises: batches of subscriptions and objects in, changes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
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
from nearcast.wire.tables import ObjectColumns, lists, numbers

MATCH, ENTER, LEAVE = 0, 1, 2
EVENTS = ("match", "enter", "leave")


@dataclass(slots=True)
class Work:
    """What finding the changes cost, in units that do not depend on the machine."""

    examined: int = 0  # candidates whose subscription was looked at
    lookups: int = 0  # posting lists looked for
    scanned: int = 0  # entries of posting lists read

    def __iadd__(self, other: Work) -> Work:
        self.examined += other.examined
        self.lookups += other.lookups
        self.scanned += other.scanned
        return self


@dataclass(slots=True)
class Changes:
    """Changes of results in the order in which they are told, as columns.

    `order` is the number of the object (in the order of the log) that caused the change; for a
    change that the passing of time caused, the number of the first object after it.
    """

    order: NDArray[np.int64]
    slot: NDArray[np.int64]
    event: NDArray[np.uint8]
    time: NDArray[np.int64]
    distance: NDArray[np.float64]
    name_starts: NDArray[np.int64]  # the object's id: names[start:start+length]
    name_lengths: NDArray[np.int64]
    names: NDArray[np.uint8]
    work: Work = field(default_factory=Work)

    def __len__(self) -> int:
        return len(self.order)

    def events(self) -> dict[str, int]:
        """How many there are of each event that occurs."""
        counts = np.bincount(self.event, minlength=len(EVENTS)).tolist()
        return {event: n for event, n in zip(EVENTS, counts, strict=True) if n}

    def take(self, rows: NDArray[Any] | slice) -> Changes:
        """Some of the changes."""
        return Changes(
            self.order[rows],
            self.slot[rows],
            self.event[rows],
            self.time[rows],
            self.distance[rows],
            self.name_starts[rows],
            self.name_lengths[rows],
            self.names,
            self.work,
        )


@dataclass(slots=True)
class Texts:
    """How the subscriptions of some slots are written in notifications."""

    text: NDArray[np.uint8]
    starts: NDArray[np.int64]  # the id; what is echoed stands right behind it
    id_lengths: NDArray[np.int64]
    tail_lengths: NDArray[np.int64]


Asked = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.bool_]]


def asked_by(controls: pa.RecordBatch) -> Asked:
    """Words that rows of CONTROLS hang under: (offsets, words, which rows are conjunctions).

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
    """One kind of subscriptions on one shard.

    Slots number the subscriptions in the order in which `apply` brought them, from the last
    `load` on: the same calls give the same numbers, so stored results may refer to them.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    paper: ClassVar[str]
    about: ClassVar[str]

    def __init__(self, kind: str, space: Space, storage: Storage) -> None:
        self.kind = kind
        self.space = space
        self.storage = storage

    @abstractmethod
    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        """Apply subscribes and unsubscribes in order; `at` counts the objects before each."""

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

        Unless `in_order`, matches may come object by object in any order of these. Results of
        other kinds come in the order of the objects: their changes build upon each other.
        """
        yield self.match(objects, clock, now, net)

    @abstractmethod
    def drop(self, slots: NDArray[np.int64]) -> None:
        """These subscriptions moved away: they see nothing any more."""

    @abstractmethod
    def close(self) -> None:
        """The batch is over."""

    @abstractmethod
    def changed(self) -> pa.RecordBatch:
        """RESULTS of the slots that changed in this batch (empty for kinds without results)."""

    @abstractmethod
    def restore(self, results: pa.RecordBatch) -> None:
        """Put results in place, as `changed` or `rows` gave them."""

    @abstractmethod
    def rows(self, slots: NDArray[np.int64]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """CONTROLS and RESULTS that make these slots anew; RESULTS count slots from 0."""

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
        """Which slots tell their changes (a copy for another shard's sake does not)."""

    @abstractmethod
    def __len__(self) -> int:
        """Slots in use, dead ones included."""

    def id_hashes(self, slots: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Hashes of the ids of slots, as routers know them."""
        texts = self.texts(slots)
        offsets, data = gather(texts.text, texts.starts, texts.id_lengths)
        return hash_ids(frozen(data), offsets)

    def asked(self, slots: NDArray[np.int64]) -> Asked:
        """What `asked_by` says of slots."""
        return asked_by(self.rows(slots)[0])

    def boxes(self, slots: NDArray[np.int64]) -> Boxes:
        """What `boxes_by` says of slots."""
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
        """Take up what the storage holds (nothing, in a new one)."""
