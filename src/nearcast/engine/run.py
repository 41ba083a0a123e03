"""One run: settings, a checkpoint and a folder of results, and a live run's handle."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nearcast.engine.feed.places import correct_spark_paths
from nearcast.engine.feed.tailer import Tailer
from nearcast.engine.files import run_id
from nearcast.engine.moves.balancer import LOG, Balancer
from nearcast.engine.operations.in_use import InUse
from nearcast.engine.operations.server import OperationsServer
from nearcast.engine.options.fitted import copied
from nearcast.engine.options.settings import Settings, check_bound
from nearcast.engine.output.batch_files import forget_temporary
from nearcast.engine.output.commit import OnBatch, Sink
from nearcast.engine.output.picture import write_picture
from nearcast.engine.output.reports import Reports, loads_by_batch, summarise, write_summary
from nearcast.engine.output.rolling import check_run
from nearcast.engine.output.sinks import Delivery, OfRun, SinkOf
from nearcast.engine.output.sinks.spool import Spool
from nearcast.engine.spark.query import stream
from nearcast.engine.spark.restarting import RESTARTS, RestartingQuery
from nearcast.engine.spark.session import is_local, shard_keys
from nearcast.engine.spark.steps import ShardProcessor, route_columns, route_feed, shard_step
from nearcast.model.errors import NearcastError
from nearcast.wire.durable import make_folder
from nearcast.wire.kafka import Connections
from nearcast.wire.notifications import answers_schema, notifications_schema
from nearcast.wire.told import VISIBLE


class Job:
    """What a run reads, keeps and writes. Making one checks it all before Spark starts."""

    def __init__(
        self,
        settings: Settings,
        checkpoint: Path,
        out: Path | None,
        keep: bool,
        sinks: Sequence[SinkOf] = (),
    ) -> None:
        """Without `keep`, what an older run left in both folders is replaced.

        `sinks` get the results besides; without `out` only these, from a folder of the checkpoint.
        """
        self.spooled = out is None
        self.checkpoint, self.out = checkpoint, out or checkpoint / "out"
        if not self.spooled:
            _prepare_out(self.out, keep)
        if not keep:
            shutil.rmtree(checkpoint, ignore_errors=True)
        check_bound(settings, checkpoint)
        if self.spooled:
            _prepare_out(self.out, keep)
        self._sinks, self._open = sinks, list[Delivery]()
        self.settings = replace(settings, idf=copied(settings.idf, checkpoint))
        self.name = _run_name(checkpoint)
        if settings.keep:
            check_run(self.out, run_id(checkpoint))
        self.reports = Reports(checkpoint)
        before = self.reports.totals()
        self.done, self._read_before = before.batches, before.read  # of earlier calls

    def open_sinks(self) -> None:
        """Begin to deliver; what cannot work is refused. The checkpoint must be in nobody's use:
        a sink may take over from another driver."""
        self.close()
        of = OfRun(self.settings, self.checkpoint, run_id(self.checkpoint))
        for sink in self._sinks:
            self._open.append(sink.open(of))
        if self.spooled:
            self._open.append(Spool(self.out))

    def close(self) -> None:
        """Let the sinks go; the query must have ended."""
        while self._open:
            self._open.pop().close()

    def start(
        self,
        spark: SparkSession,
        *,
        trigger: str = "0 seconds",
        on_batch: OnBatch | None = None,
        events: DataFrame | None = None,
        connections: Connections = MappingProxyType({}),
    ) -> RestartingQuery:
        """Start its query over `events`, or over the feed of the checkpoint, whose topics of Kafka
        are reached by `connections`."""
        start = partial(self._start, spark, trigger, on_batch, events, dict(connections))
        # A local master has no executors that could die without the driver.
        restarts = 0 if is_local(spark) else RESTARTS
        return RestartingQuery(start, self.reports.count, restarts)

    def _start(
        self,
        spark: SparkSession,
        trigger: str,
        on_batch: OnBatch | None,
        events: DataFrame | None,
        connections: Connections,
    ) -> StreamingQuery:
        forget_temporary(self.out)
        if not self._open:
            self.open_sinks()
        correct_spark_paths(self.checkpoint)
        settings = self.settings
        if is_local(spark):  # objects go by reference
            settings = replace(settings, mail=str(self.arenas() / "mail"))
        keys = shard_keys(settings.shards)
        here = str(self.checkpoint.resolve())
        if events is None:
            route = route_feed(settings.to_json(), here, keys, connections)
        else:
            route = route_columns(settings.to_json(), here, keys)
        step = shard_step if settings.manifests == "files" else ShardProcessor
        shard = step(
            settings.to_json(), keys, checkpoint=here, run=self.name, out=str(self.out.resolve())
        )
        return stream(
            spark,
            self.checkpoint,
            route,
            shard,
            Sink(settings, self.checkpoint, self.out, on_batch, self._open),
            shards=settings.shards,
            trigger=trigger,
            events=events,
        )

    def arenas(self) -> Path:
        """The folder of its indexes on this machine."""
        return self.settings.arena_root() / self.name

    def summarise(self, seconds: float) -> dict[str, Any]:
        """The summary, which is also written to `out/summary.json`."""
        records = self.reports.all()
        looks = Balancer(self.checkpoint, self.settings.balance).looks()
        adjustments = [look for look in looks if look.changes]
        folded = self.reports.folded()
        summary = summarise(
            records, seconds, self.settings, looks, self.done, folded, self._read_before
        )
        forget_temporary(self.out)
        if adjustments:
            loads = loads_by_batch(records, adjustments[-1].kind)
            threshold = self.settings.balance.threshold
            write_picture(self.out / "balance.svg", adjustments, loads, threshold)
        write_summary(self.out, summary)
        return summary


class Run:
    """A live run. Notifications are files in `out`, and a streaming DataFrame over them."""

    def __init__(
        self, job: Job, spark: SparkSession, query: RestartingQuery, in_use: InUse
    ) -> None:
        self.restarting, self.settings, self.out = query, job.settings, job.out
        self.spooled = job.spooled  # the folder `out` is the checkpoint's, and soon emptied
        query.watch()
        self.tailer: Tailer | None = None
        self.server: OperationsServer | None = None  # of metrics
        self._job, self._spark = job, spark
        self._in_use = in_use
        self._started = time.perf_counter()

    @property
    def query(self) -> StreamingQuery:
        """Spark's query; another one after a restart."""
        return self.restarting.now

    @property
    def notifications(self) -> DataFrame:
        """A streaming DataFrame of every notification, each exactly once."""
        if self.spooled:
            raise NearcastError("notifications: this run has no sink of type files; give it one")
        if self.settings.keep:
            raise NearcastError(
                "notifications: Spark cannot follow files that are rolled into segments; leave out "
                "keep, or read them with nearcast.wire.told"
            )
        folder = self.out / "notifications"
        folder.mkdir(parents=True, exist_ok=True)
        fields = {"string": "string", "int64": "long", "double": "double"}
        columns = list(notifications_schema(self.settings.kinds))
        if self.settings.stores:
            names = {f.name for f in columns}
            columns += [f for f in answers_schema(self.settings.kinds) if f.name not in names]
        schema = ", ".join(f"{f.name} {fields[str(f.type)]}" for f in columns)
        reader = self._spark.readStream.schema(schema)
        format_ = "json" if self.settings.format == "jsonl" else "parquet"
        return reader.format(format_).load(str(folder.resolve()))

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the run ends (True) or so many seconds have passed (False)."""
        ended = self.restarting.wait(seconds)
        self._check_tailer()
        return ended

    def _check_tailer(self) -> None:
        """Raise if new events are no longer read; the query has been stopped then."""
        if self.tailer and self.tailer.failure:
            raise self.tailer.failure

    def drain(self) -> None:
        """Wait until everything that has arrived so far is processed."""
        self._check_tailer()
        planned = -1
        if self.tailer:
            self.tailer.poll()
        self.restarting.finish()
        # Again for first results that wait, and for what one batch could not hold.
        while self.tailer and self.tailer.planned > planned:
            planned = self.tailer.planned
            self.tailer.poll()
            self.restarting.finish()

    def finish(self) -> None:
        """Read no more, and end what has begun: all batches that are planned, or Spark's own."""
        if self.tailer:
            self.tailer.stop()
            self.restarting.finish()
            return
        done = self._job.reports.count()
        while self._job.reports.count() == done and self.query.status["isTriggerActive"]:
            if self.restarting.wait(0.1):
                return

    def trouble(self) -> str:
        """Why the run cannot go on, or nothing; for `/healthz`."""
        if self.tailer and self.tailer.failure:
            return str(self.tailer.failure)
        return "" if self.query.isActive else "the run has ended"

    def lag_bytes(self) -> float | None:
        """How many bytes of input no batch has yet, where that is known."""
        if self.tailer is None or self.tailer.topics:  # offsets are no bytes
            return None
        return self.tailer.lag_bytes()

    def stop(self) -> dict[str, Any]:
        """Stop; the summary, which is also written. The same call again later goes on from here.

        Raises if the run had ended by itself because new events could not be read any more.
        """
        if self.tailer:
            self.tailer.stop()
        self.restarting.stop()
        if self.server:
            self.server.close()
        self._job.close()
        self._in_use.release()
        summary = self._job.summarise(time.perf_counter() - self._started)
        self._check_tailer()
        return summary


def _run_name(folder: Path) -> str:
    """A name for the arenas of a checkpoint, the same in every start from it."""
    # Of the place too: a copy that runs at the same time has arenas of its own.
    name = f"{run_id(folder)} {folder.resolve()}"
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _prepare_out(out: Path, keep: bool) -> None:
    """A folder for results. Without a checkpoint an older run's results there are replaced."""
    if out.exists() and not out.is_dir():
        raise NearcastError(f"{out}: is a file; --out needs a folder")
    try:
        make_folder(out / "notifications")
        make_folder(out / "rejected")
    except OSError as error:
        raise NearcastError(f"{out}: cannot be written ({error.strerror})") from error
    if not keep:
        for folder in ("notifications", "rejected"):
            for pattern in ("b????????-s????.*", "b????????-answers.*"):
                for path in (out / folder).glob(pattern):
                    path.unlink()
        for name in ("summary.json", "balance.svg", LOG, VISIBLE):
            (out / name).unlink(missing_ok=True)
