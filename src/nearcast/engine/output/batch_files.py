"""Idempotent file sinks: shards write under temporary names, the driver renames by batch."""

from __future__ import annotations

import itertools
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.wire.durable import make_folder, sync_folder
from nearcast.wire.explained import explained
from nearcast.wire.kind import Kinds
from nearcast.wire.notifications import Reported, render, tabulate, write_rows

TEMPORARY = "_tmp"
Longs = NDArray[np.int64]
# Changes; the place of each among the objects of the batch (None: before all of them); and when
# each is reported (None: at the time that it carries).
Placed = tuple[Reported, Longs | None, Longs | None]


def kinds_of(rejects: pa.RecordBatch) -> dict[str, int]:
    """How many were refused for which field; `line`: it could not be read as an event."""
    found = pc.extract_regex(rejects["reason"], r"^(?P<field>[a-z_]+(?:\.[a-z_]+)*)[^ ]*:")
    counts = pc.value_counts(pc.struct_field(found, "field").fill_null("line"))
    return {row["values"]: row["counts"] for row in counts.to_pylist()}


class BatchFiles:
    """The files of one shard and batch. Nothing is visible until `commit` renames it."""

    def __init__(self, out: Path, format_: str, batch: int, shard: int, kinds: Kinds) -> None:
        self.kinds = kinds
        self.out, self.format = out, format_
        self.name = f"b{batch:08d}-s{shard:04d}"

    def _temporary(self) -> Path:
        folder = self.out / TEMPORARY
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{self.name}-{uuid.uuid4().hex[:12]}"

    def notifications(
        self,
        parts: Iterable[Reported],
        ranks: dict[str, NDArray[np.int64]] | None = None,
        firsts: Sequence[Placed] = (),
    ) -> dict[str, str]:
        """Write notifications as they come; {final name: temporary path}, nothing if none do.

        `firsts` come before all others. With `ranks`, by kind the place of each of its objects in
        the batch, lines of all kinds are written in the order of the objects.
        """
        others: Iterator[Placed] = (
            (p, None if ranks is None else ranks[p.kind.name][p.changes.order], None) for p in parts
        )
        some = (placed for placed in itertools.chain(firsts, others) if len(placed[0].changes))
        for first in some:
            with explained(self.out):
                path = self._temporary()
                self._write(itertools.chain([first], some), path, ranks is not None)
            return {f"notifications/{self.name}.{self.format}": str(path)}
        return {}

    def _write(self, parts: Iterable[Placed], path: Path, by_object: bool) -> None:
        if self.format == "parquet":
            write_rows(tabulate((part for part, *_ in parts), self.kinds), path, self.kinds)
            return
        with path.open("wb") as file:
            if by_object:
                file.writelines(_by_object(parts))
            else:
                for part, *_ in parts:
                    file.write(np.ascontiguousarray(render(part)).data)
            _sync(file)

    def rejects(self, table: pa.RecordBatch) -> dict[str, str]:
        """Write rejects as JSON lines: file, line, reason, and the beginning of the event."""
        if table.num_rows == 0:
            return {}
        rows = [
            {k: r[k] for k in ("file", "line", "reason", "event")}
            for r in sorted(table.to_pylist(), key=lambda r: r["pos"])
        ]
        with explained(self.out):
            path = self._temporary()
            with path.open("wb") as file:
                file.write(msgspec.json.Encoder().encode_lines(rows))
                _sync(file)
        return {f"rejected/{self.name}.jsonl": str(path)}


def _by_object(parts: Iterable[Placed]) -> list[bytes]:
    """Lines in the order of the objects that caused them, those of one stream as they are.

    What comes before the same object, moments and first results, is in the order of time.
    """
    lines: list[bytes] = []
    places, times, streams = [], [], []
    for number, (part, place, when) in enumerate(parts):
        changes = part.changes
        lines += render(part).tobytes().splitlines(keepends=True)
        places.append(np.full(len(changes), -1) if place is None else place)
        times.append(changes.time if when is None else when)
        # Pieces of what an index found are one stream; each search of the past is one of its own.
        name = part.kind.name if when is None else str(number)
        streams.append(np.full(len(changes), name, dtype=object))
    place, time = np.concatenate(places), np.concatenate(times)
    when = _never_back(place, time, np.concatenate(streams))
    return [lines[i] for i in np.lexsort((when, place)).tolist()]


def _never_back(place: Longs, time: Longs, stream: NDArray[np.object_]) -> Longs:
    """Ranks of times which within a stream and a place never decrease: a late object has its own
    time, and yet comes behind the moments that had passed.
    """
    times, rank = np.unique(time, return_inverse=True)
    _, number = np.unique(stream.astype(str), return_inverse=True)
    rows = np.lexsort((place, number))  # stable: as they came
    new = np.diff(place[rows], prepend=place[rows[:1]]) != 0
    new |= np.diff(number[rows], prepend=number[rows[:1]]) != 0
    group = np.cumsum(new)
    found = np.empty(len(rows), np.int64)
    found[rows] = np.maximum.accumulate(group * len(times) + rank[rows]) - group * len(times)
    return found


def _sync(file: BinaryIO) -> None:
    """Have all bytes of a file on the disk, also those that Python still holds."""
    file.flush()
    os.fsync(file.fileno())


def commit(out: Path, files: dict[str, str]) -> None:
    """Give files their final names; again is the same as once.

    The files are on the disk already (`BatchFiles`); when this returns, so are their names.
    """
    with explained(out):
        folders = {(out / final).parent for final in files}
        for folder in folders:
            make_folder(folder)
        for final, temporary in files.items():
            Path(temporary).replace(out / final)
        for folder in folders:
            sync_folder(folder)


def forget_temporary(out: Path) -> None:
    """Remove what failed attempts left; call it while no batch runs."""
    # Workers of a driver that was killed may still be at it for a moment.
    shutil.rmtree(out / TEMPORARY, ignore_errors=True)


def forget_temporary_before(out: Path, batch: int) -> None:
    """Remove what failed attempts at batches before that one left."""
    folder = out / TEMPORARY
    for path in folder.iterdir() if folder.is_dir() else ():
        number = path.name[1:].partition("-")[0]
        if number.isdigit() and int(number) < batch:
            path.unlink(missing_ok=True)
