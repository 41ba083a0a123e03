"""The feed: batches of splits, planned ahead or as they come, as a Spark streaming source.

`feed/N` in the checkpoint lists the splits of batch N. Once written it never changes, so a repeated
batch reads the same bytes. The offset of the stream is the number of batches read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from nearcast.engine.files import write_atomic
from nearcast.wire.split import Split

SCHEMA = "split binary"


class Feed:
    """The folder of planned batches."""

    def __init__(self, checkpoint: Path) -> None:
        self.folder = checkpoint / "feed"

    def _path(self, batch: int) -> Path:
        return self.folder / f"{batch:012d}.json"

    def __len__(self) -> int:
        """Batches planned: up to the first that is missing."""
        n = 0
        while self.has(n):
            n += 1
        return n

    def has(self, batch: int) -> bool:
        """Whether `batch` is planned."""
        return self._path(batch).exists()

    def add(self, batch: int, splits: list[Split]) -> None:
        """Plan a batch."""
        write_atomic(self._path(batch), msgspec.json.encode(splits))

    def cut(self, batch: int) -> None:
        """Forget `batch` and all after it: a crash left them while they were being planned."""
        for path in self.folder.glob("*.json"):
            if path.stem.isdigit() and int(path.stem) >= batch:
                path.unlink()

    def read(self, batch: int) -> list[Split]:
        """The splits of a batch."""
        return msgspec.json.decode(self._path(batch).read_bytes(), type=list[Split])


class _Piece(InputPartition):
    def __init__(self, number: int, split: bytes) -> None:
        super().__init__(None)
        self.number = number
        self.split = split


class _Reader(DataSourceStreamReader):
    def __init__(self, folder: str) -> None:
        self.feed = Feed(Path(folder))

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        return {"batch": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """One planned batch at a time: a micro-batch is a batch of the plan."""
        batch = int(start["batch"])
        return {"batch": batch + 1} if self.feed.has(batch) else start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        pieces: list[InputPartition] = []
        for batch in range(int(start["batch"]), int(end["batch"])):
            for split in self.feed.read(batch):
                pieces.append(_Piece(len(pieces), msgspec.msgpack.encode(split)))
        return pieces

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Piece)
        row = msgspec.msgpack.encode((partition.number, partition.split))
        yield pa.RecordBatch.from_pydict({"split": pa.array([row], pa.binary())})

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to give back: the feed is kept."""


class FeedSource(DataSource):
    """`spark.readStream.format("nearcast-feed").option("checkpoint", folder)`."""

    @classmethod
    def name(cls) -> str:
        """As Spark knows it."""
        return "nearcast-feed"

    def schema(self) -> str:
        """One row a split."""
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 -- Spark's name
        """The reader on the driver."""
        return _Reader(self.options["checkpoint"])


def read_row(row: bytes) -> tuple[int, Split]:
    """(number in the batch, split) of a row of the source."""
    number, data = msgspec.msgpack.decode(row, type=tuple[int, bytes])
    return number, msgspec.msgpack.decode(data, type=Split)
