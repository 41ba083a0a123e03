"""The shard step, without Spark: one batch of envelopes in, notifications and new state out."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from nearcast.engine import faults
from nearcast.engine.balance import PLAN, STATS
from nearcast.engine.batch import Ordered, in_order, ranks_in
from nearcast.engine.costs import Bill, add_costs, counted
from nearcast.engine.envelope import Directions, Envelope
from nearcast.engine.files import write_atomic
from nearcast.engine.moves import Export, make_routers
from nearcast.engine.planning import ASK, Surveyed, survey_for
from nearcast.engine.settings import Settings
from nearcast.engine.sinks import BatchFiles, kinds_of
from nearcast.engine.state import Delta, Manifest, StateFiles, snapshot
from nearcast.engine.transfer import Moved, export, leaving, take_in, worth_building
from nearcast.engine.views import change_kinds, sample_of, told_by, view_of
from nearcast.index import LocalIndex
from nearcast.index.arena import Arena, Part
from nearcast.index.notify import Told, net
from nearcast.routing import CanMove, GridRouter, Router, choose
from nearcast.routing.balance import CanBalance, CanReplan, Counts, Period
from nearcast.routing.dkm.arrays import pack
from nearcast.routing.dkm.plan import PlannedRouter
from nearcast.routing.grid.survey import survey_at
from nearcast.wire.tables import CONTROLS, REJECTS, join, to_bytes

_SMALL = 1 << 20  # bytes of deltas that are never worth a new snapshot


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
    reject_kinds: dict[str, int] = {}  # by what was wrong
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
    counts: dict[str, Counts] = {}  # by kind
    moved: int = 0  # copies that went elsewhere, and bytes of their files
    moved_bytes: int = 0
    costs: dict[str, list[float]] = {}  # by kind: added to C(w) of each shard, less taken away


def costs_of(reports: list[Report]) -> dict[str, list[float]]:
    """By kind: what a batch added to the cost of each shard, less what it took away."""
    costs: dict[str, list[float]] = {}
    for report in reports:
        add_costs(costs, report.costs)
    return costs


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
            moved = take_in(shard, directions, indexes, manifest.now - self.settings.grace_ms)
            faults.reach("shard-taken-in", directions.batch)
            ordered = in_order(envelopes, self.settings, manifest.now)
            report.objects = len(ordered.objects.order)
            report.controls = ordered.controls.num_rows
            routers = make_routers(self.settings, directions.tables)
            views = {k: view_of(ordered, r, shard) for k, r in routers.items()}
            held = {k: len(i) for k, i in indexes.items()}
            bills = open_bills(shard, directions, routers, indexes, manifest, moved, ordered)
            self._apply(indexes, views, report)
            told = self._match(indexes, routers, views, report)
            mixed = change_kinds(indexes, held)
            ranks = {k: ranks_in(ordered, v) for k, v in views.items()} if mixed else None
            self._write_out(told, envelopes, report, ranks)
            faults.reach("shard-matched", directions.batch)
            self._count(indexes, routers, held, ordered.now, report)
            add_costs(report.costs, {k: bill.settle(ordered.now) for k, bill in bills.items()})
            self._gather(directions, routers, indexes, held, views, report)
            following = self._save(
                shard, directions.batch, manifest, indexes, moved, ordered, report
            )
            following.expiry = {kind: bill.expiry for kind, bill in bills.items()}
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

        Ended subscriptions that wait for late objects are still there, and go with the others."""
        for kind, order in directions.orders.items():
            router, index = routers[kind], indexes[kind]
            slots = index.living(now - self.settings.grace_ms)
            if ASK in order and isinstance(router, PlannedRouter):
                slots = counted(index, now)
            name = f"{directions.batch:012d}-{shard:04d}-{uuid.uuid4().hex[:12]}.bin"
            path = self.checkpoint / "moves" / name
            if ASK in order:
                write_atomic(path, survey_for(router, index, slots, self.settings.space))
                report.surveys.append(Surveyed(kind, str(path)))
            elif STATS not in order:
                going = leaving(router, order, shard, index, slots)
                keeps_ids = isinstance(router, CanMove)
                for made in export(kind, shard, index, going, path, keeps_ids):
                    report.exports.append(made)
                    report.moved += made.copies
                    report.moved_bytes += made.bytes
        faults.reach("shard-exported", directions.batch)

    def _gather(
        self,
        directions: Directions,
        routers: dict[str, Router],
        indexes: dict[str, LocalIndex],
        held: dict[str, int],
        views: dict[str, Ordered],
        report: Report,
    ) -> None:
        """Statistics for the balance, if ordered; while the index still knows what has ended."""
        for kind, order in directions.orders.items():
            router, index, view = routers[kind], indexes[kind], views[kind]
            if STATS not in order or not isinstance(router, CanBalance):
                continue
            living = index.living(view.now - self.settings.grace_ms)
            survey = survey_at(index, living)
            if order[STATS] == PLAN:
                survey = survey._replace(id_hash=index.id_hashes(living))
            period = Period(
                sample_of(view.objects),
                survey,
                survey_at(index, np.arange(held[kind], len(index))),
                survey_at(index, index.ended()),
            )
            if order[STATS] == PLAN and isinstance(router, CanReplan):
                told = router.gather_all(report.shard, period)
            else:
                told = router.gather(report.shard, period, self.settings.balance)
            name = f"{report.batch:012d}-{report.shard:04d}-{uuid.uuid4().hex[:12]}-stats.bin"
            path = self.checkpoint / "moves" / name
            write_atomic(path, pack(told))
            report.surveys.append(Surveyed(kind, str(path)))
        faults.reach("shard-gathered", directions.batch)

    # -- the batch ---------------------------------------------------------------------------

    def _apply(
        self, indexes: dict[str, LocalIndex], views: dict[str, Ordered], report: Report
    ) -> None:
        """Subscribes and unsubscribes, of all kinds: an id may end as one and begin as another."""
        started = time.perf_counter()
        for kind, index in indexes.items():
            index.apply(views[kind].controls, views[kind].at)
        report.match_seconds += time.perf_counter() - started

    def _match(
        self,
        indexes: dict[str, LocalIndex],
        routers: dict[str, Router],
        views: dict[str, Ordered],
        report: Report,
    ) -> Iterator[Told]:
        """What is told, piece by piece; figures are complete when it is through."""
        only_net = self.settings.changes == "net"
        for kind, index in indexes.items():
            ordered = views[kind]
            counts = report.counts[kind] = Counts(len(ordered.objects.order))
            started = time.perf_counter()
            for found in index.matching(
                ordered.objects, ordered.clock, ordered.now, only_net, self.settings.told_in_order
            ):
                counts.lookups += found.work.lookups
                counts.scanned += found.work.scanned
                counts.examined += found.work.examined
                counts.told += len(found)
                told = told_by(index, routers[kind], report.shard, found, ordered.objects)
                told = net(told) if only_net else told
                for event, n in told.events().items():
                    name = f"{kind}.{event}"
                    report.notifications[name] = report.notifications.get(name, 0) + n
                report.match_seconds += time.perf_counter() - started
                yield index, told
                started = time.perf_counter()
            report.match_seconds += time.perf_counter() - started

    def _count(
        self,
        indexes: dict[str, LocalIndex],
        routers: dict[str, Router],
        held: dict[str, int],
        now: int,
        report: Report,
    ) -> None:
        """What the batch made this shard do."""
        for kind, router in routers.items():
            ended, counts = indexes[kind].ended(), report.counts[kind]
            counts.controls = len(indexes[kind]) - held[kind] + len(ended)
            if isinstance(router, GridRouter) and router.old is not None:
                living = indexes[kind].living(now - self.settings.grace_ms)
                counts.held = len(living)
                counts.old = int((indexes[kind].parity(living) != router.both.parity).sum())
            report.examined += counts.examined
            report.lookups += counts.lookups
            report.scanned += counts.scanned

    def _write_out(
        self,
        told: Iterator[Told],
        envelopes: list[Envelope],
        report: Report,
        ranks: dict[str, NDArray[np.int64]] | None,
    ) -> None:
        files = BatchFiles(Path(self.out), self.settings.format, report.batch, report.shard)
        report.files |= files.notifications(told, ranks)
        if report.shard == 0:
            rejects = join([e.reject_table for e in envelopes], REJECTS)
            report.rejects = rejects.num_rows
            report.reject_kinds = kinds_of(rejects)
            report.files |= files.rejects(rejects)
            for envelope in envelopes:
                report.route_seconds += envelope.seconds
                for op, n in envelope.events.items():
                    report.events[op] = report.events.get(op, 0) + n
                add_costs(report.costs, envelope.costs)

    def _save(
        self,
        shard: int,
        batch: int,
        manifest: Manifest,
        indexes: dict[str, LocalIndex],
        moved: Moved,
        ordered: Ordered,
        report: Report,
    ) -> Manifest:
        """Write what this batch changed; now and then, all there is instead (compaction)."""
        deltas: dict[str, Delta] = {}
        for kind, index in indexes.items():
            controls = [t for t in (moved.controls.get(kind), ordered.controls) if t is not None]
            results = index.changed()
            index.close()
            drops = moved.drops.get(kind, [])
            table = join(controls, CONTROLS)
            if table.num_rows or results.num_rows or drops:
                deltas[kind] = Delta(drops, to_bytes(table), to_bytes(results))
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
            # What came by a move stands there once, as in a snapshot.
            came = min(sum(table.nbytes for table in moved.controls.values()), len(data))
            following.snapshot_bytes += came
            following.delta_bytes += len(data) - came
            large = following.delta_bytes > max(following.snapshot_bytes, _SMALL)
            settled = ordered.now - self.settings.grace_ms
            left = any(worth_building(indexes[kind], settled) for kind in moved.drops)
            if large or left or moved.renumbered:
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
            if worth_building(index, settled):
                index.compact(settled)
        data = msgspec.msgpack.encode({k: snapshot(i) for k, i in indexes.items()})
        manifest.files, manifest.base = [files.write(batch, data)], batch
        manifest.snapshot_bytes, manifest.delta_bytes = len(data), 0


def open_bills(
    shard: int,
    directions: Directions,
    routers: dict[str, Router],
    indexes: dict[str, LocalIndex],
    manifest: Manifest,
    moved: Moved,
    ordered: Ordered,
) -> dict[str, Bill]:
    """For each kind that is planned, before its events are applied."""
    bills = {}
    for kind, router in routers.items():
        if isinstance(router, PlannedRouter):
            order = directions.orders.get(kind, {})
            came = [t for t in (moved.controls.get(kind), ordered.controls) if t is not None]
            bills[kind] = Bill(kind, shard, router, order, indexes[kind], manifest, came)
    return bills
