"""Putting an index through an event log, batch by batch, as the engine does on one shard."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Memory, Storage
from nearcast.index.base import LocalIndex
from nearcast.kinds import KINDS, Kind
from nearcast.kinds.base import MakeIndex
from nearcast.model.frame import Idf
from nearcast.model.space import Space
from nearcast.model.standing import Needs
from nearcast.objects import DEFAULT, STORES
from nearcast.objects.base import Slicing
from nearcast.objects.tables import read_table, table_of_carried
from nearcast.testing.oracle import Order
from nearcast.wire.carried import Carried, carried_by
from nearcast.wire.changes import Changes
from nearcast.wire.decode import Decoded
from nearcast.wire.jsonl import decode_jsonl
from nearcast.wire.tables import FOREVER, ObjectColumns, numbers, object_columns, with_clock

__all__ = [
    "Batch",
    "go_on",
    "kind_of",
    "maker",
    "notifications",
    "plan",
    "run_index",
    "step",
]

Event = dict[str, Any] | str
_CONTROL, _OBJECT = 0, 1


@dataclass(frozen=True, slots=True)
class Batch:
    """What an index is given at once."""

    controls: pa.RecordBatch
    at: NDArray[np.int32]
    objects: ObjectColumns
    carried: Carried
    clock: NDArray[np.int64]
    now: int
    stored: pa.RecordBatch | None
    """STORED of the objects, in object order, if the kind keeps objects."""
    idf: Idf
    settled: int
    """No event of a later batch, and nothing untold, is earlier: what `compact` may be given."""


def kind_of(kind: str | Kind) -> Kind:
    """The kind of a registered name, or the kind itself."""
    return KINDS[kind] if isinstance(kind, str) else kind


def maker(index: str | MakeIndex, kind: Kind) -> MakeIndex:
    """What makes an index for a kind: given by its registered name, or as it is."""
    return kind.index(index) if isinstance(index, str) else index


def plan(
    events: Iterable[Event],
    kind: str | Kind,
    space: Space,
    order: Order = "time",
    cuts: Iterable[int] = (),
) -> list[Batch]:
    """The valid events of a log in order, cut before each of the positions `cuts` of that order.

    Subscribes of other kinds are there as what they are for an index of `kind`: ends of ids.
    """
    kind = kind_of(kind)
    lines = [e if isinstance(e, str) else json.dumps(e) for e in events]
    decoded = decode_jsonl(
        "\n".join(lines).encode(), space, {**KINDS, kind.name: kind}, needs=kind.needs
    )
    controls = decoded.of(kind)
    sequence = sorted(
        [(*key, _CONTROL, row) for row, key in enumerate(_keys(controls, _CONTROL, order))]
        + [(*key, _OBJECT, row) for row, key in enumerate(_keys(decoded.objects, _OBJECT, order))]
    )
    ends = sorted({c for c in cuts if 0 < c < len(sequence)} | {len(sequence)})
    times = [numbers(controls["time"]), numbers(decoded.objects["time"])]
    whens = [int(times[table][row]) for *_, table, row in sequence]
    batches: list[Batch] = []
    ranks = np.empty(decoded.objects.num_rows, np.int64)
    ranks[[row for *_, table, row in sequence if table == _OBJECT]] = np.arange(len(ranks))
    first = 0
    for end in ends:
        rows = [(table, row) for *_, table, row in sequence[first:end]]
        clocks = np.array([max(whens[: n + 1]) for n in range(first, end)], np.int64)
        now = max(whens[:end], default=-FOREVER)
        if end < len(sequence) if order == "time" else kind.after_objects:
            # Unsubscribes of this very instant may follow: what the instant itself changes has to
            # wait for them, or the cut would show in the notifications. As events arrive, only what
            # comes after the objects of an instant waits.
            now -= 1
        settled = min([now, *whens[end:]])
        # How far time had come before each event. By time, what an instant changes waits for all
        # controls of it, so that no control comes after a moment.
        before = np.array([max(whens[:n], default=-FOREVER) for n in range(first, end)], np.int64)
        if order == "time":
            before[:] = -FOREVER
        batches.append(_batch(kind, controls, decoded, ranks, rows, clocks, before, now, settled))
        first = end
    return batches


def _keys(table: pa.RecordBatch, place: int, order: Order) -> list[tuple[int, ...]]:
    """What the events of a table are sorted by (SPEC section 3)."""
    pos = numbers(table["pos"]).tolist()
    if order == "arrival":
        return [(p,) for p in pos]
    return [(t, place, p) for t, p in zip(numbers(table["time"]).tolist(), pos, strict=True)]


def _batch(
    kind: Kind,
    controls: pa.RecordBatch,
    decoded: Decoded,
    ranks: NDArray[np.int64],
    rows: list[tuple[int, int]],
    clocks: NDArray[np.int64],
    before: NDArray[np.int64],
    now: int,
    settled: int,
) -> Batch:
    is_object = np.array([table == _OBJECT for table, _ in rows], bool)
    objects_before = np.cumsum(is_object) - is_object
    control_rows = np.array([row for table, row in rows if table == _CONTROL], np.int64)
    object_rows = np.array([row for table, row in rows if table == _OBJECT], np.int64)
    # Objects rest in the table as they arrived; `order` alone says which comes first.
    ascending = np.sort(object_rows)
    objects = decoded.objects.take(pa.array(ascending))
    texts = [] if decoded.texts is None else [decoded.texts]
    ranked = ranks[ascending] if Needs.RANK in decoded.needs else None
    stored = None
    if kind.keeps:
        stored = table_of_carried(decoded.objects.take(pa.array(object_rows)), ranks[object_rows])
    return Batch(
        with_clock(controls.take(pa.array(control_rows)), before[~is_object]),
        objects_before[~is_object].astype(np.int32),
        object_columns(objects, np.searchsorted(ascending, object_rows)),
        carried_by(objects, texts, ranked, decoded.needs),
        clocks[is_object],
        now,
        stored,
        kind.frame.idf.hashed,
        settled,
    )


def keep(index: LocalIndex, batch: Batch) -> None:
    """Give the index the objects of the past, and of the batch, if its kind keeps them."""
    if batch.stored is None:
        return
    if index.past is None:
        index.past = STORES[DEFAULT](index.space, Memory(), Slicing(), batch.idf)
    if batch.stored.num_rows:
        index.past.add(*read_table(batch.stored))


def step(index: LocalIndex, batch: Batch) -> Changes:
    """Apply and match one batch; the caller closes it."""
    index.apply(batch.controls, batch.at)
    index.carry(batch.carried)
    keep(index, batch)
    return index.match(batch.objects, batch.clock, batch.now)


def notifications(index: LocalIndex, changes: Changes, kind: str | Kind) -> list[dict[str, Any]]:
    """The changes as SPEC section 6 writes them; before the index goes on."""
    kind = kind_of(kind)
    changes = changes.take(np.flatnonzero(index.reports(changes.slot)))
    texts = index.texts(changes.slot)
    reported = []
    for n in range(len(changes)):
        start = int(texts.starts[n])
        middle = start + int(texts.id_lengths[n])
        stop = middle + int(texts.tail_lengths[n])
        first = int(changes.name_starts[n])
        name = changes.names[first : first + int(changes.name_lengths[n])]
        event = kind.events[int(changes.event[n])]
        value = f',"{kind.value}":{json.dumps(float(changes.value[n]))}' if event.value else ""
        what = f'"{event.field}":{_text(name)}' if event.field else f'"object":"{_text(name)}"'
        reported.append(
            json.loads(
                f'{{"id":"{_text(texts.text[start:middle])}","event":"{event.name}",'
                f'{what},"time":{int(changes.time[n])}{value}'
                f"{_text(texts.text[middle:stop])}}}"
            )
        )
    return reported


def _text(data: NDArray[np.uint8]) -> str:
    return data.tobytes().decode()


def go_on(index: LocalIndex, batches: list[Batch], kind: str | Kind) -> list[dict[str, Any]]:
    """What the index reports of further batches."""
    reported: list[dict[str, Any]] = []
    for batch in batches:
        reported += notifications(index, step(index, batch), kind)
        index.close()
    return reported


def run_index(
    index: str | MakeIndex,
    events: Sequence[Event],
    kind: str | Kind,
    space: Space,
    cuts: Iterable[int] = (),
    order: Order = "time",
    storage: Storage | None = None,
    between: Callable[[LocalIndex, Batch], LocalIndex] | None = None,
) -> list[dict[str, Any]]:
    """The notifications of an index of one kind for a log.

    `between` is called after every batch, and returns the index that goes on.
    """
    kind = kind_of(kind)
    running = maker(index, kind)(space, Memory() if storage is None else storage)
    reported = []
    for batch in plan(events, kind, space, order, cuts):
        reported += notifications(running, step(running, batch), kind)
        running.close()
        if between is not None:
            past, running = running.past, between(running, batch)
            running.past = past
    return reported
