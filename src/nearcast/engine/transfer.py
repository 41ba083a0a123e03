"""Moving subscriptions between shards: what leaves, the files it travels in, and taking it in.

At the end of a batch a shard writes down what shall leave. It stays until the next batch begins,
which drops it there and takes it in elsewhere (DESIGN section 4): a batch that is repeated finds
everything in place.
"""

from __future__ import annotations

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


class ExportFile(msgspec.Struct):
    """Subscriptions on their way to other shards."""

    shard: int  # where they come from
    drops: list[int]  # slots that end there
    shards: list[int]  # where each row goes
    controls: bytes
    results: bytes


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

    Where more comes than is there, the state is written whole after the batch. Then an index that
    is worth building anew is so before: what comes need not be built twice.
    """
    moved = Moved()
    for kind, paths in directions.imports.items():
        index = indexes[kind]
        came = []
        for path in sorted(paths):
            file = msgspec.msgpack.decode(Path(path).read_bytes(), type=ExportFile)
            if file.shard == shard:
                moved.drops[kind] = file.drops
                index.drop(np.array(file.drops, np.int64))
            rows = np.flatnonzero(np.array(file.shards) == shard)
            if len(rows):
                came.append(_part_of(file, rows))
        more = sum(controls.num_rows for controls, _ in came)
        if more > len(index.living(settled)) and worth_building(index, settled):
            index.compact(settled)
            moved.renumbered = True
        for controls, results in came:
            first = len(index)
            index.apply(controls, np.zeros(controls.num_rows, np.int32))
            slots = pa.array(results["slot"].to_numpy() + first)
            index.restore(results.set_column(0, results.schema.field(0), slots))
        if came:
            moved.controls[kind] = join([c for c, _ in came], CONTROLS)
    return moved


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

    `ids`: the sink must know which subscriptions they are.
    """
    if len(going.drops) == 0 and len(going.slots) == 0:
        return []
    controls, results = index.rows(going.slots)
    if going.parity is not None:
        flags = numbers(controls["flags"])
        flags = np.where(going.parity, flags | PARITY, flags & ~PARITY).astype(np.int32)
        at = CONTROLS.get_field_index("flags")
        controls = controls.set_column(at, CONTROLS.field(at), pa.array(flags))
    shards = going.shards.tolist()
    drops = going.drops.tolist()
    file = ExportFile(shard, drops, shards, to_bytes(controls), to_bytes(results))
    data = msgspec.msgpack.encode(file)
    write_atomic(path, data)
    hashes = index.id_hashes(going.slots).tolist() if ids else []
    return [Export(kind, str(path), hashes, shards, len(drops), len(data))]


def _part_of(file: ExportFile, rows: Slots) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """CONTROLS and RESULTS of some rows of an export, results counted from 0."""
    controls = from_bytes(file.controls, CONTROLS).take(pa.array(rows))
    results = from_bytes(file.results, RESULTS)
    slots = results["slot"].to_numpy()
    at = np.searchsorted(rows, slots)
    mine = np.isin(slots, rows)
    kept = results.filter(pa.array(mine))
    return controls, kept.set_column(0, RESULTS.field(0), pa.array(at[mine].astype(np.int64)))
