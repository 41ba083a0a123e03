"""The sink on the driver: after each batch, make it visible and decide what the next one does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame

from nearcast.engine import faults
from nearcast.engine.files import run_id
from nearcast.engine.moves.control import Controls
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.answers import answers_name, write_answers
from nearcast.engine.output.archiving import open_archive
from nearcast.engine.output.batch_files import commit
from nearcast.engine.output.reports import BatchRecord, Reports
from nearcast.engine.output.sinks import Delivery, Shown
from nearcast.engine.output.sinks.files import is_told
from nearcast.engine.route.mail import Mail
from nearcast.engine.shard.manifests import held_after, manifests_after
from nearcast.engine.shard.report import Report, costs_of, parts_of
from nearcast.engine.upkeep import Upkeep
from nearcast.wire import told
from nearcast.wire.explained import explained
from nearcast.wire.held import say_held

OnBatch = Callable[[BatchRecord], None]


class Sink:
    """What `foreachBatch` calls. Calling it again with the same batch changes nothing."""

    def __init__(
        self,
        settings: Settings,
        checkpoint: Path,
        out: Path,
        on_batch: OnBatch | None = None,
        others: Sequence[Delivery] = (),
    ) -> None:
        """`others` are given each batch when it is whole in `out`."""
        self.out, self.checkpoint = out, checkpoint
        self.archive = open_archive(settings, checkpoint)
        self.controls = Controls(checkpoint, settings)
        self.reports = Reports(checkpoint)
        self.mail = Mail(Path(settings.mail)) if settings.mail else None
        self.on_batch, self.others = on_batch, others
        self._run = run_id(checkpoint)
        self._remembers = settings.manifests == "files"
        self._holds = self._remembers and settings.stores and settings.order == "arrival"
        self._upkeep = Upkeep(settings, checkpoint, out, self._run)
        self._last = time.perf_counter()

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Collecting the reports is what runs the batch."""
        rows = frame.collect()
        reports = [msgspec.msgpack.decode(bytes(r.report), type=Report) for r in rows]
        reports.sort(key=lambda r: r.shard)
        faults.reach("sink-begin", batch)
        self._show(batch, reports)
        faults.reach("sink-visible", batch)
        if self.others:
            shown = self._shown(batch, reports)
            for other in self.others:
                other.deliver(shown)
            faults.reach("sink-delivered", batch)
        if self.archive:
            self.archive.commit(batch, [part for r in reports for part in r.archived])
            faults.reach("sink-archived", batch)
            self.archive.merge()
        now = time.perf_counter()
        record = BatchRecord(batch, now - self._last, reports)
        if self._remembers:  # a shard without events has said nothing
            record.manifests = manifests_after(self.checkpoint, batch - 1)
            record.manifests |= {r.shard: r.manifest for r in reports}
        self._last = now
        exports = [e for r in reports for e in r.exports]
        surveys = [s for r in reports for s in r.surveys]
        counts = {k: [r.counts[k] for r in reports] for k in (reports[0].counts if reports else ())}
        firsts = [r.firsts for r in reports if r.firsts]
        reach = {k: max(r.reach.get(k, 0) for r in reports) for r in reports for k in r.reach}
        parts = parts_of(reports)
        costs = costs_of(reports)
        loads = record.loads()
        self.controls.decide(batch, exports, loads, surveys, costs, counts, reach, firsts, parts)
        self.controls.balancer.write_log(batch, self.out)
        faults.reach("sink-controlled", batch)
        self.reports.add(record)
        if self._holds:
            say_held(self.out, held_after(self._run, batch, record.manifests))
        if self.mail:
            self.mail.clear(batch)
        if self.on_batch:
            self.on_batch(record)
        self._upkeep.after(batch)
        for other in self.others:
            other.after(batch)

    def _show(self, batch: int, reports: list[Report]) -> None:
        """Make the results of a batch visible, all at once, and say so.

        What readers may have seen is never replaced, so that the cursor of a line stays what it is:
        in a repeated batch the lines of one post may come in another order, if an index was built
        anew meanwhile.
        """
        files = {name: path for r in reports for name, path in r.files.items()}
        if is_told(self.out, self._run, batch):
            for temporary in files.values():
                Path(temporary).unlink(missing_ok=True)
            return
        commit(self.out, files)
        names = [r.answers for r in reports if r.answers]
        write_answers(self.controls.settings, self.checkpoint, self.out, batch, names)
        faults.reach("sink-renamed", batch)
        with explained(self.out):
            told.say(self.out, told.Visible(self._run, batch))

    def _shown(self, batch: int, reports: list[Report]) -> Shown:
        """What other sinks are given; reports of a repeated batch name the same files."""
        names = [name for r in reports for name in r.files]
        told_of = [n for n in names if n.startswith("notifications/")]
        if any(r.answers for r in reports):
            told_of.append(answers_name(batch, self.controls.settings.format))
        rejected = [n for n in names if n.startswith("rejected/")]
        return Shown(batch, self.out, told_of, rejected)
