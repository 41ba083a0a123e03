"""The events of one batch on one shard, put into the order of the log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.envelope import Envelope
from nearcast.wire.tables import CONTROLS, OBJECTS, ObjectColumns, join, numbers, object_columns


@dataclass(slots=True)
class Ordered:
    """Controls and objects in order, and how they interleave."""

    controls: pa.RecordBatch
    at: NDArray[np.int32]  # objects before each control
    objects: ObjectColumns
    clock: NDArray[np.int64]  # latest time so far, at each object
    now: int  # and after the batch


def in_order(envelopes: list[Envelope], order: str, now: int) -> Ordered:
    """SPEC section 3, "Order": by time in a replayed log, by arrival in a live stream."""
    envelopes = sorted(envelopes, key=lambda e: e.split)
    tables = [e.object_table for e in envelopes]
    objects = join(tables, OBJECTS)
    controls = join([e.control_table for e in envelopes], CONTROLS)
    latest = max([now, *(e.latest for e in envelopes)])
    if order == "arrival":
        columns = object_columns(objects)
        before = np.maximum.accumulate([now, *(e.latest for e in envelopes)])[:-1]
        floor = np.repeat(before, [t.num_rows for t in tables])
        clock = np.maximum(columns.clock, floor)
        at = np.searchsorted(numbers(objects["pos"]), numbers(controls["pos"]))
        return Ordered(controls, at.astype(np.int32), columns, clock, latest)
    time = numbers(objects["time"])
    rows = _sorted(time, numbers(objects["pos"]))
    columns = object_columns(objects, rows)
    clock = np.maximum(time[rows], now)
    by_time = _sorted(numbers(controls["time"]), numbers(controls["pos"]))
    if not np.array_equal(by_time, np.arange(len(by_time))):
        controls = controls.take(pa.array(by_time))
    at = np.searchsorted(time[rows], numbers(controls["time"]), side="left")
    return Ordered(controls, at.astype(np.int32), columns, clock, latest)


def _sorted(time: NDArray[np.int64], pos: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows by (time, pos); positions ascend already."""
    if np.all(time[1:] >= time[:-1]):
        return np.arange(len(time))
    return np.argsort(time, kind="stable")
