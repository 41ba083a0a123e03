"""Objects of a period and of places, out of an archive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.objects.archive.columns import ARCHIVED, stored
from nearcast.objects.archive.manifest import Box, File, existing
from nearcast.objects.base import STORED
from nearcast.wire.tables import FOREVER, join, numbers

__all__ = ["read", "scan"]

_TRIES = 5
_LIMITS = ("time", "rank", "x", "y")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is asked for: after < time <= until, rank < before_rank, inside one of the boxes."""

    after: int
    until: int
    before_rank: int
    boxes: NDArray[np.float64] | None  # [n, 4]

    def may_hold(self, times: tuple[int, int], first_rank: int, box: Box) -> bool:
        """Whether something with these limits may hold such objects."""
        if times[1] <= self.after or times[0] > self.until or first_rank >= self.before_rank:
            return False
        if self.boxes is None:
            return True
        low, high = self.boxes[:, :2], self.boxes[:, 2:]
        return bool(np.any(np.all((low <= box[2:]) & (high >= box[:2]), axis=1)))

    def rows(self, table: pa.RecordBatch) -> NDArray[np.int64]:
        """The rows of such objects."""
        time, rank = numbers(table["time"]), numbers(table["rank"])
        good = (time > self.after) & (time <= self.until) & (rank < self.before_rank)
        if self.boxes is not None:
            x, y = numbers(table["x"]), numbers(table["y"])
            inside = np.zeros(len(good), bool)
            for minx, miny, maxx, maxy in self.boxes:
                inside |= (x >= minx) & (x <= maxx) & (y >= miny) & (y <= maxy)
            good &= inside
        return np.flatnonzero(good)


def read(
    folder: Path,
    after: int,
    until: int,
    boxes: ArrayLike | None = None,
    before_rank: int = FOREVER,
) -> pa.RecordBatch:
    """Objects with after < time <= until and rank < before_rank as STORED, in object order.

    `boxes`, rows of (minx, miny, maxx, maxy): only objects in one of them, edges included. In
    geographic space a box may cross the antimeridian (minx > maxx), and -180 and 180 are one.
    """
    for _ in range(_TRIES):
        try:
            found = join(list(_scan(folder, after, until, boxes, before_rank)), STORED)
        except FileNotFoundError:  # merged since the manifest was read: the next one has the rest
            continue
        return found.take(pa.array(np.argsort(numbers(found["rank"]), kind="stable")))
    raise _changed(folder)


def scan(
    folder: Path,
    after: int,
    until: int,
    boxes: ArrayLike | None = None,
    before_rank: int = FOREVER,
) -> Iterator[pa.RecordBatch]:
    """As `read`, a row group at a time and in no order, for more objects than memory holds."""
    try:
        yield from _scan(folder, after, until, boxes, before_rank)
    except FileNotFoundError as error:
        raise _changed(folder) from error


def _changed(folder: Path) -> NearcastError:
    return NearcastError(f"{folder}: its files changed while they were read; read it again")


def _scan(
    folder: Path, after: int, until: int, boxes: ArrayLike | None, before_rank: int
) -> Iterator[pa.RecordBatch]:
    manifest = existing(folder)
    wanted = _Wanted(after, until, before_rank, _plain_boxes(boxes, manifest.space))
    for file in manifest.files:
        if wanted.may_hold(file.times, file.ranks[0], file.box):
            yield from _rows_of(folder, file, wanted)


def _rows_of(folder: Path, file: File, wanted: _Wanted) -> Iterator[pa.RecordBatch]:
    path = folder / file.name
    try:
        with pq.ParquetFile(path) as opened:
            groups = _groups(opened.metadata, wanted)
            for group in groups:
                for table in opened.iter_batches(row_groups=[group], columns=ARCHIVED.names):
                    rows = wanted.rows(table)
                    if len(rows):
                        yield stored(table.take(pa.array(rows)))
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowInvalid) as error:
        raise NearcastError(
            f"cannot read {path}: {str(error).splitlines()[0]}; restore this file"
        ) from error


def _groups(metadata: pq.FileMetaData, wanted: _Wanted) -> list[int]:
    """The row groups that may hold wanted objects."""
    names = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    at = [names.index(name) for name in _LIMITS]
    kept = []
    for n in range(metadata.num_row_groups):
        group = metadata.row_group(n)
        time, rank, x, y = (group.column(i).statistics for i in at)
        box = x.min, y.min, x.max, y.max
        if wanted.may_hold((time.min, time.max), rank.min, box):
            kept.append(n)
    return kept


def _plain_boxes(boxes: ArrayLike | None, space: Space) -> NDArray[np.float64] | None:
    """Boxes none of which crosses the antimeridian; one at its edge has the other side as well."""
    if boxes is None:
        return None
    plain = np.array(boxes, np.float64).reshape(-1, 4)
    if space is Space.PLANAR:
        return plain
    across = plain[:, 0] > plain[:, 2]
    west, east = plain[across].copy(), plain[across].copy()
    east[:, 2], west[:, 0] = 180.0, -180.0
    plain = np.concatenate([plain[~across], east, west])
    edge = np.abs(plain[:, [0, 2]]).max(axis=1) >= 180.0
    other = plain[edge][:, None, :].repeat(2, axis=1)
    other[:, 0, [0, 2]], other[:, 1, [0, 2]] = -180.0, 180.0
    return np.concatenate([plain, other.reshape(-1, 4)])
