"""Replays for experiments: logs of one kind of event each, and their batches kept apart."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.engine import Engine
from nearcast.engine.output.reports import BatchRecord
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.wire.columns import decode_columns
from nearcast.wire.tables import ObjectColumns, object_columns

_ROWS = 125_000  # of a row group


def split_log(log: Path, warm: Path, subscribes: Path, objects: Path) -> pa.Table:
    """Cut a log into its subscribes and its objects, which are returned; and make a first log of
    a few events that do nothing, in which workers start and kernels are loaded."""
    table = pq.read_table(log)
    publish = pa.compute.equal(table["op"], "publish")
    queried, published = table.filter(pa.compute.invert(publish)), table.filter(publish)
    write_warm(warm, queried["time"][0].as_py() - 1)
    for path, rows in ((subscribes, queried), (objects, published)):
        pq.write_table(rows, path, compression="zstd", row_group_size=_ROWS)
    return published


def write_warm(path: Path, time_ms: int) -> None:
    """A log of a few events that do nothing."""
    event = {"op": "unsubscribe", "id": "nobody", "time": time_ms}
    path.write_text("".join(json.dumps(event) + "\n" for _ in range(4)))


def batches_of(path: Path) -> Iterator[pa.RecordBatch]:
    """The row groups of a log."""
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group).combine_chunks().to_batches()


def objects_of(path: Path) -> ObjectColumns:
    """All objects of a log, decoded."""
    tables = [
        decode_columns(batch, Space.GEOGRAPHIC, KINDS, split=n).objects
        for n, batch in enumerate(batches_of(path))
    ]
    return object_columns(pa.Table.from_batches(tables).combine_chunks().to_batches()[0])


def replay(
    engine: Engine, events: list[Path], out: Path, batch_events: int | None, checkpoint: Path | None
) -> tuple[list[BatchRecord], dict[str, Any], float]:
    """(records, summary, seconds of planning) of one replay."""
    records: list[BatchRecord] = []
    started = time.perf_counter()
    planned: list[float] = []
    summary = engine.replay(
        events,
        out,
        checkpoint=checkpoint,
        on_batch=records.append,
        on_plan=lambda *_: planned.append(time.perf_counter() - started),
        **({"batch_events": batch_events} if batch_events else {}),
    )
    return records, summary, planned[0]


def by_kind(records: list[BatchRecord]) -> tuple[list[BatchRecord], list[BatchRecord]]:
    """(batches of subscribes, batches of objects); the first batch belongs to neither."""
    subscribes = [r for r in records[1:] if r.reports[0].events.get("subscribe")]
    objects = [
        r for r in records[1:]
        if r.reports[0].events.get("publish") and not r.reports[0].events.get("subscribe")
    ]  # fmt: skip
    return subscribes, objects


def plan_only(engine: Engine, log: Path, checkpoint: Path, batch_events: int | None) -> None:
    """Plan a log alone, so that its events share no batch with those of another."""
    engine.plan([log], checkpoint, **({"batch_events": batch_events} if batch_events else {}))
