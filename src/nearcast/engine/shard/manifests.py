"""Manifests that files remember: the record of each batch has those of all shards.

Where Spark's own state does not remember them (`Settings.manifests`), the shard step of batch n
reads what the sink wrote after batch n - 1. The record of a batch is its last file, so it says of
all shards at once that the batch is done; a repeated batch begins with the same manifests.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from nearcast.engine.shard.state import Manifest, read_manifest
from nearcast.model.errors import NearcastError

__all__ = ["manifest_before", "manifests_after"]


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
