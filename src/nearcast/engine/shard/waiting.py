"""The batch of a subscribe with `last`: it waits (see `first_results.py`)."""

from __future__ import annotations

import uuid
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.files import inside
from nearcast.engine.formats import write_binary
from nearcast.engine.shard.events import Events, Ordered
from nearcast.kernels.ragged import gather
from nearcast.kernels.slots import SUBSCRIBE
from nearcast.kinds.firsts import Past
from nearcast.model.standing import Needs
from nearcast.wire.carried import TEXTS, WordTexts
from nearcast.wire.changes import Changes, Texts
from nearcast.wire.kind import WireKind
from nearcast.wire.notifications import Reported
from nearcast.wire.tables import (
    filled_up,
    join,
    numbers,
    replaced,
    string_column,
    strings,
    to_bytes,
)

Numbers = NDArray[np.int64]


class Waiting(msgspec.Struct):
    """Subscriptions of one kind that wait on a shard, and what they see meanwhile."""

    controls: memoryview  # their subscribes, and what ends them within the batch
    at: bytes  # int64: objects before each of these
    objects: memoryview  # OBJECTS, with what they carry, in object order
    until: bytes  # int64 (`wire.tables.ObjectColumns`)
    clock: bytes  # int64: how far time has come at each object
    now: int  # and after the batch
    needs: int = 0  # what the objects carry (`model.standing.Needs`)
    ranks: bytes = b""  # int64
    texts: memoryview | None = None  # TEXTS


class FoundFile(msgspec.Struct):
    """What one shard found and holds in one batch, by kind."""

    pos: dict[str, list[int]]  # the subscribes that look back
    parts: dict[str, list[Past]]  # for each of these
    waiting: dict[str, Waiting]


def set_aside(ordered: Ordered, wanted: Numbers) -> tuple[Ordered, Ordered | None]:
    """Events without the subscriptions at the positions `wanted`; and the events of these.

    For the index, each is replaced by a subscription that is elsewhere. What becomes of its id
    later in the batch concerns only what waits: so all that is reported keeps its order.
    """
    controls = ordered.controls
    begins = numbers(controls["op"]) == SUBSCRIBE
    chosen = np.flatnonzero(begins & np.isin(numbers(controls["pos"]), wanted))
    if not len(chosen):
        return ordered, None
    ids = numbers(controls["id"].dictionary_encode().indices)
    first = np.full(int(ids.max()) + 1, controls.num_rows)
    np.minimum.at(first, ids[chosen], chosen)
    rows = np.arange(controls.num_rows)
    aside = rows >= first[ids]
    ending = rows == first[ids]
    rest = with_replaced(controls, np.flatnonzero(~aside), np.flatnonzero(ending))
    here = ordered.at[~aside | ending]
    kept = Ordered(rest, here, ordered.objects, ordered.clock, ordered.now)
    waits = controls.take(pa.array(np.flatnonzero(aside)))
    at = ordered.at[aside]
    return kept, Ordered(waits, at, ordered.objects, ordered.clock, ordered.now)


def with_replaced(controls: pa.RecordBatch, kept: Numbers, ended: Numbers) -> pa.RecordBatch:
    """The rows `kept`, and those of `ended` as ends by a subscription that is elsewhere."""
    schema = controls.schema
    ends = filled_up(replaced(controls.take(pa.array(ended))), schema)
    whole = join([controls.take(pa.array(kept)), ends], schema)
    return whole.take(pa.array(np.argsort(np.concatenate([kept, ended]), kind="stable")))


def wait(view: Ordered, events: Events) -> Waiting:
    """What is written down of subscriptions that were set aside; `view`: what they see."""
    first = int(view.at.min(initial=len(view.objects.order)))
    rows = view.objects.order[first:]
    table = events.table.take(pa.array(rows))
    waiting = Waiting(
        to_bytes(view.controls),
        (view.at.astype(np.int64) - first).tobytes(),
        to_bytes(table),
        view.objects.until[rows].tobytes(),
        view.clock[first:].tobytes(),
        view.now,
    )
    carried = events.carried
    if carried is not None:
        needs = Needs.NOTHING if carried.counts is None else Needs.COUNTS
        if carried.ranks is not None:
            needs |= Needs.RANK
            waiting.ranks = carried.ranks[rows].tobytes()
        if isinstance(carried.texts, WordTexts):
            needs |= Needs.TEXTS
            known = carried.texts
            columns = [pa.array(known.words), string_column(known.offsets, known.data)]
            waiting.texts = to_bytes(pa.RecordBatch.from_arrays(columns, schema=TEXTS))
        waiting.needs = needs.value
    return waiting


def write_firsts(
    checkpoint: Path,
    batch: int,
    shard: int,
    pos: dict[str, list[int]],
    parts: dict[str, list[Past]],
    waiting: dict[str, Waiting],
) -> str:
    """A new file in the checkpoint; its name."""
    name = f"{batch:012d}-{shard:04d}-{uuid.uuid4().hex[:12]}.bin"
    path = checkpoint / "firsts" / name
    write_binary(path, "firsts", msgspec.msgpack.encode(FoundFile(pos, parts, waiting)))
    return inside(checkpoint, path)


class Subscribes:
    """Rows of subscribes, as what holds the subscriptions that are reported to."""

    def __init__(self, table: pa.RecordBatch) -> None:
        ids, id_bytes = strings(table["id"])
        tails, tail_bytes = strings(table["tail"])
        self._lengths = np.diff(ids), np.diff(tails)
        starts = np.stack([ids[:-1], tails[:-1] + len(id_bytes)], axis=1).ravel()
        lengths = np.stack(self._lengths, axis=1).ravel()
        offsets, self._text = gather(np.concatenate([id_bytes, tail_bytes]), starts, lengths)
        self._starts = offsets[:-1:2]

    def __len__(self) -> int:
        """How many there are."""
        return len(self._starts)

    def texts(self, slots: Numbers) -> Texts:
        """Ids and echoes."""
        ids, tails = self._lengths
        return Texts(self._text, self._starts[slots], ids[slots], tails[slots])


def reported_at_once(
    kind: WireKind, lasts: pa.RecordBatch, found: list[Past], places: Numbers, clock: Numbers
) -> tuple[Reported, Numbers, Numbers]:
    """What a shard found, as the first event of a kind; for each its place among the objects, and
    when it is reported.

    `places`, `clock`: the number of objects before each subscribe, and how far time had come.
    """
    counts = np.array([len(past.ids) for past in found], np.int64)
    slot = np.repeat(np.arange(len(found)), counts)
    ids = [id_ for past in found for id_ in past.ids]
    time = np.frombuffer(b"".join(past.time for past in found), np.int64)
    place = places[slot]
    event = np.zeros(len(slot), np.uint8)
    changes = changes_of(place, slot, event, time, np.zeros(len(slot)), ids)
    return Reported(kind, Subscribes(lasts), changes), place, clock[slot]


def changes_of(
    order: Numbers,
    slot: Numbers,
    event: NDArray[np.uint8],
    time: Numbers,
    value: NDArray[np.float64],
    ids: list[bytes],
) -> Changes:
    """Changes that come from no index; `ids`: of the objects."""
    lengths = np.array([len(id_) for id_ in ids], np.int64)
    starts = np.cumsum(lengths) - lengths
    names = np.frombuffer(b"".join(ids), np.uint8)
    return Changes(order, slot, event, time, value, starts, lengths, names)
