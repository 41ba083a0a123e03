"""The feed: batches of splits, planned ahead or as they come, as a Spark streaming source.

`feed/N` in the checkpoint lists the splits of batch N. Once written it never changes, so a repeated
batch reads the same bytes. The offset of the stream is the number of batches read. Names of spooled
files are relative to the checkpoint; `engine.feed.places` says where logs are found after a move.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from nearcast.engine.feed import places
from nearcast.engine.formats import FORMAT, refused
from nearcast.model.errors import NearcastError
from nearcast.wire.durable import sync_file, sync_folder, write_atomic
from nearcast.wire.named_kinds import named_kinds
from nearcast.wire.split import Split

SCHEMA = "split binary"
ENDS = "ends"  # file of `Forgotten`


class Planned(msgspec.Struct):
    """What the file of a batch holds."""

    checkpoint_format: int
    checkpoint: str  # where the checkpoint was then
    splits: list[Split]


class Forgotten(msgspec.Struct):
    """Batches whose plans are gone: what they read is done."""

    checkpoint_format: int
    checkpoint: str
    batches: int  # how many, which is the number of the first that is kept
    splits: list[Split]  # the last one of each file


class Feed:
    """The folder of planned batches."""

    def __init__(self, checkpoint: Path, kinds: Iterable[str] = ()) -> None:
        """`kinds`: those that route no objects before their first subscription, if any."""
        self.checkpoint = checkpoint.resolve()
        self.folder = checkpoint / "feed"
        self._kinds = tuple(kinds)
        self._in_use: set[str] | None = None

    def begin_with(self, kinds: Collection[str]) -> None:
        """Have these kinds in use from the next batch on, which must be the first of all."""
        late = set(kinds) & set(self._kinds) - self._used()
        if late and len(self):
            name = min(late)
            raise NearcastError(
                f"{self.checkpoint}: these logs are the first to name {name}, whose results also "
                f"hold posts from before; start a new checkpoint with all logs, or with --kind "
                f"{name} among the kinds"
            )
        self._in_use = self._used() | late

    def _used(self) -> set[str]:
        """The kinds in use by now."""
        if self._in_use is None:
            before = len(self) - 1
            then = self.read(before)[0].kinds if before >= 0 else ()
            self._in_use = set(self._kinds if then is None else then)
        return self._in_use

    def with_kinds(self, splits: list[Split]) -> list[Split]:
        """The splits of the next batch, with the kinds in use by then; once per batch, in order."""
        if not self._kinds:
            return splits
        used = self._used()
        for split in splits:
            used |= named_kinds(split, set(self._kinds) - used)
        kinds = tuple(name for name in self._kinds if name in used)
        return [msgspec.structs.replace(split, kinds=kinds) for split in splits]

    def _path(self, batch: int) -> Path:
        return self.folder / f"{batch:012d}.json"

    def _kept(self) -> list[int]:
        """The batches that have files, in order."""
        try:
            stems = [path.name.removesuffix(".json") for path in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(stem) for stem in stems if stem.isdigit())

    @property
    def first(self) -> int:
        """The first batch whose plan is kept."""
        return min(self._kept(), default=0)

    def __len__(self) -> int:
        """Batches planned: up to the first that is missing, those that are forgotten included."""
        kept = self._kept()
        n = next((n for n, (a, b) in enumerate(itertools.pairwise(kept)) if b != a + 1), -1)
        return (kept[n] if n >= 0 else kept[-1]) + 1 if kept and self._begins(kept[0]) else 0

    def _begins(self, batch: int) -> bool:
        """Whether a plan may begin with this batch: nothing is missing before it."""
        return batch == 0 or batch <= self._forgotten().batches

    def has(self, batch: int) -> bool:
        """Whether `batch` is planned."""
        return self._path(batch).exists()

    def add(self, batch: int, splits: list[Split]) -> None:
        """Plan a batch. What was copied to the spool for it is on the disk first."""
        here = self.checkpoint
        named = [places.written(here, split) for split in splits]
        spooled = _spooled(named)
        for name in spooled:
            sync_file(here / name)
        for folder in {(here / name).parent for name in spooled}:
            sync_folder(folder)
        write_atomic(self._path(batch), msgspec.json.encode(Planned(FORMAT, str(here), named)))

    def add_empty(self, batch: int) -> None:
        """Plan a batch without events, for what waits for the next one."""
        self.add(batch, self.with_kinds([Split("empty", "", "", final=True)]))

    def cut(self, batch: int) -> None:
        """Forget `batch` and all after it: a crash left them while they were being planned."""
        for path in self.folder.glob("*.json"):
            if path.stem.isdigit() and int(path.stem) >= batch:
                path.unlink()

    def forget(self, before: int) -> None:
        """Let go the plans of batches before that one, and what was spooled for them alone.

        Where they ended in each file is written down first, so that a start need not read them.
        """
        kept = self._kept()
        known = self._forgotten()
        old = [n for n in kept if n < min(before, kept[-1])]
        fresh = [n for n in old if n >= known.batches]
        if not old:
            return
        last = {split.name: split for split in known.splits}
        spooled: set[str] = set()
        for n in fresh:
            planned = self._planned(self._path(n))
            spooled |= _spooled(planned.splits)
            then = Path(planned.checkpoint)
            for split in planned.splits:
                split = places.read(self.checkpoint, then, split)
                if split.name:
                    last[split.name] = _end_of(split)
        if fresh:
            splits = [places.written(self.checkpoint, s) for s in _still_there(last.values())]
            whole = Forgotten(FORMAT, str(self.checkpoint), fresh[-1] + 1, splits)
            write_atomic(self.folder / ENDS, msgspec.json.encode(whole))
        if spooled:
            later = [n for n in kept if n > old[-1]]
            for n in later:
                spooled -= _spooled(self._planned(self._path(n)).splits)
            for name in spooled:
                (self.checkpoint / name).unlink(missing_ok=True)
        for n in old:
            self._path(n).unlink(missing_ok=True)

    def ends(self, watched: Collection[Path] = ()) -> list[Split]:
        """The last split of each file, as far as batches are forgotten."""
        known = self._forgotten()
        then = Path(known.checkpoint)
        return [places.read(self.checkpoint, then, split, watched) for split in known.splits]

    def consumed(self) -> dict[str, int]:
        """Bytes of each file that only batches have read whose plans are gone; -1: all of it."""
        plain = {s.name: s.format == "jsonl" and s.path == s.name for s in self.ends()}
        return {s.name: s.start + s.length if plain[s.name] else -1 for s in self.ends()}

    def _forgotten(self) -> Forgotten:
        """What is known of the batches whose plans are gone."""
        path = self.folder / ENDS
        try:
            found = msgspec.json.decode(path.read_bytes(), type=Forgotten)
        except FileNotFoundError:
            return Forgotten(FORMAT, str(self.checkpoint), 0, [])
        except msgspec.ValidationError:
            raise refused(path, "1 or damaged") from None
        if found.checkpoint_format != FORMAT:
            raise refused(path, found.checkpoint_format)
        return found

    def read(self, batch: int, watched: Collection[Path] = ()) -> list[Split]:
        """The splits of a batch, with paths as they are now (`watched`: see `places.found`)."""
        planned = self._planned(self._path(batch))
        then = Path(planned.checkpoint)
        return [places.read(self.checkpoint, then, split, watched) for split in planned.splits]

    def _planned(self, path: Path) -> Planned:
        try:
            planned = msgspec.json.decode(path.read_bytes(), type=Planned)
        except msgspec.ValidationError:
            raise refused(path, "1 or damaged") from None
        if planned.checkpoint_format != FORMAT:
            raise refused(path, planned.checkpoint_format)
        return planned


def _spooled(splits: list[Split]) -> set[str]:
    """The files of the checkpoint that splits name, as they are written."""
    return {n for s in splits for n in (s.path, s.lines) if n and not Path(n).is_absolute()}


def _end_of(split: Split) -> Split:
    """As much of the last split of a file as whoever goes on behind it must know."""
    return msgspec.structs.replace(split, lines="", names=(), kinds=None, final=False)


def _still_there(splits: Iterable[Split]) -> list[Split]:
    """Without files that were removed: such is one that is gone while others of its folder are
    there. A folder that is away as a whole (a disk that is not mounted) comes back."""
    splits = list(splits)
    there = {split.name: bool(split.topic) or Path(split.name).exists() for split in splits}
    known = {Path(name).parent for name, exists in there.items() if exists}
    return [s for s in splits if there[s.name] or Path(s.name).parent not in known]


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
        del limit  # a batch of the plan is the limit
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
        """One row per split."""
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 -- Spark's name
        """The reader on the driver."""
        del schema  # there is one only
        return _Reader(self.options["checkpoint"])


def read_row(row: bytes) -> tuple[int, Split]:
    """(number in the batch, split) of a row of the source."""
    number, data = msgspec.msgpack.decode(row, type=tuple[int, bytes])
    return number, msgspec.msgpack.decode(data, type=Split)
