"""Subscribes and unsubscribes in their plainest form, column by column instead of row by row.

Rows that are not plain are left to `wire.subscriptions`, which makes the same rows of plain ones.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.kernels.ragged import gather
from nearcast.kernels.slots import SUBSCRIBE, UNSUBSCRIBE
from nearcast.model.events import MAX_ID_LENGTH
from nearcast.model.space import Space
from nearcast.wire.json_form import escaped
from nearcast.wire.kind import Kinds, PlainRows
from nearcast.wire.tables import (
    CONTROLS,
    ENDS,
    FOREVER,
    LIMIT,
    NEVER,
    list_column,
    string_column,
    strings,
)


def plain_controls(
    batch: pa.RecordBatch, pos: NDArray[np.int64], space: Space, kinds: Kinds
) -> tuple[NDArray[np.bool_], dict[str, pa.RecordBatch], pa.RecordBatch]:
    """(which rows are plain, subscribes of each kind, ENDS) of these; columns have usual types."""
    op, ids = batch["op"].cast(pa.string()), batch["id"].cast(pa.large_string())
    whole = batch["time"].fill_null(0).to_numpy()
    time = np.where(whole > LIMIT, LIMIT, whole).astype(np.int64)  # uint64 would turn over
    time[pc.is_null(batch["time"]).to_numpy(zero_copy_only=False)] = LIMIT
    length = pc.utf8_length(ids).fill_null(0).to_numpy()
    named = (length > 0) & (length <= MAX_ID_LENGTH) & (time < LIMIT) & (time > -LIMIT)
    subscribes, unsubscribes = (
        named & pc.equal(op, name).fill_null(False).to_numpy(zero_copy_only=False)
        for name in ("subscribe", "unsubscribe")
    )
    for name in ("expires", "owner", "meta", "last"):
        if name in batch.schema.names:
            subscribes &= pc.is_null(batch[name]).to_numpy(zero_copy_only=False)
    offsets, data = strings(batch["query"].fill_null("").cast(pa.large_string()))
    plain = unsubscribes.copy()
    tables = {}
    for name, kind in kinds.items():
        found = kind.read_plain(data, offsets, space)
        if found is None:
            continue
        rows = np.flatnonzero(subscribes & found.plain)
        plain[rows] = True
        if len(rows):
            columns = _common(found, rows, pos, time, ids) + found.columns(rows)
            tables[name] = pa.RecordBatch.from_arrays(columns, schema=kind.schema)
    rows = np.flatnonzero(unsubscribes)
    ends = pa.RecordBatch.from_arrays(
        [
            pa.array(pos[rows]),
            pa.array(np.full(len(rows), UNSUBSCRIBE, np.uint8)),
            pa.array(time[rows]),
            pa.array(np.full(len(rows), NEVER)),
            escaped(ids.take(pa.array(rows))),
        ],
        schema=ENDS,
    )
    return plain, tables, ends


def _common(
    found: PlainRows,
    rows: NDArray[np.int64],
    pos: NDArray[np.int64],
    time: NDArray[np.int64],
    ids: pa.Array,
) -> list[pa.Array]:
    """The columns of CONTROLS."""
    n, words = len(rows), CONTROLS.field("program").type
    return [
        pa.array(pos[rows]),
        pa.array(np.full(n, SUBSCRIBE, np.uint8)),
        pa.array(time[rows]),
        pa.array(np.full(n, FOREVER)),
        pa.array(np.full(n, NEVER)),
        pa.array(found.flags[rows]),
        escaped(ids.take(pa.array(rows))),
        string_column(np.zeros(n + 1, np.int64), np.empty(0, np.uint8)),
        list_column(*_runs(found.program, found.program_offsets, rows), words),
        list_column(*_runs(found.cover, found.cover_offsets, rows), words),
    ]


def _runs(
    values: NDArray[np.uint64], offsets: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """What the rows hold."""
    return gather(values, offsets[rows], offsets[rows + 1] - offsets[rows])
