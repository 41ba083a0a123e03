"""The durable state of a shard: a snapshot and deltas in immutable files, named by Spark's state.

Spark's own state holds one small value a shard (`Manifest`): the token of the batch that wrote it
and the names of the files that make it. A repeated batch writes files under new names and the
value that counts is the one that Spark commits, so no file is ever overwritten. Files rather than
chunks in Spark's state, because a call of its Python state server costs 1-50 ms (measured with 4.3)
and a file is written and read at the speed of the disk.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import msgspec
import numpy as np

from nearcast.engine.formats import FORMAT, read_binary, refused, write_binary
from nearcast.engine.shard.merging import is_merged, merge
from nearcast.index import LocalIndex
from nearcast.model.errors import NearcastError
from nearcast.wire.tables import NEVER, from_bytes, to_bytes

_GRACE = 3  # batches that a file outlives its last use, so that late repeats find it


class Delta(msgspec.Struct):
    """What a batch changed for one kind: apply drops, then controls, then put results in place."""

    drops: list[int]  # slots
    controls: memoryview
    results: memoryview


_RAWS = list[msgspec.Raw]
_ONE = msgspec.msgpack.Decoder(dict[str, Delta])
_DECODER = msgspec.msgpack.Decoder(list[dict[str, Delta]])


class StoredFiles(msgspec.Struct):
    """The files that make the store of a shard."""

    slices: dict[int, str] = {}  # sealed slices by number
    rest: list[str] = []  # what is not sealed: first all of it, then what batches added
    rest_bytes: int = 0  # of the first of these
    added_bytes: int = 0  # of the others
    unused: list[tuple[int, str]] = []  # (batch from which on it was not used, file)
    floor: int = NEVER  # objects up to this time may be gone
    starts: list[int] = []  # the first rank of each of the latest batches


class Manifest(msgspec.Struct):
    """What Spark's state says of a shard."""

    format: int = FORMAT
    token: str = ""
    base: int = -1  # batch of the snapshot
    merged: int = -1  # batch that merged deltas last
    files: list[str] = []
    snapshot_bytes: int = 0
    delta_bytes: int = 0
    now: int = NEVER  # the latest time of any event so far
    ranked: int = 0  # objects of the run so far, on whichever shards: the rank of the next one
    objects: StoredFiles = msgspec.field(default_factory=StoredFiles)
    kept: dict[str, StoredFiles] = {}  # by kind: the objects that it keeps (`Kind.keeps`)
    whole: list[str] = []  # kinds of these that are in use; of the others this is one part
    expiry: dict[str, int] = {}  # by planned kind: until then may a subscription end by time


def read_manifest(data: bytes, checkpoint: Path) -> Manifest:
    """The manifest that Spark's state holds; one of another format is refused."""
    there = msgspec.msgpack.decode(data)
    there = there.get("format", 1) if isinstance(there, dict) else 1
    if there != FORMAT:
        raise refused(checkpoint, there)
    return msgspec.msgpack.decode(data, type=Manifest)


class StateFiles:
    """The files of one shard in the checkpoint."""

    def __init__(self, checkpoint: Path, shard: int) -> None:
        self.folder = checkpoint / "state" / f"{shard:04d}"

    def write(self, batch: int, data: bytes) -> str:
        """A new file; its name."""
        name = f"{batch:012d}-{uuid.uuid4().hex[:12]}.bin"
        write_binary(self.folder / name, "state", data)
        return name

    def rebuild(self, manifest: Manifest, indexes: dict[str, LocalIndex]) -> None:
        """Bring empty indexes to what the manifest says."""
        for name in manifest.files:
            try:
                data = read_binary(self.folder / name, "state")
            except OSError as error:
                raise NearcastError(
                    f"the checkpoint lacks {self.folder / name}, which its state refers to; "
                    "restore the whole checkpoint folder, or start a new one"
                ) from error
            for deltas in _DECODER.decode(data) if is_merged(name) else [_ONE.decode(data)]:
                for kind, delta in deltas.items():
                    apply_delta(indexes[kind], delta)

    def merge(self, manifest: Manifest, batch: int) -> None:
        """Merge deltas where they are many."""

        def write(names: list[str], end: str) -> str:
            parts: list[msgspec.Raw] = []
            for name in names:
                data = read_binary(self.folder / name, "state")
                whole = is_merged(name)
                parts += msgspec.msgpack.decode(data, type=_RAWS) if whole else [msgspec.Raw(data)]
            merged = f"{batch:012d}-{uuid.uuid4().hex[:12]}{end}"
            write_binary(self.folder / merged, "state", msgspec.msgpack.encode(parts))
            return merged

        if merge(manifest.files, write):
            manifest.merged = batch

    def forget(self, manifest: Manifest, batch: int) -> None:
        """Remove files that neither this batch nor a repeat of a recent one can need."""
        settled = max(manifest.base, manifest.merged)
        if batch - settled != _GRACE or not self.folder.is_dir():
            return
        known = set(manifest.files)
        for path in self.folder.iterdir():
            name = path.name.lstrip(".")
            if name not in known and int(name[:12]) < settled:
                path.unlink(missing_ok=True)


def apply_delta(index: LocalIndex, delta: Delta) -> None:
    """Put one batch's changes into an index."""
    index.drop(np.array(delta.drops, np.int64))
    controls = from_bytes(delta.controls, index.controls)
    index.apply(controls, np.zeros(controls.num_rows, np.int32))
    index.restore(from_bytes(delta.results, index.results))
    index.close()


def snapshot(index: LocalIndex) -> Delta:
    """All slots of an index, as the delta that makes them, with these numbers, from nothing."""
    controls, results = index.rows(np.arange(len(index)))
    return Delta([], to_bytes(controls), to_bytes(results))
