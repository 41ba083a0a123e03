"""The archive: every object of a run once, as GeoParquet that any tool reads.

    DIR/_manifest.json                           the files that count, and the last batch in them
    DIR/date=2026-11-18/b00000012-s0003-000.parquet  objects of one day, batch and shard
    DIR/date=2026-11-18/c00000004.parquet       several such files, merged
    DIR/_tmp/                                   what is being written

A file holds the objects of one day (UTC). Its rows follow a Hilbert curve, in row groups of
`geoparquet.GROUP_ROWS`: a row group is a compact place, and the least and largest x, y and time
that Parquet keeps of it show readers whether to open it. Files by cell instead of row groups by
cell would be many tiny files where few objects are published, and a grid would have to be chosen
before the data is known. A Hilbert curve rather than a Z-curve because it has no jumps, so that
boxes of row groups are smaller.

Who does what:

- each shard calls `ArchiveWriter.write` and reports the `Part`s that it returns;
- after each batch the driver calls `Archive.commit` with all parts. Until then no object of the
  batch is in the archive, after it all are; repeats of a committed batch change nothing;
- `Archive.merge` makes large files out of small ones, a little at a time;
- `read` gives objects of a period and of places as STORED, at any time, from any process;
- `file_paths` lists the files that count, for other tools. A tool that takes all files of the
  folders instead sees a part of a batch, or objects twice, while files get their names.

A kill at any moment loses nothing: files count only when the manifest, which is replaced in one
step, names them. `Archive` removes at its start what no manifest names.
"""

from __future__ import annotations

from nearcast.objects.archive.committing import Archive
from nearcast.objects.archive.manifest import Part, file_paths
from nearcast.objects.archive.reading import read, scan
from nearcast.objects.archive.writing import ArchiveWriter

__all__ = ["Archive", "ArchiveWriter", "Part", "file_paths", "read", "scan"]
