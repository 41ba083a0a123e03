"""What a batch asks of the past on one shard: asks, and subscriptions with `last`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine import faults
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.answers import write_parts
from nearcast.engine.shard.events import Events, Ordered
from nearcast.engine.shard.objects import Past, archived_objects, refused, rejects
from nearcast.engine.shard.report import Report
from nearcast.engine.shard.state import Manifest
from nearcast.engine.shard.views import view_of
from nearcast.engine.shard.waiting import (
    Waiting,
    reported_at_once,
    set_aside,
    wait,
    write_firsts,
)
from nearcast.kinds.firsts import waits
from nearcast.objects.base import ObjectStore
from nearcast.routing import Router
from nearcast.wire.notifications import Reported
from nearcast.wire.tables import REJECTS, empty, numbers

Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)


class _Looking(Protocol[Found_co]):
    """How objects of the past are found: for asks, and for new subscriptions."""

    def search(
        self, store: ObjectStore, table: pa.RecordBatch, before: NDArray[np.int64], /, shards: int
    ) -> Sequence[Found_co]: ...

    def places(self, table: pa.RecordBatch, /) -> NDArray[np.float64] | None: ...


class LookingBack:
    """What one batch asks of the objects before it, on one shard."""

    def __init__(
        self,
        settings: Settings,
        checkpoint: Path,
        manifest: Manifest,
        events: Events,
        report: Report,
    ) -> None:
        self.settings, self.checkpoint = settings, checkpoint
        self.manifest, self.events, self.report = manifest, events, report

    def ask(self, past: Past | None, own: pa.RecordBatch) -> pa.RecordBatch:
        """Find this shard's parts of answers; `own`: the objects of the batch that it stores.

        REJECTS of asks that reach back too far, on shard 0.
        """
        events, report = self.events, self.report
        if not events.asks:
            return empty(REJECTS)
        accepted, parts = {}, {}
        bad_ones: list[dict[str, Any]] = []
        for kind, asks in events.asks.items():
            beyond, bad = self._beyond(asks, "end", bad_ones)
            if bad.all():
                continue
            kept = np.flatnonzero(~bad)
            accepted[kind] = asks.take(pa.array(kept))
            answers = self.settings.kinds[kind].answers
            assert answers is not None
            periods = numbers(accepted[kind]["end"]), numbers(accepted[kind]["time"])
            parts[kind] = self._parts(
                past, own, answers, accepted[kind], periods, events.before[kind][kept], beyond[kept]
            )
        if accepted:
            report.answers = write_parts(
                self.checkpoint, report.batch, report.shard, accepted, parts
            )
        if report.shard == 0:
            for kind, asks in accepted.items():
                report.notifications[f"{kind}.answer"] = asks.num_rows
        return self._rejected(bad_ones)

    def _beyond(
        self, table: pa.RecordBatch, start: str, rejected: list[dict[str, Any]]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which rows reach back beyond what is retained, and which of these are refused.

        `start`: the column of the time up to which they need no object. `rejected` takes rejects.
        """
        retain, floor = self.settings.retain_ms, self.manifest.objects.floor
        clock = self.events.clock_of(table)
        beyond = refused(numbers(table[start]), clock, retain, floor)
        bad = np.zeros_like(beyond) if self.settings.archive else beyond
        rejected += rejects(table, bad, clock, retain, floor)
        return beyond, bad

    def _rejected(self, rows: list[dict[str, Any]]) -> pa.RecordBatch:
        """REJECTS; each shard finds the same ones, so the first reports them."""
        return pa.RecordBatch.from_pylist(rows if self.report.shard == 0 else [], schema=REJECTS)

    def _parts(
        self,
        past: Past | None,
        own: pa.RecordBatch,
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
                self.settings,
                self.report.shard,
                period,
                looking.places(some),
                self.manifest.ranked,
                own,
            )
            found = looking.search(store, some, before[older], self.settings.shards)
            parts |= zip(older.tolist(), found, strict=True)
        return [parts[row] for row in range(table.num_rows)]

    # -- subscriptions with `last` -----------------------------------------------------------

    def refuse_lasts(self) -> pa.RecordBatch:
        """Forget subscribes that reach back too far, as if they were not there.

        REJECTS of them, on shard 0. Those that see nothing do not look back.
        """
        events = self.events
        if not events.lasts:
            return empty(REJECTS)
        bad_ones: list[dict[str, Any]] = []
        gone = {}
        for kind, lasts in events.lasts.items():
            _, bad = self._beyond(lasts, "after", bad_ones)
            gone[kind] = numbers(lasts["pos"])[bad]
            kept = np.flatnonzero(~bad & (numbers(lasts["end"]) > numbers(lasts["time"])))
            events.lasts[kind] = lasts.take(pa.array(kept))
            events.lasts_before[kind] = events.lasts_before[kind][kept]
        events.without(gone)
        return self._rejected(bad_ones)

    def set_aside(
        self, ordered: dict[str, Ordered], routers: Mapping[str, Router]
    ) -> dict[str, Waiting]:
        """Take subscriptions that wait for their first results out of `ordered`."""
        waiting = {}
        for kind, lasts in self.events.lasts.items():
            if waits(self.settings.kinds[kind]):
                ordered[kind], aside = set_aside(ordered[kind], numbers(lasts["pos"]))
                if aside is not None:
                    view = view_of(aside, routers[kind], self.report.shard)
                    waiting[kind] = wait(view, self.events)
        return waiting

    def look_back(
        self, past: Past | None, own: pa.RecordBatch, waiting: dict[str, Waiting]
    ) -> list[tuple[Reported, NDArray[np.int64], NDArray[np.int64]]]:
        """Search this shard's objects for new subscriptions; what is reported at once.

        With each change come its place among the objects of the batch, and when it is reported.
        """
        events, report = self.events, self.report
        at_once, pos, parts = [], {}, {}
        for kind, lasts in events.lasts.items():
            if not lasts.num_rows:
                continue
            definition = self.settings.kinds[kind]
            looking = definition.firsts
            assert looking is not None
            beyond, _ = self._beyond(lasts, "after", [])
            periods = numbers(lasts["after"]), numbers(lasts["end"]) - 1
            found = self._parts(
                past, own, looking, lasts, periods, events.lasts_before[kind], beyond
            )
            if looking.at_once:
                places = events.places_of(lasts)
                at_once.append(
                    reported_at_once(definition, lasts, found, places, events.clock_of(lasts))
                )
            else:
                pos[kind], parts[kind] = numbers(lasts["pos"]).tolist(), found
        if pos:
            report.firsts = write_firsts(
                self.checkpoint, report.batch, report.shard, pos, parts, waiting
            )
        faults.reach("shard-looked-back", report.batch)
        return at_once
