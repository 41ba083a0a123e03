"""What a shard does: write its objects of a batch, one file per day, for the driver to commit."""

from __future__ import annotations

import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.model.space import Space
from nearcast.objects.archive.columns import archived
from nearcast.objects.archive.geoparquet import bounds, write_file
from nearcast.objects.archive.manifest import TEMPORARY, File, Part
from nearcast.objects.curve.order import hilbert_order
from nearcast.wire.durable import make_folder
from nearcast.wire.explained import explained
from nearcast.wire.tables import numbers

__all__ = ["DAY_MS", "ArchiveWriter", "folder_of", "put_file"]

DAY_MS = 86_400_000
_MOST_ROWS = 1 << 20  # of a file


def folder_of(day: int) -> str:
    """The folder of a day, counted from 1970 on. Years may have any number of digits."""
    return f"date={np.datetime64(day, 'D')}"


class ArchiveWriter:
    """Writes files under temporary names. Nothing is in the archive until `Archive.commit`."""

    def __init__(self, folder: Path, space: Space) -> None:
        self.folder, self.space = folder, space

    def write(self, batch: int, shard: int, table: pa.RecordBatch) -> list[Part]:
        """Write the objects (STORED) of a shard and batch; what to hand to `Archive.commit`.

        Final names follow from day, batch and shard, so a repeat gives the same files.
        """
        parts: list[Part] = []
        if table.num_rows == 0:
            return parts
        days = numbers(table["time"]) // DAY_MS
        order = np.argsort(days, kind="stable")
        found, starts = np.unique(days[order], return_index=True)
        with explained(self.folder, "the archive"):
            for day, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
                for n, first in enumerate(range(0, len(rows), _MOST_ROWS)):
                    name = f"{folder_of(day)}/b{batch:08d}-s{shard:04d}-{n:03d}.parquet"
                    own = archived(table.take(pa.array(rows[first : first + _MOST_ROWS])))
                    parts.append(put_file(self.folder, self.space, name, batch, own))
        return parts


def put_file(folder: Path, space: Space, name: str, batch: int, table: pa.Table) -> Part:
    """Write objects of ARCHIVED, of one day, along the Hilbert curve."""
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    order = hilbert_order(np.column_stack([x, y]))
    make_folder(folder / TEMPORARY)
    path = folder / TEMPORARY / f"{Path(name).stem}-{uuid.uuid4().hex[:12]}.parquet"
    try:
        write_file(path, table.take(pa.array(order)), space)
    except OSError:
        path.unlink(missing_ok=True)  # half a file would take the room that is lacking
        raise
    file = File(
        name,
        table.num_rows,
        path.stat().st_size,
        _limits(table["time"].to_numpy()),
        _limits(table["rank"].to_numpy()),
        bounds(x, y),
        batch,
    )
    return Part(file, str(path))


def _limits(values: NDArray[np.int64]) -> tuple[int, int]:
    return int(values.min()), int(values.max())
