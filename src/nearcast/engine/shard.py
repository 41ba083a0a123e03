"""The shard step, without Spark: one batch of envelopes in, notifications and new state out."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine import faults
from nearcast.engine.batch import Ordered, in_order
from nearcast.engine.envelope import Directions, Envelope
from nearcast.engine.files import write_atomic
from nearcast.engine.moves import Export, make_routers
from nearcast.engine.planning import ASK, Surveyed, homes_by, survey
from nearcast.engine.settings import Settings
from nearcast.engine.sinks import BatchFiles
from nearcast.engine.state import Delta, Manifest, StateFiles, ids_table, snapshot
from nearcast.index import LocalIndex
from nearcast.index.arena import Arena, Part
from nearcast.index.base import EVENTS, Changes, Work
from nearcast.index.notify import net
from nearcast.routing import CanMove, CanPlan, Router, choose
from nearcast.wire.tables import CONTROLS, REJECTS, RESULTS, empty, from_bytes, join, to_bytes

_SMALL = 1 << 20  # bytes of deltas that are never worth a new snapshot
_WORTH = 0.7  # an index with a smaller share of living subscriptions is built anew


class Report(msgspec.Struct):
    """What a shard tells the driver about a batch: figures and names of files, no rows."""

    shard: int
    batch: int
    subscriptions: int = 0
    objects: int = 0
    controls: int = 0
    events: dict[str, int] = {}
    notifications: dict[str, int] = {}  # "range.match": n
    rejects: int = 0
    examined: int = 0
    lookups: int = 0
    scanned: int = 0
    seconds: float = 0.0
    route_seconds: float = 0.0  # of all splits (told by shard 0)
    attach_seconds: float = 0.0
    match_seconds: float = 0.0
    rebuilt: bool = False
    arena_bytes: int = 0
    state_bytes: int = 0
    files: dict[str, str] = {}  # final name: temporary path
    exports: list[Export] = []
    surveys: list[Surveyed] = []
    costs: dict[str, list[float]] = {}  # added to each shard by a plan (told by shard 0)
    ended: dict[str, float] = {}  # cost of what ended here, by a plan


def costs_of(reports: list[Report]) -> dict[str, list[float]]:
    """By kind: what a batch added to the cost of each shard, less what it took away."""
    costs: dict[str, list[float]] = {}
    for report in reports:
        for kind, added in report.costs.items():
            costs[kind] = list(added)
    for report in reports:
        for kind, gone in report.ended.items():
            costs.setdefault(kind, [0.0] * len(reports))[report.shard] -= gone
    return costs


@dataclass(slots=True)
class _Moved:
    """Subscriptions that came or went by a move, per kind."""

    drops: dict[str, pa.Array] = field(default_factory=dict)
    controls: dict[str, pa.RecordBatch] = field(default_factory=dict)


class ShardStep:
    """One shard's part of a run; holds no state of its own between batches."""

    def __init__(self, settings: Settings, checkpoint: str, run: str, out: str) -> None:
        self.settings = settings
        self.checkpoint = Path(checkpoint)
        self.run = run
        self.out = out

    def process(
        self, shard: int, envelopes: list[Envelope], manifest: Manifest
    ) -> tuple[Manifest, Report]:
        """Work a batch off; the state that Spark shall keep, and the report for the sink."""
        started = time.perf_counter()
        directions = envelopes[0].directions
        report = Report(shard, directions.batch)
        arena = Arena(self.settings.arena_root() / self.run / f"{shard:04d}")
        with arena.lock():
            indexes = self._attach(arena, shard, manifest, report)
            report.attach_seconds = time.perf_counter() - started
            arena.begin()
            faults.reach("shard-begin", directions.batch)
            moved = self._take_in(shard, directions, indexes)
            ordered = in_order(envelopes, self.settings, manifest.now)
            matching = time.perf_counter()
            changes = self._match(indexes, ordered, report)
            routers = make_routers(self.settings, directions.tables)
            self._count_ended(indexes, routers, report)
            report.match_seconds = time.perf_counter() - matching
            faults.reach("shard-matched", directions.batch)
            self._write_out(indexes, changes, envelopes, report)
            following = self._save(
                shard, directions.batch, manifest, indexes, moved, ordered, report
            )
            faults.reach("shard-state-written", directions.batch)
            self._answer(shard, directions, routers, indexes, following.now, report)
            report.subscriptions = sum(len(i) for i in indexes.values())
            report.arena_bytes = arena.bytes
            arena.commit(following.token)
            faults.reach("shard-arena-committed", directions.batch)
        report.seconds = time.perf_counter() - started
        return following, report

    def _attach(
        self, arena: Arena, shard: int, manifest: Manifest, report: Report
    ) -> dict[str, LocalIndex]:
        """The indexes as `manifest` has them: from the arena if it is that, else from files."""
        if not arena.attach(manifest.token):
            arena.clear()
            indexes = self._indexes(arena)
            StateFiles(self.checkpoint, shard).rebuild(manifest, indexes)
            report.rebuilt = bool(manifest.files)
            return indexes
        try:
            return self._indexes(arena)
        except (OSError, ValueError, IndexError):  # files cut short behind our back
            arena.clear()
            return self._attach(arena, shard, manifest, report)

    def _indexes(self, arena: Arena) -> dict[str, LocalIndex]:
        chosen = choose(self.settings.strategies)
        return {k: s.index(k, self.settings.space, Part(arena, k)) for k, s in chosen.items()}

    # -- moves -------------------------------------------------------------------------------

    def _take_in(
        self, shard: int, directions: Directions, indexes: dict[str, LocalIndex]
    ) -> _Moved:
        """Before the batch: drop what moved away, take in what comes (DESIGN section 4)."""
        moved = _Moved()
        for kind, paths in directions.imports.items():
            index = indexes[kind]
            gone, came = [], []
            for path in sorted(paths):
                export = read_export(Path(path))
                if export.shard == shard:
                    gone.append(from_bytes(export.controls, CONTROLS)["id"])
                    continue
                mine = np.flatnonzero(np.array(export.shards) == shard)
                came.append(_part_of(export, mine))
            if gone:
                moved.drops[kind] = pa.concat_arrays(gone)
                index.drop(moved.drops[kind])
            for controls, results in came:
                first = len(index)
                index.apply(controls, np.zeros(controls.num_rows, np.int32))
                slots = pa.array(results["slot"].to_numpy() + first)
                index.restore(results.set_column(0, results.schema.field(0), slots))
            if came:
                moved.controls[kind] = join([c for c, _ in came], CONTROLS)
        return moved

    def _answer(
        self,
        shard: int,
        directions: Directions,
        routers: dict[str, Router],
        indexes: dict[str, LocalIndex],
        now: int,
        report: Report,
    ) -> None:
        """After the batch: do what was ordered, a survey or an export.

        All subscriptions of an id go together, also ended ones that wait for late objects."""
        for kind, order in directions.orders.items():
            router, index = routers[kind], indexes[kind]
            slots = index.living(now - self.settings.grace_ms)
            hashes = index.id_hashes(slots)
            name = f"{directions.batch:012d}-{shard:04d}-{uuid.uuid4().hex[:12]}.bin"
            path = self.checkpoint / "moves" / name
            if ASK in order:
                write_atomic(path, survey(*index.rows(slots), hashes, self.settings.space))
                report.surveys.append(Surveyed(kind, str(path)))
                continue
            if isinstance(router, CanMove):
                target = router.select(order, shard, hashes)
            else:
                target = homes_by(order, shard, hashes)
            report.exports += self._export(kind, shard, index, slots, hashes, target, path)
        faults.reach("shard-exported", directions.batch)

    def _export(
        self,
        kind: str,
        shard: int,
        index: LocalIndex,
        slots: NDArray[np.int64],
        hashes: NDArray[np.uint64],
        target: NDArray[np.int64],
        path: Path,
    ) -> list[Export]:
        """Write down what shall move, with its results. It stays until the next batch drops it,
        so a batch that is repeated finds everything in place."""
        going = np.flatnonzero(target != shard)
        if len(going) == 0:
            return []
        controls, results = index.rows(slots[going])
        shards = target[going].tolist()
        data_out = ExportFile(shard, shards, to_bytes(controls), to_bytes(results))
        write_atomic(path, msgspec.msgpack.encode(data_out))
        return [Export(kind, str(path), hashes[going].tolist(), shards)]

    # -- the batch ---------------------------------------------------------------------------

    def _match(
        self, indexes: dict[str, LocalIndex], ordered: Ordered, report: Report
    ) -> dict[str, Changes]:
        found: dict[str, Changes] = {}
        work = Work()
        for kind, index in indexes.items():
            index.apply(ordered.controls, ordered.at)
            only_net = self.settings.changes == "net"
            changes = index.match(ordered.objects, ordered.clock, ordered.now, only_net)
            work += changes.work
            changes = changes.take(np.flatnonzero(index.reports(changes.slot)))
            found[kind] = net(changes) if only_net else changes
            counts = np.bincount(found[kind].event, minlength=len(EVENTS)).tolist()
            for event, n in zip(EVENTS, counts, strict=True):
                if n:
                    report.notifications[f"{kind}.{event}"] = n
        report.objects = len(ordered.objects.order)
        report.controls = ordered.controls.num_rows
        report.examined, report.lookups, report.scanned = work.examined, work.lookups, work.scanned
        return found

    def _count_ended(
        self, indexes: dict[str, LocalIndex], routers: dict[str, Router], report: Report
    ) -> None:
        """What the subscriptions that this batch ended had cost, by a plan."""
        for kind, router in routers.items():
            if isinstance(router, CanPlan) and router.table:
                ended = indexes[kind].ended()
                if len(ended):
                    controls, _ = indexes[kind].rows(ended)
                    report.ended[kind] = float(router.costs(controls).sum())

    def _write_out(
        self,
        indexes: dict[str, LocalIndex],
        changes: dict[str, Changes],
        envelopes: list[Envelope],
        report: Report,
    ) -> None:
        files = BatchFiles(Path(self.out), self.settings.format, report.batch, report.shard)
        report.files |= files.notifications([(indexes[k], c) for k, c in changes.items()])
        if report.shard == 0:
            rejects = join([e.reject_table for e in envelopes], REJECTS)
            report.rejects = rejects.num_rows
            report.files |= files.rejects(rejects)
            for envelope in envelopes:
                report.route_seconds += envelope.seconds
                for op, n in envelope.events.items():
                    report.events[op] = report.events.get(op, 0) + n
                for kind, added in envelope.costs.items():
                    before = report.costs.get(kind, [0.0] * len(added))
                    report.costs[kind] = [a + b for a, b in zip(before, added, strict=True)]

    def _save(
        self,
        shard: int,
        batch: int,
        manifest: Manifest,
        indexes: dict[str, LocalIndex],
        moved: _Moved,
        ordered: Ordered,
        report: Report,
    ) -> Manifest:
        """Write what this batch changed; now and then, all there is instead (compaction)."""
        deltas: dict[str, Delta] = {}
        for kind, index in indexes.items():
            controls = [t for t in (moved.controls.get(kind), ordered.controls) if t is not None]
            results = index.changed()
            index.close()
            drops = moved.drops.get(kind, empty(CONTROLS)["id"])
            table = join(controls, CONTROLS)
            if table.num_rows or results.num_rows or len(drops):
                deltas[kind] = Delta(to_bytes(ids_table(drops)), to_bytes(table), to_bytes(results))
        files = StateFiles(self.checkpoint, shard)
        following = Manifest(
            uuid.uuid4().hex,
            manifest.base,
            list(manifest.files),
            manifest.snapshot_bytes,
            manifest.delta_bytes,
            ordered.now,
        )
        if deltas:
            data = msgspec.msgpack.encode(deltas)
            following.delta_bytes += len(data)
            if following.delta_bytes > max(following.snapshot_bytes, _SMALL):
                self._compact(batch, files, following, indexes)
            else:
                following.files.append(files.write(batch, data))
        files.forget(following, batch)
        report.state_bytes = following.snapshot_bytes + following.delta_bytes
        return following

    def _compact(
        self, batch: int, files: StateFiles, manifest: Manifest, indexes: dict[str, LocalIndex]
    ) -> None:
        """A snapshot in place of all deltas, without what can see nothing any more."""
        settled = manifest.now - self.settings.grace_ms
        for index in indexes.values():
            if len(index.living(settled)) < _WORTH * len(index):
                index.compact(settled)
        data = msgspec.msgpack.encode({k: snapshot(i) for k, i in indexes.items()})
        manifest.files, manifest.base = [files.write(batch, data)], batch
        manifest.snapshot_bytes, manifest.delta_bytes = len(data), 0


class ExportFile(msgspec.Struct):
    """Subscriptions on their way to other shards."""

    shard: int  # where they come from
    shards: list[int]  # where each goes
    controls: bytes
    results: bytes


def read_export(path: Path) -> ExportFile:
    """An export file."""
    return msgspec.msgpack.decode(path.read_bytes(), type=ExportFile)


def _part_of(export: ExportFile, rows: Any) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """CONTROLS and RESULTS of some rows of an export, results counted from 0."""
    controls = from_bytes(export.controls, CONTROLS).take(pa.array(rows))
    results = from_bytes(export.results, RESULTS)
    slots = results["slot"].to_numpy()
    at = np.searchsorted(rows, slots)
    mine = np.isin(slots, rows)
    kept = results.filter(pa.array(mine))
    return controls, kept.set_column(0, RESULTS.field(0), pa.array(at[mine].astype(np.int64)))
