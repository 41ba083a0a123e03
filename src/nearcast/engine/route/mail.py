"""Objects by reference: on one machine a table need not travel through Spark, its name is enough.

Where driver and executors share a machine (`local` masters), the route step writes the objects of
a split once into the folder of the arenas and every shard maps them; on a cluster they go inside
the envelopes. A failed task may leave a file behind; the sink clears those of finished batches.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa

from nearcast.wire.tables import join


class Mail:
    """The tables of a run that wait to be read, in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def post(self, batch: int, table: pa.RecordBatch) -> str:
        """Write a table; the name by which shards find it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{batch:012d}-{uuid.uuid4().hex[:12]}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_batch(table)
        return str(path)

    def clear(self, batch: int) -> None:
        """Remove what batches up to `batch` left."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if int(path.name[:12]) <= batch:
                    path.unlink(missing_ok=True)


def read_mail(path: str, schema: pa.Schema) -> pa.RecordBatch:
    """A table that `Mail.post` wrote, mapped."""
    with pa.memory_map(path) as file:
        return join(list(pa.ipc.open_stream(file)), schema)
