"""The shard step, without Spark: one batch of envelopes in, notifications and new state out."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine import faults
from nearcast.engine.files import inside
from nearcast.engine.moves.balancer import STATS
from nearcast.engine.moves.control import make_routers
from nearcast.engine.moves.parcels import Moved, export, take_in
from nearcast.engine.moves.planning import SURVEY, Surveyed
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.batch_files import BatchFiles, Placed, kinds_of
from nearcast.engine.route.envelope import Directions, Envelope
from nearcast.engine.shard.costs import Bill, add_costs
from nearcast.engine.shard.events import Ordered, in_order, ranks_in
from nearcast.engine.shard.first_results import begin
from nearcast.engine.shard.holdings import Keeper
from nearcast.engine.shard.looking_back import LookingBack
from nearcast.engine.shard.objects import own_objects
from nearcast.engine.shard.report import Report
from nearcast.engine.shard.state import Manifest
from nearcast.engine.shard.views import change_kinds, reported_by, view_of
from nearcast.engine.shard.window_parts import keep
from nearcast.index import LocalIndex
from nearcast.index.arena import Arena
from nearcast.kernels.hashing import hash_ids
from nearcast.kernels.ragged import frozen, gather
from nearcast.objects.archive import ArchiveWriter
from nearcast.routing import Router
from nearcast.routing.arrays import FOLDER, pack
from nearcast.routing.balance import Counts
from nearcast.routing.base import Seen
from nearcast.routing.sampling import sample_of
from nearcast.wire.durable import write_atomic
from nearcast.wire.notifications import Holder, Reported, net
from nearcast.wire.tables import REJECTS, join


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
            keeper = Keeper(self.settings, self.checkpoint, shard)
            held = keeper.attach(arena, manifest, report)
            indexes = held.indexes
            report.attach_seconds = time.perf_counter() - started
            arena.begin()
            faults.reach("shard-begin", directions.batch)
            settled = manifest.now - self.settings.grace_ms
            moved = take_in(self.checkpoint, shard, directions, indexes, settled)
            faults.reach("shard-taken-in", directions.batch)
            events = in_order(envelopes, self.settings, manifest.now, manifest.ranked)
            looking = LookingBack(self.settings, self.checkpoint, manifest, events, report)
            unseen = looking.refuse_lasts()
            report.objects = len(events.objects.order)
            report.controls = len(events)
            routers = make_routers(self.settings, directions.tables)
            ordered = {k: events.of(self.settings.kinds[k]) for k in routers}
            waiting = looking.set_aside(ordered, routers)
            begun = begin(
                self.checkpoint, shard, directions.firsts, routers, self.settings, manifest
            )
            for kind, tables in begun.controls.items():
                came = [moved.controls[kind]] if kind in moved.controls else []
                moved.controls[kind] = join(came + tables, indexes[kind].controls)
            views = {k: view_of(ordered[k], r, shard) for k, r in routers.items()}
            bills = open_bills(shard, directions, routers, indexes, manifest, moved, ordered)
            begun.put_into(indexes)
            add_costs(report.costs, begun.costs)
            faults.reach("shard-begun", directions.batch)
            before = {k: len(i) for k, i in indexes.items()}
            self._apply(indexes, views, report)
            for index in indexes.values():
                index.now, index.ranked = manifest.now, manifest.ranked
                if events.carried is not None:
                    index.carry(events.carried)
            own = own_objects(events, shard, self.settings, routers, views)
            if held.past is not None:
                held.past.add(own)
            keep(
                held.kept,
                indexes,
                events,
                views,
                self.settings,
                self.checkpoint,
                report.batch,
                manifest,
            )
            if self.settings.archive:
                writer = ArchiveWriter(Path(self.settings.archive), self.settings.space)
                report.archived = writer.write(directions.batch, shard, own)
                faults.reach("shard-archived", directions.batch)
            late = looking.ask(held.past, own)
            at_once = looking.look_back(held.past, own, waiting)
            firsts: list[Placed] = [*((some, None, None) for some in begun.reported), *at_once]
            for (kind_, _, changes), *_ in firsts:
                report.tally(kind_, changes)
            reported = self._match(indexes, routers, views, report)
            mixed = change_kinds(indexes, before) or _replace(indexes, at_once)
            ranks = {k: ranks_in(ordered[k], v) for k, v in views.items()} if mixed else None
            refused = {"ask": late, "subscribe": unseen}
            files = BatchFiles(
                Path(self.out), self.settings.format, report.batch, shard, self.settings.kinds
            )
            report.files |= files.notifications(reported, ranks, firsts)
            self._write_out(files, envelopes, report, refused)
            faults.reach("shard-matched", directions.batch)
            self._count(indexes, routers, before, events.now, report)
            add_costs(report.costs, {k: bill.settle(events.now) for k, bill in bills.items()})
            self._gather(directions, routers, indexes, before, views, report)
            following = keeper.save(held, directions, manifest, moved, ordered, events, report)
            following.expiry = {kind: bill.expiry for kind, bill in bills.items()}
            faults.reach("shard-state-written", directions.batch)
            self._answer(shard, directions, routers, indexes, following.now, report)
            report.subscriptions = sum(len(i) for i in indexes.values())
            report.arena_bytes = arena.bytes
            arena.commit(following.token)
            faults.reach("shard-arena-committed", directions.batch)
        report.seconds = time.perf_counter() - started
        return following, report

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
        before: dict[str, int],
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
                np.arange(before[kind], len(index)),
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
                report.tally(self.settings.kinds[kind], reported)
                report.match_seconds += time.perf_counter() - started
                yield Reported(self.settings.kinds[kind], index, reported)
                started = time.perf_counter()
            report.match_seconds += time.perf_counter() - started

    def _count(
        self,
        indexes: dict[str, LocalIndex],
        routers: dict[str, Router],
        before: dict[str, int],
        now: int,
        report: Report,
    ) -> None:
        """What the batch made this shard do."""
        for kind, router in routers.items():
            ended, counts = indexes[kind].ended(), report.counts[kind]
            counts.controls = len(indexes[kind]) - before[kind] + len(ended)
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


def _replace(indexes: dict[str, LocalIndex], at_once: Sequence[Placed]) -> bool:
    """Whether ids of subscriptions that looked back were in use before, in this batch."""
    if not at_once:
        return False
    ended = [index.id_hashes(index.ended()) for index in indexes.values()]
    return any(
        np.isin(_hashes(some.held_in), found).any() for some, *_ in at_once for found in ended
    )


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
