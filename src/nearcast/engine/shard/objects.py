"""The objects that stay on one shard: its stores, the files that they are rebuilt from, and asks.

For asks, each object is stored on one shard: where a router sends it that sends each object to one
shard (`Router.stores`), else it is dealt by its place in the log. A kind whose indexes
look at the past (`Kind.keeps`) has a store of its own on each shard, of all objects that its router
sends there. A batch writes the objects that it added to a file; a sealed slice is written once, and
then the rest anew. Spark's state names the files (`Manifest.objects`, `Manifest.kept`), as it does
for indexes.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.formats import read_binary, write_binary
from nearcast.engine.options.settings import Settings
from nearcast.engine.shard.events import Events, Ordered
from nearcast.engine.shard.merging import merge
from nearcast.engine.shard.state import StoredFiles
from nearcast.index.arena import Memory, Storage
from nearcast.model.errors import NearcastError
from nearcast.objects import STORES
from nearcast.objects.archive import read
from nearcast.objects.base import NOT_SEALED, STORED, ObjectStore, Slicing
from nearcast.objects.tables import read_table
from nearcast.routing import Router
from nearcast.wire.tables import FOREVER, REJECTS, empty, from_bytes, join, numbers, to_bytes

__all__ = [
    "Past", "archived_objects", "homes", "own_objects", "read_objects", "refused", "rejects",
    "stored_rows", "stored_table", "stores_by", "why_refused",
]  # fmt: skip

SLICING = Slicing()
_GRACE = 3  # batches that a file outlives its last use, so that late repeats find it
_SWEPT = 10  # batches after which what a failed attempt left is removed


def homes(pos: NDArray[np.int64], shards: int) -> NDArray[np.int64]:
    """The shard that stores each object, by its place in the log: about as many on each."""
    mixed = pos.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(33)) % np.uint64(shards)).astype(np.int64)


def stores_by(routers: Mapping[str, Router]) -> str | None:
    """The kind whose router says where objects are stored; None: their places in the log do.

    A router has a table from its plan on, and keeps it: so the route step and all shards agree.
    """
    return next((kind for kind, r in routers.items() if r.stores and r.table), None)


def own_objects(
    events: Events,
    shard: int,
    settings: Settings,
    routers: Mapping[str, Router],
    views: Mapping[str, Ordered],
) -> pa.RecordBatch:
    """STORED of the objects of a batch that this shard stores, in object order."""
    if not settings.stores:
        return empty(STORED)
    kind = stores_by(routers)
    if kind is not None:
        return stored_rows(events, views[kind].objects.order)
    mine = homes(events.pos, settings.shards) == shard
    return stored_rows(events, events.objects.order[mine[events.objects.order]])


def stored_rows(events: Events, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """STORED of some objects of a batch, in this order."""
    if not len(rows):
        return empty(STORED)
    assert events.carried is not None
    assert events.carried.ranks is not None
    table = events.table if len(rows) == events.table.num_rows else None
    if table is None or not np.array_equal(rows, np.arange(len(rows))):
        table = events.table.take(pa.array(rows))
    return stored_table(table, events.carried.ranks[rows])


def stored_table(table: pa.RecordBatch, ranks: NDArray[np.int64]) -> pa.RecordBatch:
    """STORED of objects with their counts; fields that they do not carry are empty."""
    columns = []
    for field in STORED:
        if field.name == "rank":
            columns.append(pa.array(ranks))
        elif field.name in table.schema.names:
            columns.append(table[field.name])
        else:
            columns.append(pa.repeat(pa.scalar(b"", field.type), table.num_rows))
    return pa.RecordBatch.from_arrays(columns, schema=STORED)


def archived_objects(
    settings: Settings,
    shard: int,
    period: tuple[int, int],
    places: NDArray[np.float64] | None,
    ranked: int,
    own: pa.RecordBatch,
) -> ObjectStore:
    """A store of this shard's part of all that is looked at, out of the archive.

    The objects of a `period` (after, until) count.

    Objects of earlier batches (their ranks are below `ranked`) are dealt to shards by rank; to
    these come the shard's `own` of this batch, which the archive does not have yet.
    """
    found = read(Path(settings.archive), *period, places, ranked)
    mine = np.flatnonzero(numbers(found["rank"]) % settings.shards == shard)
    store = STORES[settings.store](settings.space, Memory(), SLICING, settings.weights.hashed)
    for table in (found.take(pa.array(mine)), own):
        if table.num_rows:
            store.add(*read_table(table))
    return store


class Past:
    """A store of one shard, for one batch, and its files in a folder."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        storage: Storage,
        slicing: Slicing | None = None,
    ) -> None:
        """`slicing`: None for the usual one."""
        self.settings, self.folder = settings, folder
        idf = settings.weights.hashed
        self.store = STORES[settings.store](settings.space, storage, slicing or SLICING, idf)
        self._added: pa.RecordBatch | None = None
        self._anew = False  # nothing that is written holds any more

    def rebuild(self, files: StoredFiles) -> None:
        """Fill an empty store with what the files hold."""
        for number, name in sorted(files.slices.items()):
            self.store.restore(number, self._read(name))
        for n, name in enumerate(files.rest):
            table = self._read(name)
            if n == 0:
                self.store.restore(NOT_SEALED, table)
            else:
                self.store.add(*read_table(table))

    def fill(self, table: pa.RecordBatch) -> None:
        """Hold these objects in place of all that are there."""
        self.store.expire(FOREVER)
        self._anew = True
        if table.num_rows:
            self.store.add(*read_table(table))

    def add(self, own: pa.RecordBatch) -> None:
        """Store the objects of a batch whose home this shard is (`own_objects`)."""
        if own.num_rows:
            self._added = own
            self.store.add(*read_table(own))

    def save(
        self, batch: int, files: StoredFiles, now: int, floor: int, rank: int = FOREVER
    ) -> StoredFiles:
        """Let go what is too old, seal what is over, write what changed; the files from now on.

        Too old are objects up to the time `floor`, if their ranks are below `rank`.
        """
        floor = max(files.floor, floor)
        self.store.expire(floor, rank)
        self.store.seal(now - self.settings.grace_ms)
        sealed = {s.number for s in self.store.slices() if s.sealed}
        known = set() if self._anew else sealed
        kept = {n: name for n, name in files.slices.items() if n in known}
        unused = [name for n, name in files.slices.items() if n not in known]
        following = StoredFiles(
            kept,
            list(files.rest),
            files.rest_bytes,
            files.added_bytes,
            list(files.unused),
            floor,
            list(files.starts),
        )
        fresh = sealed - kept.keys()
        for number in sorted(fresh):
            following.slices[number] = self._write(batch, self.store.snapshot(number))[0]
        if self._added is not None:
            name, size = self._write(batch, self._added)
            following.rest.append(name)
            following.added_bytes += size
        grown = following.added_bytes > max(following.rest_bytes, 1 << 20)
        # What is sealed is no longer in the rest.
        if fresh or self._anew or (grown and len(following.rest) > 1):
            unused += following.rest
            name, size = self._write(batch, self.store.snapshot(NOT_SEALED))
            following.rest, following.rest_bytes, following.added_bytes = [name], size, 0
        elif replaced := merge(following.rest, partial(self._merge, batch)):
            unused += replaced
            self._sweep(following, batch, unused)
        following.unused += [(batch, name) for name in unused]
        self._forget(following, batch)
        return following

    def _forget(self, files: StoredFiles, batch: int) -> None:
        """Remove files that neither this batch nor a repeat of a recent one can need."""
        for since, name in files.unused:
            if since <= batch - _GRACE:
                (self.folder / name).unlink(missing_ok=True)
        files.unused = [entry for entry in files.unused if entry[0] > batch - _GRACE]

    def _merge(self, batch: int, names: list[str], end: str) -> str:
        """Write one file of what several hold; its name."""
        return self._write(batch, join([self._read(name) for name in names], STORED), end)[0]

    def _sweep(self, files: StoredFiles, batch: int, unused: list[str]) -> None:
        """Remove what attempts left that failed."""
        waiting = (name for _, name in files.unused)
        known = {*files.slices.values(), *files.rest, *unused, *waiting}
        for path in self.folder.iterdir():
            name = path.name.lstrip(".")
            if name not in known and int(name[:12]) < batch - _SWEPT:
                path.unlink(missing_ok=True)

    def _write(self, batch: int, table: pa.RecordBatch, end: str = ".bin") -> tuple[str, int]:
        name, data = f"{batch:012d}-{uuid.uuid4().hex[:12]}{end}", to_bytes(table)
        write_binary(self.folder / name, "objects", data)
        return name, len(data)

    def _read(self, name: str) -> pa.RecordBatch:
        return read_objects(self.folder / name)


