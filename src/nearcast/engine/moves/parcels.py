"""Moving subscriptions between shards: what leaves, the files it travels in, and taking it in.

At the end of a batch a shard writes down what shall leave. It stays until the next batch begins,
which drops it there and takes it in elsewhere: a batch that is repeated finds
everything in place.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.formats import body, write_binary
from nearcast.engine.moves.control import Export
from nearcast.engine.route.envelope import Directions
from nearcast.index import LocalIndex
from nearcast.kernels.slots import PARITY
from nearcast.routing.orders import Leaving
from nearcast.wire.tables import from_bytes, join, numbers, to_bytes, with_flags

Slots = NDArray[np.int64]
_WORTH = 0.5  # an index with a smaller share of living subscriptions is built anew


class Parcel(msgspec.Struct):
    """Subscriptions on their way to one shard, as `LocalIndex.rows` gives them."""

    controls: memoryview
    results: memoryview


class ExportFile(msgspec.Struct):
    """Subscriptions on their way to other shards."""

    shard: int  # where they come from
    drops: memoryview  # int64: slots that end there
    parcels: dict[int, Parcel]  # by the shard where they go


@dataclass(slots=True)
class Moved:
    """What came or went by a move, per kind."""

    drops: dict[str, list[int]] = field(default_factory=dict)  # slots
    controls: dict[str, pa.RecordBatch] = field(default_factory=dict)
    renumbered: bool = False  # slots have other numbers than the files of the state know


def worth_building(index: LocalIndex, settled: int) -> bool:
    """Whether so much of an index sees nothing from `settled` on that it is better built anew."""
    return len(index.living(settled)) < _WORTH * len(index)


def take_in(
    checkpoint: Path,
    shard: int,
    directions: Directions,
    indexes: dict[str, LocalIndex],
    settled: int,
) -> Moved:
    """Before the batch: drop what moved away, take in what comes.

    Where more comes than is there, an index that is worth building anew is so before: what comes
    need not be built twice. The state is then written whole after the batch.
    """
    moved = Moved()
    for kind, paths in directions.imports.items():
        index = indexes[kind]
        came = []
        for path in sorted(paths):
            file = _read(checkpoint / path)
            if file.shard == shard:
                drops = np.frombuffer(file.drops, np.int64).copy()  # aligned, as kernels want it
                moved.drops[kind] = drops.tolist()
                index.drop(drops)
            if shard in file.parcels:
                came.append(file.parcels[shard])
        if not came:
            continue
        tables = [from_bytes(parcel.controls, index.controls) for parcel in came]
        controls = moved.controls[kind] = join(tables, index.controls)
        if controls.num_rows > len(index.living(settled)) and worth_building(index, settled):
            index.compact(settled)
            moved.renumbered = True
        first = len(index) + np.cumsum([0, *(t.num_rows for t in tables)])
        index.apply(controls, np.zeros(controls.num_rows, np.int32))
        held = [from_bytes(parcel.results, index.results) for parcel in came]
        shifted = [_from(r, int(n)) for r, n in zip(held, first, strict=False)]
        index.restore(join(shifted, index.results))
    return moved


def _read(path: Path) -> ExportFile:
    """An export; what is for other shards is not even read."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return msgspec.msgpack.decode(body(path, "move", data), type=ExportFile)


def _from(results: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Results whose slots count from `first` instead of 0."""
    slots = pa.array(results["slot"].to_numpy() + first)
    return results.set_column(0, results.schema.field(0), slots)


def export(
    kind: str, shard: int, index: LocalIndex, going: Leaving, path: Path, ids: bool = True
) -> list[Export]:
    """Write down what leaves, with its results; nothing if nothing does.

    `ids`: the sink must know which subscriptions go where.
    """
    if len(going.drops) == 0 and len(going.slots) == 0:
        return []
    drops = memoryview(going.drops.tobytes())
    data = msgspec.msgpack.encode(ExportFile(shard, drops, parcels_of(index, going)))
    write_binary(path, "move", data)
    name = f"{path.parent.name}/{path.name}"
    made = Export(kind, name, len(going.slots), drops=len(going.drops), bytes=len(data))
    if ids:
        made.id_hash = index.id_hashes(going.slots).tolist()
        made.shards = going.shards.tolist()
    return [made]


def parcels_of(index: LocalIndex, going: Leaving) -> dict[int, Parcel]:
    """What is sent, by the shard where it goes."""
    return {
        int(to): _parcel(index, going.slots[going.shards == to], going.parity)
        for to in np.unique(going.shards)
    }


def _parcel(index: LocalIndex, slots: Slots, parity: bool | None) -> Parcel:
    """What is sent to one shard."""
    controls, results = index.rows(slots)
    if parity is not None:
        flags = numbers(controls["flags"])
        controls = with_flags(controls, np.where(parity, flags | PARITY, flags & ~PARITY))
    return Parcel(to_bytes(controls), to_bytes(results))
