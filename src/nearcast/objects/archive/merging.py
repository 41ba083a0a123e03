"""Which small files to merge, and their objects as one table.

A file that is large enough (`is_full`) is never written again. The others of a day are merged when
they are many, make a full file together, or when the day has been quiet. A merge takes the smallest
files first, and takes a file only if it is at most `_RATIO` times as large as all smaller ones
together. So what the merge costs is at most `_RATIO` + 1 times the size of those smaller ones, each
of which comes to rest in a file at least twice as large: an object is written again a number of
times that grows with the logarithm of TARGET_ROWS, also where late objects trickle into old days.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.objects.archive.columns import ARCHIVED
from nearcast.objects.archive.manifest import File

__all__ = ["TARGET_BYTES", "TARGET_ROWS", "choose", "is_full", "joined"]

TARGET_ROWS = 1_000_000
TARGET_BYTES = 128 << 20
_MANY = 16  # files
_QUIET = 64  # batches without an object of the day
_RATIO = 4


def _weight(file: File) -> float:
    """How large a file is, as a part of a full one."""
    return max(file.rows / TARGET_ROWS, file.bytes / TARGET_BYTES)


def is_full(file: File) -> bool:
    """Whether a file is large enough to stay as it is."""
    return _weight(file) >= 0.5


def choose(files: Sequence[File], batch: int) -> list[File]:
    """Files of one day to merge now; none if no day is due. `batch`: the last one."""
    days: defaultdict[str, list[File]] = defaultdict(list)
    for file in files:
        if not is_full(file):
            days[file.date].append(file)
    for small in days.values():
        quiet = max(file.batch for file in small) <= batch - _QUIET
        if quiet or len(small) >= _MANY or sum(map(_weight, small)) >= 1:
            chosen = _smallest(small)
            # The largest of many may be too large for the rest: they wait for more of them.
            if len(chosen) >= (2 if quiet else _MANY) or sum(map(_weight, chosen)) >= 1:
                return chosen
    return []


def _smallest(files: Sequence[File]) -> list[File]:
    """As many of the smallest files as pay off (see above); none or two at least."""
    ordered = sorted(files, key=lambda file: (_weight(file), file.name))
    count, total = 0, 0.0
    for n, file in enumerate(ordered):
        if n and _weight(file) <= _RATIO * total:
            count = n + 1
        total += _weight(file)
        if total >= 1:
            break
    return ordered[:count]


def joined(folder: Path, files: Sequence[File]) -> pa.Table:
    """The objects of several files as ARCHIVED."""
    names = ARCHIVED.names
    tables = [
        pq.ParquetFile(folder / file.name).read(columns=names).select(names).cast(ARCHIVED)
        for file in files
    ]
    return pa.concat_tables(tables)
