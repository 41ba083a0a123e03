"""First results of new subscriptions: what `last` of a subscribe means (docs/spec.md, section 4).

The objects of the past rest on all shards, so each shard looks for its part (`kinds.firsts`). A
kind that reports at once needs no more. Else the subscription waits: in batch n it is set aside
(`waiting.py`) and rests in no index; the shard that would have held it writes down its controls and
the objects of the batch that it sees. All shards write down what they found. The control file of
batch n+1 names these files. Before batch n+1 the shard where the subscription now belongs puts the
parts together, lets a scratch index live through what was written down, reports what comes of it,
and takes the subscription with its result into its own index, as if it had been moved there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.formats import read_binary
from nearcast.engine.options.settings import Settings
from nearcast.engine.shard.objects import stored_table
from nearcast.engine.shard.state import Manifest
from nearcast.engine.shard.views import reported_by
from nearcast.engine.shard.waiting import (
    FoundFile,
    Numbers,
    Waiting,
    changes_of,
    with_replaced,
)
from nearcast.index import LocalIndex
from nearcast.index.arena import Memory
from nearcast.kernels.hashing import hash_ids
from nearcast.kernels.slots import REPORTS, SUBSCRIBE
from nearcast.kinds.firsts import First
from nearcast.model.standing import Needs
from nearcast.objects import STORES
from nearcast.objects.base import ObjectStore
from nearcast.objects.tables import read_table
from nearcast.routing import Router
from nearcast.wire.carried import TEXTS, carried_by
from nearcast.wire.changes import Changes
from nearcast.wire.notifications import Reported, net
from nearcast.wire.tables import (
    ObjectColumns,
    empty,
    from_bytes,
    join,
    numbers,
    object_columns,
    strings,
    with_flags,
)


@dataclass(slots=True)
class Begun:
    """Subscriptions whose first results are there."""

    controls: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)  # for the index
    results: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)  # slots from 0 in each
    reported: list[Reported] = field(default_factory=list)
    costs: dict[str, list[float]] = field(default_factory=dict)  # by kind, for each shard

    def put_into(self, indexes: dict[str, LocalIndex]) -> None:
        """Take them in."""
        for kind, tables in self.controls.items():
            index = indexes[kind]
            for controls, results in zip(tables, self.results[kind], strict=True):
                slots = pa.array(numbers(results["slot"]) + len(index))
                index.apply(controls, np.zeros(controls.num_rows, np.int32))
                index.restore(results.set_column(0, results.schema.field(0), slots))


def begin(
    checkpoint: Path,
    shard: int,
    names: list[str],
    routers: dict[str, Router],
    settings: Settings,
    manifest: Manifest,
) -> Begun:
    """Before a batch: what waited in the one before it begins, on the shards where it belongs."""
    begun = Begun()
    if not names:
        return begun
    files = [
        msgspec.msgpack.decode(read_binary(checkpoint / name, "firsts"), type=FoundFile)
        for name in sorted(names)
    ]
    for kind in routers:
        if any(kind in file.waiting for file in files):
            _begin_kind(begun, kind, shard, files, routers[kind], settings, manifest)
    return begun


def _begin_kind(
    begun: Begun,
    kind: str,
    shard: int,
    files: list[FoundFile],
    router: Router,
    settings: Settings,
    manifest: Manifest,
) -> None:
    schema = settings.kinds[kind].schema
    tables = [
        from_bytes(file.waiting[kind].controls, schema) if kind in file.waiting else empty(schema)
        for file in files
    ]
    # Copies of a subscription may wait on several shards: any of them has all there is to know.
    source: dict[int, int] = {}
    begins = []
    for n, table in enumerate(tables):
        some = table.filter(pa.array(numbers(table["op"]) == SUBSCRIBE))
        fresh = [p not in source for p in numbers(some["pos"]).tolist()]
        begins.append(some.filter(pa.array(fresh, pa.bool_())))
        source |= dict.fromkeys(numbers(begins[-1]["pos"]).tolist(), n)
    every = join(begins, schema)
    every = every.take(pa.array(np.argsort(numbers(every["pos"]))))
    placed = router.place(every, hash_ids(*strings(every["id"])[::-1]))
    pos = numbers(every["pos"])
    if shard == 0 and placed.costs is not None:  # the rest was charged when it was routed
        looked = np.isin(pos, files[0].pos[kind])
        costs = np.where(looked, placed.costs, 0.0)[placed.rows]
        begun.costs[kind] = np.bincount(placed.shards, costs, router.shards).tolist()
    mine = placed.shards == shard
    reports = dict(zip(pos[placed.rows[mine]].tolist(), placed.reports[mine], strict=True))
    for n, table in enumerate(tables):
        own = {p: bool(r) for p, r in reports.items() if source[p] == n}
        if own:
            _live_through(begun, kind, shard, files, n, table, own, router, settings, manifest)


def _live_through(
    begun: Begun,
    kind: str,
    shard: int,
    files: list[FoundFile],
    n: int,
    table: pa.RecordBatch,
    own: dict[int, bool],
    router: Router,
    settings: Settings,
    manifest: Manifest,
) -> None:
    """What the `own` subscriptions of one file (by position: whether they report) went through."""
    waiting = files[n].waiting[kind]
    pos, begins = numbers(table["pos"]), numbers(table["op"]) == SUBSCRIBE
    chosen = begins & np.isin(pos, list(own))
    codes = numbers(table["id"].dictionary_encode().indices)
    theirs = np.isin(codes, codes[chosen])
    kept, ended = theirs & (chosen | ~begins), theirs & begins & ~chosen
    controls = with_replaced(table, np.flatnonzero(kept), np.flatnonzero(ended))
    at = np.frombuffer(waiting.at, np.int64)[theirs]
    silent = [own.get(p) is False for p in numbers(controls["pos"]).tolist()]
    flags = numbers(controls["flags"])
    controls = with_flags(controls, np.where(silent, flags & ~REPORTS, flags | REPORTS))

    scratch = settings.chosen[kind].make_index(settings.space, Memory())
    scratch.ranked = manifest.ranked
    if settings.kinds[kind].keeps:
        scratch.past = _seen_meanwhile(waiting, settings)
    scratch.apply(controls, at.astype(np.int32))
    slots = np.flatnonzero(numbers(controls["op"]) == SUBSCRIBE)
    rows = controls.take(pa.array(slots))
    firsts = _first_results(kind, files, rows, settings)
    held = [{"slot": slot, **first.result} for slot, first in firsts.items()]
    scratch.restore(pa.RecordBatch.from_pylist(held, schema=scratch.results))
    changes, objects = _changes_since(scratch, waiting)
    changes = reported_by(scratch, router, shard, changes, objects)
    said = _entered(firsts, rows, at[slots], scratch.reports(np.arange(len(slots))))
    begun.reported += _in_turn(said, changes, rows, settings, kind, scratch)
    living = scratch.living(manifest.now - settings.grace_ms)
    taken, results = scratch.rows(living)
    begun.controls.setdefault(kind, []).append(taken)
    begun.results.setdefault(kind, []).append(results)


def _seen_meanwhile(waiting: Waiting, settings: Settings) -> ObjectStore:
    """The objects that came while it waited, for an index that looks at kept objects."""
    table = from_bytes(waiting.objects, pa.ipc.open_stream(waiting.objects).schema)
    store = STORES[settings.store](settings.space, Memory(), idf=settings.weights.hashed)
    if table.num_rows:
        ranks = np.frombuffer(waiting.ranks, np.int64)
        order = np.argsort(ranks)
        rows = stored_table(table.take(pa.array(order)), ranks[order])
        store.add(*read_table(rows))
    return store


def _first_results(
    kind: str, files: list[FoundFile], rows: pa.RecordBatch, settings: Settings
) -> dict[int, First]:
    """By slot: the first results of those that look back."""
    looking = settings.kinds[kind].firsts
    assert looking is not None
    number = {p: i for i, p in enumerate(files[0].pos[kind])}
    found = {}
    for slot, row in enumerate(rows.to_pylist()):
        i = number.get(row["pos"])
        if i is not None:
            found[slot] = looking.begin(row, [file.parts[kind][i] for file in files])
    return found


def _changes_since(scratch: LocalIndex, waiting: Waiting) -> tuple[Changes, ObjectColumns]:
    """What the rest of the batch changed."""
    schema = pa.ipc.open_stream(waiting.objects).schema
    table = from_bytes(waiting.objects, schema)
    until, clock = (np.frombuffer(b, np.int64).copy() for b in (waiting.until, waiting.clock))
    objects = object_columns(table, until=until)
    if waiting.needs:
        ranks = np.frombuffer(waiting.ranks, np.int64) if waiting.ranks else None
        texts = [from_bytes(waiting.texts, TEXTS)] if waiting.texts is not None else []
        scratch.carry(carried_by(table, texts, ranks, Needs(waiting.needs)))
    return scratch.match(objects, clock, waiting.now), objects


def _entered(
    firsts: dict[int, First], rows: pa.RecordBatch, at: Numbers, reports: NDArray[np.bool_]
) -> Changes:
    """The first results, as changes."""
    time = numbers(rows["time"])
    said = [(slot, *e) for slot, first in firsts.items() if reports[slot] for e in first.events]
    slot = np.array([s for s, *_ in said], np.int64)
    event = np.array([e for _, e, _, _ in said], np.uint8)
    value = np.array([v for _, _, v, _ in said], np.float64)
    return changes_of(at[slot], slot, event, time[slot], value, [i for *_, i in said])


def _in_turn(
    said: Changes,
    changes: Changes,
    rows: pa.RecordBatch,
    settings: Settings,
    kind: str,
    scratch: LocalIndex,
) -> Iterable[Reported]:
    """First results, then what changed; of an id that began several times, one after the other."""
    definition = settings.kinds[kind]
    turn = np.zeros(rows.num_rows, np.int64)
    seen: dict[bytes, int] = {}
    for slot, id_ in enumerate(rows["id"].to_pylist()):
        turn[slot] = seen.get(id_, 0)
        seen[id_] = int(turn[slot]) + 1
    both = _joined(said, changes, settings.changes == "net")
    if settings.changes == "net":
        both = net(both, definition.events)
    for n in range(int(turn.max(initial=-1)) + 1):
        some = both if turn.max() == 0 else both.take(np.flatnonzero(turn[both.slot] == n))
        yield Reported(definition, scratch, some)


def _joined(said: Changes, changes: Changes, same_names: bool) -> Changes:
    """Both, one after the other.

    With `same_names`, what leaves a result without having entered is what first results hold.
    """
    starts = changes.name_starts + len(said.names)
    if same_names:
        held: dict[tuple[int, bytes], list[int]] = {}
        data = said.names.tobytes()
        for slot, a, size in zip(said.slot, said.name_starts, said.name_lengths, strict=True):
            held.setdefault((int(slot), data[a : a + size]), []).append(int(a))
        known: dict[tuple[int, int], int] = {}
        data = changes.names.tobytes()
        names = zip(changes.slot, changes.name_starts, changes.name_lengths, strict=True)
        for i, (slot, a, size) in enumerate(names):
            key = (int(slot), int(a))
            if key not in known:
                own = held.get((int(slot), data[a : a + size]), [])
                first = own and changes.event[i] != said.event[0]
                known[key] = own.pop() if first else int(starts[i])
            starts[i] = known[key]
    order, slot, event, time, value = (
        np.concatenate([getattr(said, name), getattr(changes, name)])
        for name in ("order", "slot", "event", "time", "value")
    )
    return Changes(
        order,
        slot,
        event,
        time,
        value,
        np.concatenate([said.name_starts, starts]),
        np.concatenate([said.name_lengths, changes.name_lengths]),
        np.concatenate([said.names, changes.names]),
        changes.work,
    )
