"""Planning a replay: which events make up each batch, in the order of their times.

A log that is in order, or out of order only within a batch, is read where it lies. Where a batch
gathers lines from all over, they are copied to a spool first, once.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.kernels.ragged import gather
from nearcast.wire.logs import Log
from nearcast.wire.plain_types import without_views
from nearcast.wire.split import Split

_RUNS = 32  # a batch of more separate runs than this is spooled


class Planner:
    """Cuts logs into batches of about `batch_events` and those into `splits` pieces."""

    def __init__(self, logs: list[Log], batch_events: int, splits: int, spool: Path) -> None:
        self.logs, self.batch_events, self.splits, self.spool = logs, batch_events, splits, spool
        self._first = np.concatenate([[0], np.cumsum([len(log) for log in logs])]).astype(np.int64)
        self._tables: dict[int, pa.Table] = {}

    def batches(self) -> Iterator[list[Split]]:
        """The splits of each batch; those of the last one say so."""
        held: list[Split] = []
        for splits in self._batches():
            if held:
                yield held
            held = splits
        if held:
            yield [msgspec.structs.replace(split, final=True) for split in held]

    def _batches(self) -> Iterator[list[Split]]:
        time = (
            np.concatenate([log.time for log in self.logs]) if self.logs else np.empty(0, np.int64)
        )
        group = np.concatenate([log.group for log in self.logs]) if self.logs else time
        problems = [p for log in self.logs for p in log.problems]
        if problems:
            yield problems
        same = time[1:] == time[:-1]
        ordered = bool(np.all((time[1:] > time[:-1]) | (same & (group[1:] >= group[:-1]))))
        order = None if ordered else np.lexsort((group, time))
        at = 0
        while at < len(time):
            stop = min(at + self.batch_events, len(time))
            rows = np.arange(at, stop) if order is None else np.sort(order[at:stop])
            stop = self._whole_groups(rows, stop) if order is None else stop
            rows = np.arange(at, stop) if order is None else rows
            yield self._splits(rows)
            at = stop

    def _whole_groups(self, rows: NDArray[np.int64], stop: int) -> int:
        """Where a Parquet row group ends near the end of the batch, end the batch there."""
        n = int(np.searchsorted(self._first, rows[-1], side="right")) - 1
        log = self.logs[n]
        if log.format != "parquet":
            return stop
        ends = log.offsets + self._first[n]
        near = ends[(ends > stop - self.batch_events // 2) & (ends < stop + self.batch_events // 2)]
        return int(near[np.argmin(np.abs(near - stop))]) if len(near) else stop

    def _splits(self, rows: NDArray[np.int64]) -> list[Split]:
        """Splits for events `rows` (numbers over all logs, ascending)."""
        breaks = np.flatnonzero(np.diff(rows) > 1) + 1
        bounds = np.searchsorted(rows, self._first[1:-1])
        cuts = np.unique(np.concatenate([[0], breaks, bounds, [len(rows)]]))
        out: list[Split] = []
        runs = [(int(a), int(b)) for a, b in itertools.pairwise(cuts) if b > a]
        piece = -(-len(rows) // self.splits)
        if len(runs) > _RUNS:
            return self._spool(rows)
        for a, b in runs:
            n = int(np.searchsorted(self._first, rows[a], side="right")) - 1
            first = int(rows[a] - self._first[n])
            log = self.logs[n]
            if log.format == "parquet":
                out += self._parquet(n, first, b - a)
                continue
            for at in range(first, first + b - a, piece):
                stop = min(at + piece, first + b - a)
                start = int(log.offsets[at])
                length = int(log.offsets[stop]) - start
                out.append(Split("jsonl", str(log.path), log.name, start, length, at + 1))
        return out

    def _parquet(self, n: int, first: int, count: int) -> list[Split]:
        """Whole row groups are read where they lie; other rows from a spool."""
        log = self.logs[n]
        a = int(np.searchsorted(log.offsets, first))
        b = int(np.searchsorted(log.offsets, first + count))
        whole = log.offsets[a] == first and log.offsets[b] == first + count
        if whole and (b - a >= self.splits or count < 10_000):
            return [
                Split("parquet", str(log.path), log.name, g, 1, int(log.offsets[g]) + 1)
                for g in range(a, b)
                if log.offsets[g + 1] > log.offsets[g]
            ]
        table = self._table(n).slice(first, count)
        path = self._new("arrow")
        piece = -(-count // self.splits)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            starts = list(range(0, count, piece))
            for at in starts:
                for batch in table.slice(at, piece).combine_chunks().to_batches():
                    writer.write_batch(batch)
        return [
            Split("arrow", str(path), log.name, i, 1, first + at + 1) for i, at in enumerate(starts)
        ]

    def _table(self, n: int) -> pa.Table:
        if n not in self._tables:
            self._tables = {n: without_views(pq.read_table(self.logs[n].path, memory_map=True))}
        return self._tables[n]

    def _spool(self, rows: NDArray[np.int64]) -> list[Split]:
        """Copy scattered events; the splits keep the order of the logs."""
        out: list[Split] = []
        for n, log in enumerate(self.logs):
            mine = rows[(rows >= self._first[n]) & (rows < self._first[n + 1])] - self._first[n]
            if len(mine) == 0:
                continue
            path = self._new(log.format)
            numbers = path.with_suffix(".lines")
            np.stack([np.zeros(len(mine), np.int64), mine + 1], axis=1).tofile(numbers)
            known = {"lines": str(numbers), "names": (log.name,)}
            if log.format == "parquet":
                taken = self._table(n).take(pa.array(mine)).combine_chunks()
                with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, taken.schema) as w:
                    for batch in taken.to_batches():
                        w.write_batch(batch)
                out.append(Split("arrow", str(path), log.name, 0, 1, **known))  # type: ignore[arg-type]
                continue
            data = np.memmap(log.path, np.uint8, "r")
            lengths = log.offsets[mine + 1] - log.offsets[mine]
            offsets, lines = gather(data, log.offsets[mine], lengths)
            whole = lines.tobytes()
            if mine[-1] == len(log) - 1 and not whole.endswith(b"\n"):
                whole += b"\n"
            path.write_bytes(whole)
            piece = -(-len(mine) // self.splits)
            for at in range(0, len(mine), piece):
                stop = min(at + piece, len(mine))
                end = len(whole) if stop == len(mine) else int(offsets[stop])
                start = int(offsets[at])
                out.append(
                    Split("jsonl", str(path), log.name, start, end - start, line_start=at, **known)  # type: ignore[arg-type]
                )
        return out

    def _new(self, suffix: str) -> Path:
        self.spool.mkdir(parents=True, exist_ok=True)
        return self.spool / f"{uuid.uuid4().hex}.{suffix}"
