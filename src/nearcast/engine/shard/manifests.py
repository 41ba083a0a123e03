"""Manifests that files remember: the record of each batch has those of all shards.

Where Spark's own state does not remember them (`Settings.manifests`), the shard step of batch n
reads what the sink wrote after batch n - 1. The record of a batch is its last file, so it says of
all shards at once that the batch is done; a repeated batch begins with the same manifests.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from nearcast.engine.shard.state import Manifest, read_manifest
from nearcast.model.errors import NearcastError
from nearcast.wire.held import Held
from nearcast.wire.tables import NEVER

__all__ = ["held_after", "manifest_before", "manifests_after"]


class _Remembered(msgspec.Struct):
    """As much of a record as is needed here; the rest is skipped."""

    manifests: dict[str, bytes] = {}


def manifests_after(checkpoint: Path, batch: int) -> dict[int, bytes]:
    """By shard, as they were after a batch; none before the first."""
    if batch < 0:
        return {}
    path = checkpoint / "reports" / f"{batch:012d}.json"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Remembered)
    except OSError as error:
        raise NearcastError(
            f"the checkpoint lacks {path}, by which it goes on; restore the whole checkpoint "
            "folder, or start a new one"
        ) from error
    return {int(shard): data for shard, data in found.manifests.items()}


def manifest_before(checkpoint: Path, batch: int, shard: int) -> Manifest:
    """The manifest of a shard for a batch."""
    data = manifests_after(checkpoint, batch - 1).get(shard)
    return Manifest() if data is None else read_manifest(data, checkpoint)


def held_after(run: str, batch: int, manifests: Mapping[int, bytes]) -> Held:
    """The objects that all shards retain after a batch."""
    held = Held(run, batch, 0, NEVER, NEVER, [])
    for shard, data in sorted(manifests.items()):
        manifest = msgspec.msgpack.decode(data, type=Manifest)
        stored = manifest.objects
        held.ranked = max(held.ranked, manifest.ranked)
        held.now = max(held.now, manifest.now)
        held.floor = max(held.floor, stored.floor)
        names = [*stored.slices.values(), *stored.rest]
        held.files += [f"objects/{shard:04d}/{name}" for name in names]
    return held
