"""Moving subscriptions between shards: what leaves, the files it travels in, and taking it in.

At the end of a batch a shard writes down what shall leave. It stays until the next batch begins,
which drops it there and takes it in elsewhere (DESIGN section 4): a batch that is repeated finds
everything in place.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.envelope import Directions
from nearcast.engine.files import write_atomic
from nearcast.engine.moves import Export
from nearcast.engine.planning import TABLE, homes_by
from nearcast.index import LocalIndex
from nearcast.kernels.slots import PARITY
from nearcast.routing import CanMove, GridRouter, Router
from nearcast.routing.grid.cells import changed, touching
from nearcast.routing.grid.survey import survey_at
from nearcast.wire.tables import CONTROLS, RESULTS, from_bytes, join, numbers, to_bytes

Slots = NDArray[np.int64]
_WORTH = 0.5  # an index with a smaller share of living subscriptions is built anew


class Parcel(msgspec.Struct):
    """Subscriptions on their way to one shard: CONTROLS and RESULTS, as `LocalIndex.rows` gives."""

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


class Leaving(NamedTuple):
    """What an order makes a shard do: slots to drop, and copies (slot, shard) to send."""

    drops: Slots
    slots: Slots
    shards: Slots
    parity: bool | None = None  # that copies get; None: as they are


def worth_building(index: LocalIndex, settled: int) -> bool:
    """Whether so much of an index sees nothing from `settled` on that it is better built anew."""
    return len(index.living(settled)) < _WORTH * len(index)


def take_in(
    shard: int, directions: Directions, indexes: dict[str, LocalIndex], settled: int
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
            file = _read(path)
            if file.shard == shard:
                drops = np.frombuffer(file.drops, np.int64).copy()  # aligned, as kernels want it
                moved.drops[kind] = drops.tolist()
                index.drop(drops)
            if shard in file.parcels:
                came.append(file.parcels[shard])
        if not came:
            continue
        tables = [from_bytes(parcel.controls, CONTROLS) for parcel in came]
        controls = moved.controls[kind] = join(tables, CONTROLS)
        if controls.num_rows > len(index.living(settled)) and worth_building(index, settled):
            index.compact(settled)
            moved.renumbered = True
        first = len(index) + np.cumsum([0, *(t.num_rows for t in tables)])
        index.apply(controls, np.zeros(controls.num_rows, np.int32))
        held = [from_bytes(parcel.results, RESULTS) for parcel in came]
        index.restore(join([_from(r, int(n)) for r, n in zip(held, first, strict=False)], RESULTS))
    return moved


def _read(path: str) -> ExportFile:
    """An export; what is for other shards is not even read."""
    with Path(path).open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return msgspec.msgpack.decode(data, type=ExportFile)


def _from(results: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """RESULTS whose slots count from `first` instead of 0."""
    slots = pa.array(results["slot"].to_numpy() + first)
    return results.set_column(0, RESULTS.field(0), slots)


def leaving(
    router: Router, order: dict[str, Any], shard: int, index: LocalIndex, slots: Slots
) -> Leaving:
    """What `order` makes of the living `slots` of a shard."""
    if isinstance(router, GridRouter):
        return _by_table(router, order[TABLE], shard, index, slots)
    hashes = index.id_hashes(slots)
    if isinstance(router, CanMove):
        target = router.select(order, shard, hashes)
    else:
        target = homes_by(order, shard, hashes)
    going = np.flatnonzero(target != shard)
    return Leaving(slots[going], slots[going], target[going])


def _by_table(
    router: GridRouter, table: bytes, shard: int, index: LocalIndex, slots: Slots
) -> Leaving:
    """What a new table makes of the copies here; of all copies, the first one's shard sends.

    Where only some cells change owners, only what touches them is dealt anew. What an old strategy
    placed gets the parity of the new one when that is left alone: each copy is dropped, and sent
    even to the shard that it is on.
    """
    n = router.shards
    following = type(router)(n, table)
    slots = _concerned(router, following, index, slots)
    survey, parity = survey_at(index, slots), index.parity(slots)
    if router.grid is None:
        survey = survey._replace(id_hash=index.id_hashes(slots))
    before, after = router.stand(survey, parity), following.stand(survey, parity)
    alone = following.old is None
    renamed = (parity != following.both.parity) & alone
    old, new = before[0] * n + before[1], after[0] * n + after[1]
    first = np.full(len(slots), n)
    np.minimum.at(first, *before)
    comes, stays = np.zeros((2, len(slots) * n), bool)  # by slot and shard
    comes[new] = True
    stays[old[~renamed[before[0]]]] = True
    sent = np.flatnonzero(comes & ~stays)
    sent = sent[first[sent // n] == shard]
    drops = slots[renamed | ~comes[shard::n]]
    return Leaving(drops, slots[sent // n], sent % n, following.both.parity if alone else None)


def _concerned(router: GridRouter, following: GridRouter, index: LocalIndex, slots: Slots) -> Slots:
    """The slots whose copies may stand elsewhere afterwards, or need another parity."""
    if router.grid is None:
        return slots
    parity = index.parity(slots)
    chosen = np.zeros(len(slots), bool)
    for value in (False, True):
        rows = np.flatnonzero(parity == value)
        before, after = router.table_of(value), following.table_of(value)
        assert before is not None
        assert after is not None
        cells = changed(before, after)
        if cells is None or (following.old is None and value != following.both.parity):
            chosen[rows] = True
        else:
            chosen[rows] = touching(after, cells, *index.boxes(slots[rows]))
    return slots[chosen]


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
    write_atomic(path, data)
    made = Export(kind, str(path), len(going.slots), drops=len(going.drops), bytes=len(data))
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
        flags = np.where(parity, flags | PARITY, flags & ~PARITY).astype(np.int32)
        at = CONTROLS.get_field_index("flags")
        controls = controls.set_column(at, CONTROLS.field(at), pa.array(flags))
    return Parcel(to_bytes(controls), to_bytes(results))
