"""The events of one batch on one shard, put into the order of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.options.settings import Settings
from nearcast.engine.route.envelope import Envelope
from nearcast.engine.shard.carried import carried, every_object
from nearcast.kinds import Kind
from nearcast.wire.asks import asks_with
from nearcast.wire.carried import Carried
from nearcast.wire.lasts import lasts_with
from nearcast.wire.tables import (
    ENDS,
    FOREVER,
    NEVER,
    OBJECTS,
    ObjectColumns,
    empty,
    from_bytes,
    join,
    numbers,
    object_columns,
    replaced,
    with_clock,
    with_ends,
)


@dataclass(slots=True)
class Ordered:
    """Controls of one kind and objects in order, and how they interleave."""

    controls: pa.RecordBatch
    at: NDArray[np.int32]  # objects before each control
    objects: ObjectColumns
    clock: NDArray[np.int64]  # latest time so far, at each object
    now: int  # moments up to then have passed when the batch is over


def only(ordered: Ordered, mine: NDArray[np.bool_]) -> Ordered:
    """The same with some of the objects, given by row."""
    kept = np.flatnonzero(mine[ordered.objects.order])
    return Ordered(
        ordered.controls,
        np.searchsorted(kept, ordered.at).astype(np.int32),
        ordered.objects._replace(order=ordered.objects.order[kept]),
        ordered.clock[kept],
        ordered.now,
    )


def ranks_in(whole: Ordered, part: Ordered) -> NDArray[np.int64]:
    """The place of each object of a part among all of the batch; last, that of what comes after."""
    place = np.empty(len(whole.objects.time), np.int64)
    place[whole.objects.order] = np.arange(len(whole.objects.order))
    return np.append(place[part.objects.order], len(place))


@dataclass(slots=True)
class Events:
    """All events of a batch on one shard, whatever their kind."""

    subscribes: dict[str, pa.RecordBatch]  # by kind
    ends: pa.RecordBatch  # ENDS
    pos: NDArray[np.int64]  # of the objects
    objects: ObjectColumns
    clock: NDArray[np.int64]
    now: int
    by_time: bool
    published: int  # objects of the batch, wherever they went
    carried: Carried | None  # what the objects carry besides; None: no kind in use needs any of it
    table: pa.RecordBatch  # the objects as they came
    asks: dict[str, pa.RecordBatch]  # by kind, in the order of the log
    before: dict[str, NDArray[np.int64]]  # the first rank that each of these does not see
    in_use: frozenset[str]  # kinds that route objects in this batch
    held: NDArray[np.bool_] | None  # objects that the shard holds for kinds that are not (or None)
    lasts: dict[str, pa.RecordBatch]  # subscribes that look back, and the same of them
    lasts_before: dict[str, NDArray[np.int64]]

    def __len__(self) -> int:
        """Subscribes and ends."""
        return int(self.ends.num_rows + sum(t.num_rows for t in self.subscribes.values()))

    def clock_of(self, table: pa.RecordBatch) -> NDArray[np.int64]:
        """How far time has come at asks, or at subscribes that look back."""
        time = numbers(table["time"])  # by time, nothing later came before
        return time if self.by_time else np.maximum(numbers(table["clock"]), time)

    def places_of(self, table: pa.RecordBatch) -> NDArray[np.int64]:
        """How many objects of the batch come before subscribes."""
        if self.by_time:
            times = self.objects.time[self.objects.order]
            return np.searchsorted(times, numbers(table["time"]), side="left")
        return np.searchsorted(self.pos, numbers(table["pos"]))

    def without(self, refused: dict[str, NDArray[np.int64]]) -> None:
        """Forget subscribes at these positions, by kind, and what they would end."""
        gone = np.concatenate(list(refused.values()))
        if not len(gone):
            return
        self.ends = _except(self.ends, gone)
        for kind, pos in refused.items():
            if kind in self.subscribes:  # it may rest elsewhere
                self.subscribes[kind] = _except(self.subscribes[kind], pos)

    def of(self, kind: Kind) -> Ordered:
        """What concerns an index of one kind, in order: its subscribes, and all ends of ids."""
        own = self.subscribes.get(kind.name, empty(kind.schema))
        others = [replaced(t) for name, t in self.subscribes.items() if name != kind.name]
        controls = with_ends(own, [self.ends, *others], kind.schema)
        if self.by_time:
            times = numbers(controls["time"])
            rows = _sorted(times)
            if not np.array_equal(rows, np.arange(len(rows))):
                controls, times = controls.take(pa.array(rows)), times[rows]
            controls = with_clock(controls, np.full(controls.num_rows, NEVER))
            at = np.searchsorted(self.objects.time[self.objects.order], times, side="left")
        else:
            at = np.searchsorted(self.pos, numbers(controls["pos"]))
        # By time, `now` waits for the rest of an instant already (`in_order`).
        now = self.now - (kind.after_objects and not self.by_time)
        return Ordered(controls, at.astype(np.int32), self.objects, self.clock, now)


def in_order(envelopes: list[Envelope], settings: Settings, now: int, ranked: int = 0) -> Events:
    """SPEC section 3, "Order": by time in a replayed log, by arrival in a live stream.

    `ranked`: how many objects of the run came before this batch.
    """
    envelopes = sorted(envelopes, key=lambda e: e.split)
    tables = [e.object_table for e in envelopes]
    objects = join(tables, tables[0].schema if tables else OBJECTS)
    pos = numbers(objects["pos"])
    latest = max([now, *(e.latest for e in envelopes)])
    by_time = settings.order == "time"
    besides = carried(envelopes, tables, objects, by_time, ranked)
    published = sum(e.extras.published for e in envelopes)
    before: list[int] = np.maximum.accumulate([now, *(e.latest for e in envelopes)])[:-1].tolist()
    floors = [None if by_time else floor for floor in before]
    kinds = settings.kinds
    subscribes = _by_kind([e.subscribes for e in envelopes], floors, kinds, lambda k: k.schema)
    asks = _by_kind([e.asks for e in envelopes], floors, kinds, asks_with)
    lasts = _by_kind([e.lasts for e in envelopes], floors, kinds, lasts_with)
    ends = join(list(map(_not_before, (e.end_table for e in envelopes), floors)), ENDS)
    if by_time:  # an ask comes after all objects up to its time: their times say enough
        ranks = {kind: np.full(table.num_rows, FOREVER) for kind, table in asks.items()}
    else:
        ranks = _ranks_before(asks, envelopes, tables, by_time, ranked)
    looking = _ranks_before(lasts, envelopes, tables, by_time, ranked)
    in_use = frozenset(name for e in envelopes for name in e.in_use)
    behind = (objects, asks, ranks, in_use, _held(envelopes, tables), lasts, looking)
    if not by_time:
        clock = np.maximum(
            numbers(objects["clock"]), np.repeat(before, [t.num_rows for t in tables])
        )
        # What comes later than the grace no longer reaches what had ended by then: so the result
        # does not depend on when ended subscriptions are thrown away.
        until = np.maximum(numbers(objects["time"]), clock - settings.grace_ms)
        columns = object_columns(objects, until=until)
        own = (subscribes, ends, pos, columns, clock, latest, by_time, published, besides)
        return Events(*own, *behind)
    if not any(e.final for e in envelopes):
        # More events of this very instant may follow, an unsubscribe among them: what the instant
        # itself changes waits for them.
        latest = max(now, latest - 1)
    time = numbers(objects["time"])
    rows = _sorted(time)
    columns = object_columns(objects, rows)
    clock = np.maximum(time[rows], now)
    common = (subscribes, ends, pos, columns, clock, latest, by_time, published, besides)
    return Events(*common, *behind)


def _held(envelopes: list[Envelope], tables: list[pa.RecordBatch]) -> NDArray[np.bool_] | None:
    """Which objects the shard holds for kinds that are not in use yet; None: none."""
    if all(e.held is None for e in envelopes):
        return None
    return np.concatenate(
        [
            np.zeros(t.num_rows, bool) if e.held is None else np.frombuffer(e.held, bool)
            for e, t in zip(envelopes, tables, strict=True)
        ]
    )


def _by_kind(
    tables: list[dict[str, memoryview]],
    floors: list[int | None],
    kinds: Mapping[str, Kind],
    schema_of: Callable[[Kind], pa.Schema],
) -> dict[str, pa.RecordBatch]:
    """Rows of a batch by kind, in the order of their positions; `tables`: of each envelope."""
    joined = {}
    for name, kind in kinds.items():
        schema, pairs = schema_of(kind), zip(tables, floors, strict=True)
        found = [(from_bytes(some[name], schema), floor) for some, floor in pairs if name in some]
        if found:
            joined[name] = join([_not_before(table, floor) for table, floor in found], schema)
    return joined


def _except(table: pa.RecordBatch, pos: NDArray[np.int64]) -> pa.RecordBatch:
    """The rows of other positions."""
    return table.filter(pa.array(~np.isin(numbers(table["pos"]), pos)))


def _ranks_before(
    rows: dict[str, pa.RecordBatch],
    envelopes: list[Envelope],
    tables: list[pa.RecordBatch],
    by_time: bool,
    ranked: int,
) -> dict[str, NDArray[np.int64]]:
    """The rank of the first object handled after each of `rows`, on whichever shard it is."""
    if not rows:
        return {}
    column = "time" if by_time else "pos"
    every = [numbers(t[column]) for t in every_object(envelopes, tables)]
    places = np.sort(np.concatenate([np.empty(0, np.int64), *every]))
    return {k: ranked + np.searchsorted(places, numbers(t[column])) for k, t in rows.items()}


def _not_before(controls: pa.RecordBatch, floor: int | None) -> pa.RecordBatch:
    """`controls` whose clock shows at least `floor`; None: nobody will look at it."""
    if floor is None:
        return controls
    return with_clock(controls, np.maximum(numbers(controls["clock"]), floor))


def _sorted(time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows by time, then by position in the log, by which they stand already."""
    if np.all(time[1:] >= time[:-1]):
        return np.arange(len(time))
    return np.argsort(time, kind="stable")
