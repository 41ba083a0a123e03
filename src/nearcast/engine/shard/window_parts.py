"""Windows of a live run before anybody subscribes to them, held in parts.

A kind of `Kind.from_start` counts objects that came before its first subscription. A live run
cannot look ahead for one, so it keeps the window from its first object on; but until that
subscription comes, each object is held on one shard only, and if a router sends it anywhere, there.
At the end of each batch the sink names the files of all parts in the control file of the next one
(`Control.parts`). In the batch of the first subscription each shard takes in the parts of all, and
from then on objects go where the router of the kind sends them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.moves.control import Controls
from nearcast.engine.options.settings import Settings
from nearcast.engine.shard.events import Events, Ordered
from nearcast.engine.shard.objects import Past, homes, read_objects, stored_rows
from nearcast.engine.shard.state import Manifest, StoredFiles
from nearcast.index import LocalIndex
from nearcast.objects.base import STORED
from nearcast.wire.tables import join, numbers

__all__ = ["files_of", "holders", "keep", "taken_in"]


def holders(
    pos: NDArray[np.int64], wanted: NDArray[np.bool_] | None, shards: int
) -> NDArray[np.int64]:
    """The shard that holds each object: one that sees it, if any does.

    `wanted[shard]` are the objects that a shard sees; None: every shard sees all.
    """
    home = homes(pos, shards)
    if wanted is None or not len(pos):
        return home
    at_home = wanted[home, np.arange(len(pos))]
    return np.where(at_home | ~wanted.any(axis=0), home, wanted.argmax(axis=0))


def keep(
    kept: Mapping[str, Past],
    indexes: Mapping[str, LocalIndex],
    events: Events,
    views: Mapping[str, Ordered],
    settings: Settings,
    checkpoint: Path,
    batch: int,
    manifest: Manifest,
) -> None:
    """Store the objects of a batch for the kinds that keep them (`Kind.keeps`)."""
    order = events.objects.order
    for name, store in kept.items():
        if name in manifest.whole or name in events.in_use:
            if name not in manifest.whole and settings.kinds[name].from_start:
                parts = Controls(checkpoint, settings).at(batch)[0].parts.get(name, [])
                if parts:
                    store.fill(taken_in(checkpoint, parts))
                    indexes[name].past_filled()
            store.add(stored_rows(events, views[name].objects.order))
        elif events.held is not None:
            store.add(stored_rows(events, order[events.held[order]]))


def taken_in(checkpoint: Path, names: list[str]) -> pa.RecordBatch:
    """STORED of the parts of all shards, in object order."""
    table = join([read_objects(checkpoint / name) for name in names], STORED)
    _, once = np.unique(numbers(table["rank"]), return_index=True)
    return table.take(pa.array(once))


def files_of(store: Past, files: StoredFiles, checkpoint: Path) -> list[str]:
    """The files of a part, relative to the checkpoint."""
    folder = store.folder.relative_to(checkpoint)
    return [str(folder / name) for name in (*files.slices.values(), *files.rest)]