def read_objects(path: Path) -> pa.RecordBatch:
    """STORED of a file that a store wrote."""
    try:
        return from_bytes(read_binary(path, "objects"), STORED)
    except OSError as error:
        raise NearcastError(
            f"the checkpoint lacks {path}, which its state refers to; "
            "restore the whole checkpoint folder, or start a new one"
        ) from error


def refused(
    after: NDArray[np.int64], clock: NDArray[np.int64], retain_ms: int, floor: int
) -> NDArray[np.bool_]:
    """What reaches back, to `after`, further than objects are retained; `clock`: the time then."""
    if retain_ms == 0:
        return np.ones(len(after), bool)
    return np.asarray(after < np.maximum(clock - retain_ms, floor))


def rejects(
    table: pa.RecordBatch,
    bad: NDArray[np.bool_],
    clock: NDArray[np.int64],
    retain_ms: int,
    floor: int,
) -> list[dict[str, Any]]:
    """Rows of REJECTS for the `bad` ones of asks, or of subscribes that look back."""
    found = []
    for row in np.flatnonzero(bad).tolist():
        oldest = max(int(clock[row]) - retain_ms, floor) if retain_ms else int(clock[row])
        values = table.slice(row, 1).to_pylist()[0] | {"reason": why_refused(retain_ms, oldest)}
        found.append({f.name: values[f.name] for f in REJECTS})
    return found


def why_refused(retain_ms: int, oldest: int) -> str:
    """The reason for the reject of what reaches back too far."""
    if retain_ms == 0:
        return (
            "last: this run retains no objects; start it with --retain DURATION or all, or with "
            "--archive DIR"
        )
    if retain_ms >= FOREVER:
        return f"last: this run retains objects only from {oldest + 1} on (epoch milliseconds)"
    return (
        f"last: this run goes back {retain_ms} ms, here to {oldest} (epoch milliseconds); "
        "start it with a longer --retain, or with --archive DIR"
    )
