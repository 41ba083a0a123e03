"""The engine: settings and a Spark session in, running queries out."""

from __future__ import annotations

import re
import shutil
import time
import uuid
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nearcast.engine import session as sessions
from nearcast.engine.files import write_atomic
from nearcast.engine.ledger import Ledger
from nearcast.engine.live import Tailer
from nearcast.engine.reports import BatchRecord, Reports, summarise, write_summary
from nearcast.engine.settings import Settings, check_bound
from nearcast.engine.sink import OnBatch, Sink
from nearcast.engine.sinks import forget_temporary
from nearcast.engine.source import SCHEMA, Feed, FeedSource
from nearcast.engine.steps import ENVELOPES, REPORTS, ShardProcessor, route_columns, route_feed
from nearcast.engine.warm import warm
from nearcast.index.notify import NOTIFICATIONS
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.wire.logs import find_logs, open_log
from nearcast.wire.plan import Planner

BATCH_EVENTS = 500_000
_OURS = re.compile(r"nearcast\.model\.errors\.\w+: ([^\n]+)")


class Engine:
    """Standing queries over streams of geo-tagged posts, on Spark.

    >>> engine = Engine(shards=2)
    >>> engine.replay(["events.jsonl"], out="out")["notifications"]["total"]  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        space: str = "geographic",
        shards: int = 2,
        strategies: dict[str, str] | None = None,
        bounds: tuple[float, float, float, float] | None = None,
        changes: str = "every",
        format: str = "jsonl",
        lateness_ms: int = 3_600_000,
        arena: str = "",
        master: str = "local[*]",
        spark: SparkSession | None = None,
        quiet: bool = False,
    ) -> None:
        try:
            chosen = Space(space)
        except ValueError:
            raise NearcastError(f"space: {space!r}; use geographic or planar") from None
        self._settings: dict[str, Any] = {
            "space": chosen,
            "shards": shards,
            "strategies": strategies or {},
            "bounds": bounds,
            "changes": changes,
            "format": format,
            "lateness_ms": lateness_ms,
            "arena": arena,
        }
        Settings(**self._settings)  # refuses nonsense now, not when a run starts
        self._master = master
        self._spark = spark
        self._quiet = quiet

    @property
    def spark(self) -> SparkSession:
        """The session; made when it is first needed."""
        if self._spark is None:
            self._spark = sessions.create(self._master, quiet=self._quiet)
        else:
            sessions.prepare(self._spark)
        return self._spark

    # -- whole logs --------------------------------------------------------------------------

    def replay(
        self,
        logs: Iterable[str | Path],
        out: str | Path,
        *,
        checkpoint: str | Path | None = None,
        batch_events: int = BATCH_EVENTS,
        on_batch: OnBatch | None = None,
        on_plan: Any = None,
    ) -> dict[str, Any]:
        """Run whole logs and stop; the summary, which is also written to `out/summary.json`.

        With a checkpoint it goes on where it stopped, and logs that are new to it are added.
        """
        if batch_events < 1:
            raise NearcastError(f"batch-events: {batch_events} is less than 1")
        started = time.perf_counter()
        found = find_logs([str(p) for p in logs])
        settings = Settings(**self._settings, order="time")
        out = Path(out)
        folder = Path(checkpoint) if checkpoint is not None else out / "_checkpoint"
        _prepare_out(out, keep=checkpoint is not None)
        if checkpoint is None:
            shutil.rmtree(folder, ignore_errors=True)
        check_bound(settings, folder)
        run = _run_name(folder)
        spark = self.spark
        settings = _local(settings, spark, run)
        total, planned = self._plan(found, folder, batch_events, spark)
        if on_plan:
            on_plan(total, planned)
        warm(settings)
        reports = Reports(folder)
        done = len(reports.all())
        if planned:
            forget_temporary(out)
            query = self._start_feed(spark, settings, folder, run, out, on_batch, "0 seconds")
            try:
                _finish(query)
            finally:
                _stop(query)
        records = reports.all()
        summary = summarise(records, time.perf_counter() - started, settings)
        summary["resumed_after_batches"] = done
        forget_temporary(out)
        write_summary(out, summary)
        shutil.rmtree(settings.arena_root() / run, ignore_errors=True)
        if checkpoint is None:
            shutil.rmtree(folder, ignore_errors=True)
        return summary

    def plan(
        self,
        logs: Iterable[str | Path],
        checkpoint: str | Path,
        *,
        batch_events: int = BATCH_EVENTS,
    ) -> int:
        """Plan logs into a checkpoint without running them; how many batches there are now.

        A later `replay` with that checkpoint runs them, logs planned first coming first.
        """
        found = find_logs([str(p) for p in logs])
        folder = Path(checkpoint)
        check_bound(Settings(**self._settings, order="time"), folder)
        return self._plan(found, folder, batch_events, self.spark)[1]

    def _plan(
        self, found: list[tuple[str, bool]], folder: Path, batch_events: int, spark: SparkSession
    ) -> tuple[int, int]:
        """Plan the logs that the checkpoint does not know; (events, batches) planned in all."""
        ledger = Ledger(folder)
        fresh = ledger.fresh([name for name, _ in found])
        feed = Feed(folder)
        lenient = dict(found)
        spool = folder / "spool"
        logs = [open_log(name, lenient[name], spool) for name in fresh]
        splits = max(int(spark.sparkContext.defaultParallelism), 1)
        # A crash while planning leaves batches without a ledger entry: they are planned again.
        first = ledger.batches
        feed.cut(first)
        for n, batch in enumerate(Planner(logs, batch_events, splits, spool).batches(), first):
            feed.add(n, batch)
            first = n + 1
        ledger.add(fresh, first, ledger.events + sum(len(log) for log in logs))
        return ledger.events, first

    # -- live streams ------------------------------------------------------------------------

    def run(
        self,
        events: DataFrame,
        out: str | Path,
        checkpoint: str | Path,
        *,
        trigger: str = "1 second",
        on_batch: OnBatch | None = None,
    ) -> Run:
        """Run a streaming DataFrame with the columns of events (or one `value` a row, as Kafka
        gives it) until stopped. Events are handled in the order of their partitions' rows."""
        if not events.isStreaming:
            raise NearcastError("run: the DataFrame is no stream; use spark.readStream, or replay")
        return self._live(Path(out), Path(checkpoint), trigger, on_batch, events)

    def tail(
        self,
        folders: str | Path | list[str],
        out: str | Path,
        checkpoint: str | Path,
        *,
        trigger: str = "1 second",
        batch_events: int = BATCH_EVENTS,
        on_batch: OnBatch | None = None,
    ) -> Run:
        """Run the files of one or more folders as they appear and grow, until stopped."""
        # Resolved: the feed knows files by their paths, and must know them again after a restart.
        watched = [Path(f).resolve() for f in (folders if isinstance(folders, list) else [folders])]
        for folder in watched:
            if not folder.is_dir():
                raise NearcastError(f"{folder}: there is no such folder")
        run = self._live(Path(out), Path(checkpoint), trigger, on_batch, None)
        splits = max(int(self.spark.sparkContext.defaultParallelism), 1)
        run.tailer = Tailer(watched, Path(checkpoint), batch_events, splits)
        run.tailer.start()
        return run

    def _live(
        self,
        out: Path,
        folder: Path,
        trigger: str,
        on_batch: OnBatch | None,
        events: DataFrame | None,
    ) -> Run:
        settings = Settings(**self._settings, order="arrival")
        _prepare_out(out, keep=True)
        check_bound(settings, folder)
        run = _run_name(folder)
        spark = self.spark
        settings = _local(settings, spark, run)
        warm(settings)
        forget_temporary(out)
        if events is None:
            query = self._start_feed(spark, settings, folder, run, out, on_batch, trigger)
        else:
            keys = sessions.shard_keys(settings.shards)
            routed = events.mapInArrow(
                route_columns(settings.to_json(), str(folder.resolve()), keys), ENVELOPES
            )
            query = self._start(spark, routed, keys, settings, folder, run, out, on_batch, trigger)
        return Run(query, spark, settings, folder, out)

    def _start_feed(
        self,
        spark: SparkSession,
        settings: Settings,
        folder: Path,
        run: str,
        out: Path,
        on_batch: OnBatch | None,
        trigger: str,
    ) -> StreamingQuery:
        spark.dataSource.register(FeedSource)
        keys = sessions.shard_keys(settings.shards)
        here = str(folder.resolve())
        stream = spark.readStream.format("nearcast-feed").schema(SCHEMA)
        routed = stream.option("checkpoint", here).load()
        routed = routed.mapInArrow(route_feed(settings.to_json(), here, keys), ENVELOPES)
        return self._start(spark, routed, keys, settings, folder, run, out, on_batch, trigger)

    def _start(
        self,
        spark: SparkSession,
        routed: DataFrame,
        keys: list[int],
        settings: Settings,
        folder: Path,
        run: str,
        out: Path,
        on_batch: OnBatch | None,
        trigger: str,
    ) -> StreamingQuery:
        spark.conf.set("spark.sql.shuffle.partitions", str(settings.shards))
        processor = ShardProcessor(
            settings.to_json(),
            keys,
            checkpoint=str(folder.resolve()),
            run=run,
            out=str(out.resolve()),
        )
        reports = routed.groupBy("shard").transformWithStateInPandas(
            processor, REPORTS, "append", "none"
        )
        return (
            reports.writeStream.foreachBatch(Sink(settings, folder, out, on_batch))
            .option("checkpointLocation", str(folder.resolve() / "spark"))
            .outputMode("append")
            .trigger(processingTime=trigger)
            .start()
        )


