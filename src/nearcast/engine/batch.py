"""The events of one batch on one shard, put into the order of the log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.envelope import Envelope
from nearcast.engine.settings import Settings
from nearcast.wire.tables import (
    CONTROLS,
    NEVER,
    OBJECTS,
    ObjectColumns,
    join,
    numbers,
    object_columns,
    with_clock,
)


@dataclass(slots=True)
class Ordered:
    """Controls and objects in order, and how they interleave."""

    controls: pa.RecordBatch
    at: NDArray[np.int32]  # objects before each control
    objects: ObjectColumns
    clock: NDArray[np.int64]  # latest time so far, at each object
    now: int  # and after the batch


def only(ordered: Ordered, mine: NDArray[np.bool_]) -> Ordered:
    """The same with some of the objects, told by row."""
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


def in_order(envelopes: list[Envelope], settings: Settings, now: int) -> Ordered:
    """SPEC section 3, "Order": by time in a replayed log, by arrival in a live stream."""
    envelopes = sorted(envelopes, key=lambda e: e.split)
    tables = [e.object_table for e in envelopes]
    objects = join(tables, OBJECTS)
    events = [e.control_table for e in envelopes]
    controls = join(events, CONTROLS)
    latest = max([now, *(e.latest for e in envelopes)])
    if settings.order == "arrival":
        before = np.maximum.accumulate([now, *(e.latest for e in envelopes)])[:-1]
        clock = np.maximum(
            numbers(objects["clock"]), np.repeat(before, [t.num_rows for t in tables])
        )
        # What comes later than the grace no longer reaches what had ended by then: so the result
        # does not depend on when ended subscriptions are thrown away.
        until = np.maximum(numbers(objects["time"]), clock - settings.grace_ms)
        columns = object_columns(objects, until=until)
        floor = np.repeat(before, [t.num_rows for t in events])
        controls = with_clock(controls, np.maximum(numbers(controls["clock"]), floor))
        at = np.searchsorted(numbers(objects["pos"]), numbers(controls["pos"]))
        return Ordered(controls, at.astype(np.int32), columns, clock, latest)
    if not any(e.final for e in envelopes):
        # More events of this very instant may follow, an unsubscribe among them: what the instant
        # itself changes waits for them.
        latest = max(now, latest - 1)
    time = numbers(objects["time"])
    rows = _sorted(time, numbers(objects["pos"]))
    columns = object_columns(objects, rows)
    clock = np.maximum(time[rows], now)
    by_time = _sorted(numbers(controls["time"]), numbers(controls["pos"]))
    if not np.array_equal(by_time, np.arange(len(by_time))):
        controls = controls.take(pa.array(by_time))
    controls = with_clock(controls, np.full(controls.num_rows, NEVER))
    at = np.searchsorted(time[rows], numbers(controls["time"]), side="left")
    return Ordered(controls, at.astype(np.int32), columns, clock, latest)


def _sorted(time: NDArray[np.int64], pos: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows by (time, pos); positions ascend already."""
    if np.all(time[1:] >= time[:-1]):
        return np.arange(len(time))
    return np.argsort(time, kind="stable")
