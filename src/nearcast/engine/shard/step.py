"""The shard step, without Spark: one batch of envelopes in, notifications and new state out."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine import faults
from nearcast.engine.files import inside
from nearcast.engine.moves.balancer import STATS
from nearcast.engine.moves.control import Export, make_routers
from nearcast.engine.moves.parcels import Moved, export, take_in, worth_building
from nearcast.engine.moves.planning import SURVEY, Surveyed
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.answers import write_parts
from nearcast.engine.output.batch_files import BatchFiles, Placed, kinds_of
from nearcast.engine.route.envelope import Directions, Envelope
from nearcast.engine.shard.costs import Bill, add_costs
from nearcast.engine.shard.events import Events, Ordered, in_order, ranks_in
from nearcast.engine.shard.first_results import (
    Waiting,
    begin,
    reported_at_once,
    set_aside,
    wait,
    write_firsts,
)
from nearcast.engine.shard.objects import (
    Past,
    archived_objects,
    own_objects,
    refused,
    rejects,
    stored_rows,
)
from nearcast.engine.shard.state import Delta, Manifest, StateFiles, StoredFiles, snapshot
from nearcast.engine.shard.views import change_kinds, reported_by, view_of
from nearcast.index import LocalIndex
from nearcast.index.arena import Arena, Part
from nearcast.kernels.hashing import hash_ids
from nearcast.kernels.ragged import frozen, gather
from nearcast.kinds.firsts import waits
from nearcast.objects.archive import ArchiveWriter
from nearcast.objects.archive import Part as ArchivePart
from nearcast.objects.base import ObjectStore
from nearcast.routing import Router
from nearcast.routing.arrays import FOLDER, pack
from nearcast.routing.balance import Counts
from nearcast.routing.base import Seen
from nearcast.routing.sampling import sample_of
from nearcast.wire.durable import write_atomic
from nearcast.wire.notifications import Holder, Reported, net
from nearcast.wire.tables import NEVER, REJECTS, empty, join, numbers, to_bytes

_SMALL = 1 << 20  # bytes of deltas that are never worth a new snapshot
_RECENT = 3  # batches whose objects are kept in any case, where a kind keeps objects


Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)


class _Looking(Protocol[Found_co]):
    """How objects of the past are found: for asks, and for new subscriptions."""

    def search(
        self, store: ObjectStore, table: pa.RecordBatch, before: NDArray[np.int64], /, shards: int
    ) -> Sequence[Found_co]: ...

    def places(self, table: pa.RecordBatch, /) -> NDArray[np.float64] | None: ...


class Report(msgspec.Struct):
    """What a shard reports to the driver about a batch: figures and names of files, no rows."""

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
    route_seconds: float = 0.0  # of all splits (reported by shard 0)
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
    archived: list[ArchivePart] = []  # files for the archive
    answers: str = ""  # the file with its parts of answers, relative to the checkpoint
    firsts: str = ""  # and that with its parts of first results
    costs: dict[str, list[float]] = {}  # by kind: added to C(w) of each shard, less taken away
    reach: dict[str, int] = {}  # by kind that keeps objects: how far back its subscriptions look


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
        FOLDER.set(self.checkpoint)
        directions = envelopes[0].directions
        report = Report(shard, directions.batch)
        arena = Arena(self.settings.arena_root() / self.run / f"{shard:04d}")
        with arena.lock():
            indexes, past, kept = self._attach(arena, shard, manifest, report)
            report.attach_seconds = time.perf_counter() - started
            arena.begin()
            faults.reach("shard-begin", directions.batch)
            settled = manifest.now - self.settings.grace_ms
            moved = take_in(self.checkpoint, shard, directions, indexes, settled)
            faults.reach("shard-taken-in", directions.batch)
            events = in_order(envelopes, self.settings, manifest.now, manifest.ranked)
            unseen = self._refuse_lasts(events, manifest, report)
            report.objects = len(events.objects.order)
            report.controls = len(events)
            routers = make_routers(self.settings, directions.tables)
            ordered = {k: events.of(self.settings.kinds[k]) for k in routers}
            waiting = self._set_aside(events, ordered, routers, shard)
            begun = begin(
                self.checkpoint, shard, directions.firsts, routers, self.settings, settled
            )
            for kind, tables in begun.controls.items():
                came = [moved.controls[kind]] if kind in moved.controls else []
                moved.controls[kind] = join(came + tables, indexes[kind].controls)
            views = {k: view_of(ordered[k], r, shard) for k, r in routers.items()}
            bills = open_bills(shard, directions, routers, indexes, manifest, moved, ordered)
            begun.put_into(indexes)
            add_costs(report.costs, begun.costs)
            faults.reach("shard-begun", directions.batch)
            held = {k: len(i) for k, i in indexes.items()}
            self._apply(indexes, views, report)
            for index in indexes.values():
                index.now, index.ranked = manifest.now, manifest.ranked
                if events.carried is not None:
                    index.carry(events.carried)
            own = own_objects(events, shard, self.settings, routers, views)
            if past is not None:
                past.add(own)
            for kind, store in kept.items():
                if kind in events.in_use or kind in manifest.kept:
                    store.add(stored_rows(events, views[kind].objects.order))
            if self.settings.archive:
                writer = ArchiveWriter(Path(self.settings.archive), self.settings.space)
                report.archived = writer.write(directions.batch, shard, own)
                faults.reach("shard-archived", directions.batch)
            late = self._ask(past, own, events, manifest, report)
            told = self._look_back(past, own, events, manifest, waiting, report)
            firsts: list[Placed] = [*((some, None) for some in begun.reported), *told]
            self._tally(firsts, report)
            reported = self._match(indexes, routers, views, report)
            mixed = change_kinds(indexes, held) or _replace(indexes, told)
            ranks = {k: ranks_in(ordered[k], v) for k, v in views.items()} if mixed else None
            refused = {"ask": late, "subscribe": unseen}
            files = BatchFiles(
                Path(self.out), self.settings.format, report.batch, shard, self.settings.kinds
            )
            report.files |= files.notifications(reported, ranks, firsts)
            self._write_out(files, envelopes, report, refused)
            faults.reach("shard-matched", directions.batch)
            self._count(indexes, routers, held, events.now, report)
            add_costs(report.costs, {k: bill.settle(events.now) for k, bill in bills.items()})
            self._gather(directions, routers, indexes, held, views, report)
            following = self._save(
                shard, directions.batch, manifest, indexes, moved, ordered, events.now, report
            )
            following.ranked = manifest.ranked + events.published
            following.objects = manifest.objects
            if past is not None:
                following.objects = past.save(
                    directions.batch,
                    manifest.objects,
                    events.now,
                    events.now - self.settings.retain_ms,
                )
            else:
                following.objects.floor = max(manifest.objects.floor, events.now)
            for kind in kept.keys() & (events.in_use | manifest.kept.keys()):
                following.kept[kind] = self._keep(
                    kind, kept[kind], indexes[kind], directions, manifest, following, report
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
    ) -> tuple[dict[str, LocalIndex], Past | None, dict[str, Past]]:
        """Indexes and stores as `manifest` has them: from the arena if it is that, or from files.

        The stores are that of the run and those that kinds keep.
        """
        if not arena.attach(manifest.token):
            arena.clear()
            past, kept = self._past(arena, shard), self._kept(arena, shard)
            indexes = self._indexes(arena, kept)
            for kind, store in kept.items():
                if kind in manifest.kept:
                    store.rebuild(manifest.kept[kind])
            StateFiles(self.checkpoint, shard).rebuild(manifest, indexes)
            if past is not None:
                past.rebuild(manifest.objects)
            report.rebuilt = bool(manifest.files)
            return indexes, past, kept
        try:
            past, kept = self._past(arena, shard), self._kept(arena, shard)
            return self._indexes(arena, kept), past, kept
        except (OSError, ValueError, IndexError):  # files cut short behind our back
            arena.clear()
            return self._attach(arena, shard, manifest, report)

    def _indexes(self, arena: Arena, kept: dict[str, Past]) -> dict[str, LocalIndex]:
        indexes = {
            k: s.make_index(self.settings.space, Part(arena, k))
            for k, s in self.settings.chosen.items()
        }
        for kind, past in kept.items():
            indexes[kind].past = past.store
        return indexes

    def _kept(self, arena: Arena, shard: int) -> dict[str, Past]:
        """The objects that kinds keep for their indexes."""
        folder = self.checkpoint / "objects"
        return {
            name: Past(
                self.settings,
                folder / f"{shard:04d}-{kind.number}",
                Part(arena, f"{name}-past"),
                kind.slicing,
            )
            for name, kind in self.settings.kinds.items()
            if kind.keeps
        }

    def _keep(
        self,
        kind: str,
        store: Past,
        index: LocalIndex,
        directions: Directions,
        manifest: Manifest,
        following: Manifest,
        report: Report,
    ) -> StoredFiles:
        """Save the objects that a kind keeps, without those that no shard's index needs.

        A subscription that moves takes none with it: so each shard keeps what any shard needs, and
        all of the latest batches, because it learns a batch later what others need.
        """
        files = manifest.kept.get(kind, StoredFiles())
        report.reach[kind] = index.reach()
        reach = max(report.reach[kind], directions.reach.get(kind, 0))
        starts = [*files.starts, manifest.ranked][-_RECENT:]
        rank = min(index.first_rank(following.ranked), starts[0])
        saved = store.save(directions.batch, files, following.now, following.now - reach, rank)
        saved.starts = starts
        saved.floor = NEVER  # what was let go says nothing of what is needed: a late object may be
        return saved

    def _past(self, arena: Arena, shard: int) -> Past | None:
        """The objects that stay; None: none do."""
        if not self.settings.retain_ms:
            return None
        folder = self.checkpoint / "objects" / f"{shard:04d}"
        return Past(self.settings, folder, Part(arena, "past"))

    def _ask(
        self,
        past: Past | None,
        own: pa.RecordBatch,
        events: Events,
        manifest: Manifest,
        report: Report,
    ) -> pa.RecordBatch:
        """Find this shard's parts of answers; `own`: the objects of the batch that it stores.

        REJECTS of asks that reach back too far, on shard 0.
        """
        if not events.asks:
            return empty(REJECTS)
        retain, floor = self.settings.retain_ms, manifest.objects.floor
        accepted, parts, bad_ones = {}, {}, []
        for kind, asks in events.asks.items():
            clock = events.clock_of(asks)
            beyond = refused(numbers(asks["end"]), clock, retain, floor)
            bad = np.zeros_like(beyond) if self.settings.archive else beyond
            bad_ones += rejects(asks, bad, clock, retain, floor)
            if bad.all():
                continue
            kept = np.flatnonzero(~bad)
            accepted[kind] = asks.take(pa.array(kept))
            answers = self.settings.kinds[kind].answers
            assert answers is not None
            periods = numbers(accepted[kind]["end"]), numbers(accepted[kind]["time"])
            parts[kind] = self._parts(
                past, own, manifest, report.shard, answers, accepted[kind], periods,
                events.before[kind][kept], beyond[kept],
            )  # fmt: skip
        if accepted:
            report.answers = write_parts(
                self.checkpoint, report.batch, report.shard, accepted, parts
            )
        if report.shard == 0:
            for kind, asks in accepted.items():
                report.notifications[f"{kind}.answer"] = asks.num_rows
            return pa.RecordBatch.from_pylist(bad_ones, schema=REJECTS)
        return empty(REJECTS)

    def _parts(
        self,
        past: Past | None,
        own: pa.RecordBatch,
        manifest: Manifest,
        shard: int,
        looking: _Looking[Found],
        table: pa.RecordBatch,
        periods: tuple[NDArray[np.int64], NDArray[np.int64]],
        before: NDArray[np.int64],
        beyond: NDArray[np.bool_],
    ) -> list[Found]:
        """What is found for rows of one kind; `beyond` what is retained, in the archive."""
        parts: dict[int, Found] = {}
        recent, older = np.flatnonzero(~beyond), np.flatnonzero(beyond)
        if len(recent):
            assert past is not None
            found = looking.search(
                past.store, table.take(pa.array(recent)), before[recent], self.settings.shards
            )
            parts |= zip(recent.tolist(), found, strict=True)
        if len(older):
            some = table.take(pa.array(older))
            period = int(periods[0][older].min()), int(periods[1][older].max())
            store = archived_objects(
                self.settings, shard, period, looking.places(some), manifest.ranked, own
            )
            found = looking.search(store, some, before[older], self.settings.shards)
            parts |= zip(older.tolist(), found, strict=True)
        return [parts[row] for row in range(table.num_rows)]

    # -- subscriptions that look back --------------------------------------------------------

    def _refuse_lasts(self, events: Events, manifest: Manifest, report: Report) -> pa.RecordBatch:
        """Forget subscribes that reach back too far, as if they were not there.

        REJECTS of them, on shard 0. Those that see nothing do not look back.
        """
        if not events.lasts:
            return empty(REJECTS)
        retain, floor = self.settings.retain_ms, manifest.objects.floor
        bad_ones, gone = [], {}
        for kind, lasts in events.lasts.items():
            clock = events.clock_of(lasts)
            beyond = refused(numbers(lasts["after"]), clock, retain, floor)
            bad = np.zeros_like(beyond) if self.settings.archive else beyond
            bad_ones += rejects(lasts, bad, clock, retain, floor)
            gone[kind] = numbers(lasts["pos"])[bad]
            kept = np.flatnonzero(~bad & (numbers(lasts["end"]) > numbers(lasts["time"])))
            events.lasts[kind] = lasts.take(pa.array(kept))
            events.lasts_before[kind] = events.lasts_before[kind][kept]
        events.without(gone)
        if report.shard == 0:
            return pa.RecordBatch.from_pylist(bad_ones, schema=REJECTS)
        return empty(REJECTS)

    def _set_aside(
        self, events: Events, ordered: dict[str, Ordered], routers: dict[str, Router], shard: int
    ) -> dict[str, Waiting]:
        """Take subscriptions that wait for their first results out of `ordered`."""
        waiting = {}
        for kind, lasts in events.lasts.items():
            if waits(self.settings.kinds[kind]):
                ordered[kind], aside = set_aside(ordered[kind], numbers(lasts["pos"]))
                if aside is not None:
                    waiting[kind] = wait(view_of(aside, routers[kind], shard), events)
        return waiting

    def _look_back(
        self,
        past: Past | None,
        own: pa.RecordBatch,
        events: Events,
        manifest: Manifest,
        waiting: dict[str, Waiting],
        report: Report,
    ) -> list[tuple[Reported, NDArray[np.int64]]]:
        """Search this shard's objects for new subscriptions; what is reported at once.

        With each change comes its place among the objects of the batch.
        """
        told, pos, parts = [], {}, {}
        for kind, lasts in events.lasts.items():
            if not lasts.num_rows:
                continue
            definition = self.settings.kinds[kind]
            looking = definition.firsts
            assert looking is not None
            retain, floor = self.settings.retain_ms, manifest.objects.floor
            after, until = numbers(lasts["after"]), numbers(lasts["end"]) - 1
            beyond = refused(after, events.clock_of(lasts), retain, floor)
            found = self._parts(
                past, own, manifest, report.shard, looking, lasts, (after, until),
                events.lasts_before[kind], beyond,
            )  # fmt: skip
            if looking.at_once:
                places = events.places_of(lasts)
                told.append(reported_at_once(definition, lasts, found, places))
            else:
                pos[kind], parts[kind] = numbers(lasts["pos"]).tolist(), found
        if pos:
            report.firsts = write_firsts(
                self.checkpoint, report.batch, report.shard, pos, parts, waiting
            )
        faults.reach("shard-looked-back", report.batch)
        return told

    def _tally(self, firsts: list[Placed], report: Report) -> None:
        """Count what is reported of first results."""
        for (kind, _, changes), _ in firsts:
            for event, n in changes.events().items():
                name = f"{kind.name}.{kind.events[event].name}"
                report.notifications[name] = report.notifications.get(name, 0) + n

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
            settled = now - self.settings.grace_ms
            name = f"{directions.batch:012d}-{shard:04d}-{uuid.uuid4().hex[:12]}.bin"
            path = self.checkpoint / "moves" / name
            if SURVEY in order:
                found = router.survey(index, now, settled, self.settings.space)
                write_atomic(path, pack(found))
                report.surveys.append(Surveyed(kind, inside(self.checkpoint, path)))
            elif STATS not in order:
                going = router.leaving(order, shard, index, index.living(settled))
                for made in export(kind, shard, index, going, path, router.keeps_ids):
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
            if STATS not in order:
                continue
            seen = Seen(
                index,
                sample_of(view.objects),
                index.living(view.now - self.settings.grace_ms),
                np.arange(held[kind], len(index)),
                index.ended(),
            )
            reported = router.gather(order[STATS], report.shard, seen, self.settings.balance)
            name = f"{report.batch:012d}-{report.shard:04d}-{uuid.uuid4().hex[:12]}-stats.bin"
            path = self.checkpoint / "moves" / name
            write_atomic(path, pack(reported))
            report.surveys.append(Surveyed(kind, inside(self.checkpoint, path)))
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
    ) -> Iterator[Reported]:
        """What is reported, piece by piece; figures are complete when it is through."""
        only_net = self.settings.changes == "net"
        for kind, index in indexes.items():
            ordered = views[kind]
            counts = report.counts[kind] = Counts(len(ordered.objects.order))
            started = time.perf_counter()
            for found in index.matching(
                ordered.objects, ordered.clock, ordered.now, only_net, self.settings.in_object_order
            ):
                counts.lookups += found.work.lookups
                counts.scanned += found.work.scanned
                counts.examined += found.work.examined
                counts.reported += len(found)
                reported = reported_by(index, routers[kind], report.shard, found, ordered.objects)
                reported = net(reported, self.settings.kinds[kind].events) if only_net else reported
                for event, n in reported.events().items():
                    name = f"{kind}.{self.settings.kinds[kind].events[event].name}"
                    report.notifications[name] = report.notifications.get(name, 0) + n
                report.match_seconds += time.perf_counter() - started
                yield Reported(self.settings.kinds[kind], index, reported)
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
            settled = now - self.settings.grace_ms
            counts.held, counts.old = router.tally(indexes[kind], settled)
            report.examined += counts.examined
            report.lookups += counts.lookups
            report.scanned += counts.scanned

    def _write_out(
        self,
        files: BatchFiles,
        envelopes: list[Envelope],
        report: Report,
        refused: dict[str, pa.RecordBatch],
    ) -> None:
        """Rejects and figures; `refused` on the shard, by op."""
        if report.shard == 0:
            tables = [*(e.reject_table for e in envelopes), *refused.values()]
            found = join(tables, REJECTS)
            report.rejects = found.num_rows
            report.reject_kinds = kinds_of(found)
            report.files |= files.rejects(found)
            for envelope in envelopes:
                report.route_seconds += envelope.seconds
                for op, n in envelope.events.items():
                    report.events[op] = report.events.get(op, 0) + n
                add_costs(report.costs, envelope.costs)
            for op, table in refused.items():
                if table.num_rows:
                    report.events[op] -= table.num_rows
                    report.events["reject"] = report.events.get("reject", 0) + table.num_rows

    def _save(
        self,
        shard: int,
        batch: int,
        manifest: Manifest,
        indexes: dict[str, LocalIndex],
        moved: Moved,
        ordered: dict[str, Ordered],
        now: int,
        report: Report,
    ) -> Manifest:
        """Write what this batch changed; now and then, all there is instead (compaction)."""
        deltas: dict[str, Delta] = {}
        for kind, index in indexes.items():
            new = ordered[kind].controls
            controls = [t for t in (moved.controls.get(kind), new) if t is not None]
            results = index.changed()
            index.close()
            drops = moved.drops.get(kind, [])
            table = join(controls, index.controls)
            if table.num_rows or results.num_rows or drops:
                deltas[kind] = Delta(drops, to_bytes(table), to_bytes(results))
        files = StateFiles(self.checkpoint, shard)
        following = Manifest(
            token=uuid.uuid4().hex,
            base=manifest.base,
            files=list(manifest.files),
            snapshot_bytes=manifest.snapshot_bytes,
            delta_bytes=manifest.delta_bytes,
            now=now,
        )
        if deltas:
            data = msgspec.msgpack.encode(deltas)
            # What came by a move stands there once, as in a snapshot.
            came = min(sum(table.nbytes for table in moved.controls.values()), len(data))
            following.snapshot_bytes += came
            following.delta_bytes += len(data) - came
            large = following.delta_bytes > max(following.snapshot_bytes, _SMALL)
            settled = now - self.settings.grace_ms
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


def _replace(
    indexes: dict[str, LocalIndex], told: list[tuple[Reported, NDArray[np.int64]]]
) -> bool:
    """Whether ids of subscriptions that looked back were in use before, in this batch."""
    if not told:
        return False
    ended = [index.id_hashes(index.ended()) for index in indexes.values()]
    return any(np.isin(_hashes(some.held_in), found).any() for some, _ in told for found in ended)


def _hashes(held_in: Holder) -> NDArray[np.uint64]:
    texts = held_in.texts(np.arange(len(held_in)))
    offsets, data = gather(texts.text, texts.starts, texts.id_lengths)
    return hash_ids(frozen(data), offsets)


def open_bills(
    shard: int,
    directions: Directions,
    routers: dict[str, Router],
    indexes: dict[str, LocalIndex],
    manifest: Manifest,
    moved: Moved,
    ordered: dict[str, Ordered],
) -> dict[str, Bill]:
    """For each kind that is planned, before its events are applied."""
    bills = {}
    for kind, router in routers.items():
        if router.keeps_costs:
            order = directions.orders.get(kind, {})
            new = ordered[kind].controls
            came = [t for t in (moved.controls.get(kind), new) if t is not None]
            bills[kind] = Bill(kind, shard, router, order, indexes[kind], manifest, came)
    return bills