class Run:
    """A live run. Notifications are files in `out`, and a streaming DataFrame over them."""

    def __init__(
        self,
        query: StreamingQuery,
        spark: SparkSession,
        settings: Settings,
        folder: Path,
        out: Path,
    ) -> None:
        self.query, self.settings, self.out = query, settings, out
        self.tailer: Tailer | None = None
        self._spark, self._folder = spark, folder
        self._started = time.perf_counter()

    @property
    def notifications(self) -> DataFrame:
        """A streaming DataFrame of every notification, each exactly once."""
        folder = self.out / "notifications"
        folder.mkdir(parents=True, exist_ok=True)
        fields = {"string": "string", "int64": "long", "double": "double"}
        schema = ", ".join(f"{f.name} {fields[str(f.type)]}" for f in NOTIFICATIONS)
        reader = self._spark.readStream.schema(schema)
        format_ = "json" if self.settings.format == "jsonl" else "parquet"
        return reader.format(format_).load(str(folder.resolve()))

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the run ends (True) or so many seconds have passed (False)."""
        try:
            if seconds is None:
                self.query.awaitTermination()
                return True
            return bool(self.query.awaitTermination(seconds))  # type: ignore[arg-type]
        except StreamingQueryException as error:
            raise explained(error) from error

    def drain(self) -> None:
        """Wait until everything that has arrived so far is processed."""
        if self.tailer:
            self.tailer.poll()
        try:
            self.query.processAllAvailable()
        except StreamingQueryException as error:
            raise explained(error) from error

    def stop(self) -> dict[str, Any]:
        """Stop; the summary, which is also written. The same call again later goes on from here."""
        if self.tailer:
            self.tailer.stop()
        _stop(self.query)
        records: list[BatchRecord] = Reports(self._folder).all()
        seconds = time.perf_counter() - self._started
        summary = summarise(records, seconds, self.settings)
        write_summary(self.out, summary)
        return summary


def _local(settings: Settings, spark: SparkSession, run: str) -> Settings:
    """On one machine, let objects go by reference."""
    if not str(spark.sparkContext.master).startswith("local"):
        return settings
    return replace(settings, mail=str(settings.arena_root() / run / "mail"))


def _run_name(folder: Path) -> str:
    """A name for the arenas of a checkpoint, the same in every start from it."""
    path = folder / "run"
    if not path.exists() or not path.read_text().strip():
        write_atomic(path, uuid.uuid4().hex.encode())
    return path.read_text().strip()


def _prepare_out(out: Path, keep: bool) -> None:
    """A folder for results. Without a checkpoint an older run's results there are replaced."""
    if out.exists() and not out.is_dir():
        raise NearcastError(f"{out}: is a file; --out needs a folder")
    try:
        (out / "notifications").mkdir(parents=True, exist_ok=True)
        (out / "rejected").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NearcastError(f"{out}: cannot be written ({error.strerror})") from error
    if not keep:
        for folder in ("notifications", "rejected"):
            for path in (out / folder).glob("b????????-s????.*"):
                path.unlink()
        (out / "summary.json").unlink(missing_ok=True)


def _finish(query: StreamingQuery) -> None:
    try:
        query.processAllAvailable()
        error = query.exception()
    except StreamingQueryException as caught:
        error = caught
    if error is not None:
        raise explained(error) from error


def _stop(query: StreamingQuery) -> None:
    if query.isActive:
        query.stop()


class RunFailed(NearcastError):
    """A run that broke off for a reason outside the command's arguments and input."""

    exit_status = 1


def explained(error: Exception) -> NearcastError:
    """What went wrong in a query, as one line: our own words if there are any in it."""
    text = str(error)
    ours = _OURS.findall(text)
    if ours:
        return RunFailed(ours[-1].strip())
    lines = [line for line in text.splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"^\w[\w.]*(Error|Exception): ", line.strip())]
    return RunFailed(f"the run failed: {(python or lines or ['unknown'])[-1].strip()}")
