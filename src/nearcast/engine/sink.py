"""The sink on the driver: after each batch, make it visible and decide what the next one does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame

from nearcast.engine import faults
from nearcast.engine.mail import Mail
from nearcast.engine.moves import Controls
from nearcast.engine.reports import BatchRecord, Reports
from nearcast.engine.settings import Settings
from nearcast.engine.shard import Report, costs_of
from nearcast.engine.sinks import commit

OnBatch = Callable[[BatchRecord], None]


class Sink:
    """What `foreachBatch` calls. Calling it again with the same batch changes nothing."""

    def __init__(
        self, settings: Settings, checkpoint: Path, out: Path, on_batch: OnBatch | None = None
    ) -> None:
        self.out = out
        self.controls = Controls(checkpoint, settings)
        self.reports = Reports(checkpoint)
        self.mail = Mail(Path(settings.mail)) if settings.mail else None
        self.on_batch = on_batch
        self._last = time.perf_counter()

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Collecting the reports is what runs the batch."""
        rows = frame.collect()
        reports = [msgspec.msgpack.decode(bytes(r.report), type=Report) for r in rows]
        reports.sort(key=lambda r: r.shard)
        faults.reach("sink-begin", batch)
        for report in reports:
            commit(self.out, report.files)
        faults.reach("sink-renamed", batch)
        now = time.perf_counter()
        record = BatchRecord(batch, now - self._last, reports)
        self._last = now
        exports = [e for r in reports for e in r.exports]
        surveys = [s for r in reports for s in r.surveys]
        counts = {k: [r.counts[k] for r in reports] for k in (reports[0].counts if reports else ())}
        self.controls.decide(batch, exports, record.loads(), surveys, costs_of(reports), counts)
        self.controls.balancer.write_log(batch, self.out)
        faults.reach("sink-controlled", batch)
        self.reports.add(record)
        if self.mail:
            self.mail.clear(batch)
        if self.on_batch:
            self.on_batch(record)
