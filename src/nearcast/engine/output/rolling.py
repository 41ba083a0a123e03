"""Rolling notifications and rejects into segments, and cutting off what is older than is kept.

Files of single batches become a small segment, many of these a large one, so that a run of years
has few files; each line is copied twice. Nothing is rolled that a repeated batch may write again,
and nothing is cut that a reader has stated it still needs (`wire.told`).
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.engine import faults
from nearcast.model.errors import NearcastError
from nearcast.wire.durable import sync_file, sync_folder, write_atomic
from nearcast.wire.segments import Index, Piece, Segment, covered, loose, segments, tidy
from nearcast.wire.told import Told

__all__ = ["LARGE", "Roller", "check_run"]

LARGE = 64
"""Small segments that become a large one."""
_REPEATED = 10  # batches that may be repeated: their files stay as they are
_PARTS = 8  # a segment spans no more than this part of the time that is kept


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Roller:
    """The segments of a folder of results."""

    def __init__(
        self, out: Path, format_: str, keep_ms: int, run: str, now: Callable[[], int] = _now_ms
    ) -> None:
        """`keep_ms`: how long notifications and rejects are kept; 0: for ever."""
        self.out, self.keep_ms, self.run, self._now = out, keep_ms, run, now
        self._told = Told(out)
        self._sorts = [("notifications", format_, False), ("rejected", "jsonl", False)]
        if format_ == "parquet":  # as rows, answers have columns of their own
            self._sorts.append(("notifications", format_, True))

    def roll(self, batch: int) -> None:
        """After a batch: roll what is old enough, merge small segments, cut what is too old."""
        for folder, format_, answers in self._sorts:
            self._roll(self.out / folder, format_, answers, batch - _REPEATED)
        self._cut()

    def _roll(self, folder: Path, format_: str, answers: bool, last: int) -> None:
        separate = answers if format_ == "parquet" else None
        found = sorted(loose(folder, format_, separate))
        rolled = segments(folder, format_, answers)
        tidy(folder, format_, answers)
        for piece in found:  # a crash left it behind
            if covered(rolled, piece.batch):
                piece.path.unlink(missing_ok=True)
        new = [p for p in found if p.batch <= last and not covered(rolled, p.batch)]
        if new:
            first = rolled[-1].last + 1 if rolled else 0
            into = Segment.of(folder, min(first, new[0].batch), last, format_, answers)
            times = [p.path.stat().st_mtime_ns // 1_000_000 for p in new]
            self._write(into, new, min(times), max(times))
            for piece in new:
                piece.path.unlink(missing_ok=True)
            rolled.append(into)
        self._merge(folder, format_, answers, rolled)

    def _merge(self, folder: Path, format_: str, answers: bool, rolled: list[Segment]) -> None:
        """Make a large segment of the small ones at the end, if they are many or span long."""
        small: list[Segment] = []
        indexes: list[Index] = []
        for segment in reversed(rolled):
            index = segment.contents()
            if index.merged:
                break
            small.insert(0, segment)
            indexes.insert(0, index)
        if len(small) < 2:
            return
        since, until = indexes[0].since_ms, indexes[-1].until_ms
        long = self.keep_ms and until - since > self.keep_ms // _PARTS
        if len(small) < LARGE and not long:
            return
        found = [
            Piece(batch, shard, segment.path, start, length)
            for segment, index in zip(small, indexes, strict=True)
            for batch, shard, start, length in index.pieces
        ]
        into = Segment.of(folder, small[0].first, small[-1].last, format_, answers)
        self._write(into, found, since, until, merged=True)
        for segment in small:
            _remove(segment)

    def _write(
        self,
        into: Segment,
        found: Sequence[Piece],
        since: int,
        until: int,
        merged: bool = False,
    ) -> None:
        """Write a segment; it counts when its index is there, which comes last."""
        temporary = into.path.with_name(f".{into.path.name}.tmp")
        join = _join_lines if into.path.suffix == ".jsonl" else _join_rows
        try:
            pieces = join(found, temporary)
            sync_file(temporary)
            temporary.replace(into.path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(into.path.parent)
        faults.reach("upkeep-rolling", into.last)
        index = Index(self.run, since, until, pieces, merged)
        write_atomic(into.index_path, msgspec.json.encode(index))
        faults.reach("upkeep-rolled", into.last)

    def _cut(self) -> None:
        """Remove segments that are older than is kept, if no reader needs them."""
        if not self.keep_ms:
            return
        needed = min((c.batch for c in self._told.stated().values()), default=None)
        for folder, format_, answers in self._sorts:
            for segment in segments(self.out / folder, format_, answers):
                young = segment.contents().until_ms > self._now() - self.keep_ms
                if young or (needed is not None and segment.last >= needed):
                    break
                _remove(segment)


def check_run(out: Path, run: str) -> None:
    """Refuse a folder that holds the segments of another run: the batches of both would mix."""
    for folder in ("notifications", "rejected"):
        for format_ in ("jsonl", "parquet"):
            for segment in segments(out / folder, format_)[-1:]:
                if segment.contents().run != run:
                    raise NearcastError(
                        f"{out}: holds notifications of another checkpoint; use another folder"
                    )


def _remove(segment: Segment) -> None:
    """The index first: without it a segment does not count."""
    segment.index_path.unlink(missing_ok=True)
    segment.path.unlink(missing_ok=True)


def _join_lines(found: Sequence[Piece], path: Path) -> list[tuple[int, int, int, int]]:
    """Copy bytes; where each piece is then."""
    placed = []
    with path.open("wb") as into:
        for piece in found:
            start = into.tell()
            with piece.path.open("rb") as file:
                file.seek(piece.start)
                if piece.length < 0:
                    shutil.copyfileobj(file, into)
                else:
                    into.write(file.read(piece.length))
            placed.append((piece.batch, piece.shard, start, into.tell() - start))
        into.flush()
        os.fsync(into.fileno())
    return placed


def _join_rows(found: Sequence[Piece], path: Path) -> list[tuple[int, int, int, int]]:
    """Copy row groups; where each piece is then, by row group."""
    tables, placed, groups = [], [], 0
    for piece in found:
        with pq.ParquetFile(piece.path) as file:
            every = range(file.num_row_groups)
            rows = [file.read_row_group(n) for n in every[piece.start :][: _limit(piece)]]
        tables += rows
        placed.append((piece.batch, piece.shard, groups, len(rows)))
        groups += len(rows)
    schema = pa.unify_schemas([t.schema for t in tables], promote_options="default")
    with pq.ParquetWriter(path, schema) as writer:
        for table in tables:
            columns = [
                table[f.name] if f.name in table.column_names else pa.nulls(table.num_rows, f.type)
                for f in schema
            ]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=1 << 30)
    return placed


def _limit(piece: Piece) -> int | None:
    return None if piece.length < 0 else piece.length
