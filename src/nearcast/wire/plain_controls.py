"""Subscribes and unsubscribes in their plainest form, column by column instead of row by row.

Whatever is not plain is left to `wire.subscriptions`; it would make the same rows of these.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.kernels.plain_query import read_queries
from nearcast.kernels.ragged import gather
from nearcast.kernels.slots import CONJUNCTION, REPORTS, SUBSCRIBE, UNSUBSCRIBE
from nearcast.model.region import BBOX
from nearcast.model.space import Space
from nearcast.wire.decode import escaped
from nearcast.wire.tables import (
    CONTROLS,
    FOREVER,
    KIND_CODES,
    LIMIT,
    NEVER,
    list_column,
    string_column,
    strings,
)

_LONGEST = 256  # characters of an id


def plain_controls(
    batch: pa.RecordBatch, pos: NDArray[np.int64], space: Space
) -> tuple[NDArray[np.bool_], pa.RecordBatch]:
    """(which rows are plain, these as CONTROLS); columns are of the types that they should have."""
    op, ids = batch["op"].cast(pa.string()), batch["id"].cast(pa.large_string())
    whole = batch["time"].fill_null(0).to_numpy()
    time = np.where(whole > LIMIT, LIMIT, whole).astype(np.int64)  # uint64 would turn over
    time[pc.is_null(batch["time"]).to_numpy(zero_copy_only=False)] = LIMIT
    length = pc.utf8_length(ids).fill_null(0).to_numpy()
    named = (length > 0) & (length <= _LONGEST) & (time < LIMIT) & (time > -LIMIT)
    subscribes, unsubscribes = (
        named & pc.equal(op, name).fill_null(False).to_numpy(zero_copy_only=False)
        for name in ("subscribe", "unsubscribe")
    )
    for name in ("expires", "owner", "meta"):
        if name in batch.schema.names:
            subscribes &= pc.is_null(batch[name]).to_numpy(zero_copy_only=False)
    offsets, data = strings(batch["query"].fill_null("").cast(pa.large_string()))
    found = read_queries(data, offsets)
    west, south, east, north = found.boxes.T
    inside = (west <= east) & (south <= north)
    if space is Space.GEOGRAPHIC:
        inside &= (west > -180) & (east < 180) & (south >= -90) & (north <= 90)
    plain = (subscribes & found.plain & inside) | unsubscribes
    rows = np.flatnonzero(plain)
    asks = subscribes[rows]
    kept, none = len(rows), np.zeros(len(rows) + 1, np.int64)
    flags = np.where(found.conjunction[rows] & asks, REPORTS | CONJUNCTION | BBOX, REPORTS | BBOX)
    words, reals = CONTROLS.field("program").type, CONTROLS.field("region").type
    table = pa.RecordBatch.from_arrays(
        [
            pa.array(pos[rows]),
            pa.array(np.where(asks, SUBSCRIBE, UNSUBSCRIBE).astype(np.uint8)),
            pa.array(np.where(asks, KIND_CODES["range"], 0).astype(np.uint8)),
            pa.array(time[rows]),
            pa.array(np.full(kept, FOREVER)),
            pa.array(np.full(kept, NEVER)),
            pa.array(np.zeros(kept, np.int64)),
            pa.array(np.zeros(kept, np.int64)),
            pa.array(np.where(asks, flags, REPORTS).astype(np.int32)),
            escaped(ids.take(pa.array(rows))),
            string_column(none, np.empty(0, np.uint8)),
            list_column(*_runs(found.program, found.program_offsets, rows, asks), words),
            list_column(*_runs(found.cover, found.cover_offsets, rows, asks), words),
            list_column(np.append(0, np.cumsum(4 * asks)), found.boxes[rows[asks]].ravel(), reals),
            list_column(none, np.empty(0), reals),
        ],
        schema=CONTROLS,
    )
    return plain, table


def _runs(
    values: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    some: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """What `some` of the rows hold, the others nothing."""
    return gather(values, offsets[rows], np.where(some, offsets[rows + 1] - offsets[rows], 0))
