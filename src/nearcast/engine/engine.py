"""The engine: settings and a Spark session in, running queries out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from nearcast.engine.feed.ledger import Ledger
from nearcast.engine.feed.source import Feed
from nearcast.engine.feed.starting import begins_with, refuse_unread
from nearcast.engine.feed.tailer import Tailer
from nearcast.engine.feed.topics import Topics, TopicsOf
from nearcast.engine.moves.control import Controls
from nearcast.engine.operations.in_use import InUse
from nearcast.engine.operations.server import OperationsServer
from nearcast.engine.options.effects import check, check_way
from nearcast.engine.options.run_options import FOLDER, REPLAY, STREAM, RunOptions, no_effect
from nearcast.engine.options.settings import Settings, check_bound, manifests_of
from nearcast.engine.options.spans import AUTO, duration_ms
from nearcast.engine.output.commit import OnBatch
from nearcast.engine.output.reports import BatchRecord
from nearcast.engine.output.sinks import SinkOf
from nearcast.engine.run import Job, Run
from nearcast.engine.spark import jvm
from nearcast.engine.spark import session as sessions
from nearcast.engine.spark.warm import is_warm, warm
from nearcast.model.errors import NearcastError
from nearcast.wire.kafka import Connections
from nearcast.wire.logs import find_logs, open_log
from nearcast.wire.plan import Planner
from nearcast.wire.reach import reach_of


class Engine:
    """Standing queries over streams of geo-tagged posts, on Spark.

    >>> engine = Engine(shards=2)
    >>> engine.replay(["events.jsonl"], out="out")["notifications"]["total"]  # doctest: +SKIP

    Options are the fields of `RunOptions`: given as one, by name, or both (names go first).
    """

    def __init__(
        self,
        options: RunOptions | None = None,
        *,
        spark: SparkSession | None = None,
        quiet: bool = False,
        **named: Any,
    ) -> None:
        """`quiet`: what a session that this makes prints goes to a file."""
        self.options = (options or RunOptions()).with_(named)
        check(self.options)  # refuses nonsense now, not when a run starts
        if spark is not None:
            for name in ("master", "spark_conf", "quiet"):
                if name in self.options.given() or (name == "quiet" and quiet):
                    raise no_effect(name, "the given session has its own; leave one of them out")
        self._spark = spark
        self._quiet = quiet

    @property
    def spark(self) -> SparkSession:
        """The session; made when it is first needed."""
        if self._spark is None:
            self._spark = sessions.create(
                self.options.master, extra=self.options.spark_conf, quiet=self._quiet
            )
            if is_warm(Settings.of(self.options)):
                sessions.wake(self._spark)
        else:
            sessions.prepare(self._spark)
        return self._spark

    def _settings(self, options: RunOptions, order: str, folder: Path) -> Settings:
        """The settings of a run with a checkpoint."""
        if self._spark is None:
            local = options.master.startswith("local")
        else:
            local = sessions.is_local(self._spark)
        manifests = manifests_of(options.manifests, local, folder)
        return replace(Settings.of(options, order=order), manifests=manifests)

    def _options(self, way: str, **named: Any) -> RunOptions:
        """The options of one run; `named` are those that its call gave, or None."""
        given = {name: value for name, value in named.items() if value is not None}
        options = self.options.with_(given)
        check_way(options, way)
        return options

    # -- whole logs --------------------------------------------------------------------------

    def replay(
        self,
        logs: Iterable[str | Path],
        out: str | Path,
        *,
        checkpoint: str | Path | None = None,
        batch_events: int | None = None,
        on_batch: OnBatch | None = None,
        on_plan: Any = None,
    ) -> dict[str, Any]:
        """Run whole logs and stop; the summary, which is also written to `out/summary.json`.

        With a checkpoint it goes on where it stopped, and logs that are new to it are added.
        """
        options = self._options(REPLAY, batch_events=batch_events)
        started = time.perf_counter()
        found = find_logs([str(p) for p in logs])
        out = Path(out)
        folder = Path(checkpoint) if checkpoint is not None else out / "_checkpoint"
        settings = self._settings(options, "time", folder)
        job = Job(settings, folder, out, keep=checkpoint is not None)
        spark = self.spark
        try:
            total, planned = self._plan(found, folder, options.batch_events, settings)
        except NearcastError:
            if not (folder / "feed").exists():  # nothing was planned: other options may follow
                shutil.rmtree(folder)
            raise
        if options.retain in (None, AUTO):
            job.settings = replace(job.settings, retain_ms=Ledger(folder).reach)
        if on_plan:
            on_plan(total, planned)
        _prepare_machine(job.settings, spark)
        if planned:
            query = job.start(spark, on_batch=on_batch)
            try:
                query.finish()
                if self._go_on(folder, settings):
                    query.finish()
            finally:
                query.stop()
        summary = job.summarise(time.perf_counter() - started)
        shutil.rmtree(job.arenas(), ignore_errors=True)
        if checkpoint is None:
            shutil.rmtree(folder, ignore_errors=True)
        return summary

    def plan(
        self,
        logs: Iterable[str | Path],
        checkpoint: str | Path,
        *,
        batch_events: int | None = None,
    ) -> int:
        """Plan logs into a checkpoint without running them; how many batches there are now.

        A later `replay` with that checkpoint runs them, logs planned first coming first.
        """
        options = self._options(REPLAY, batch_events=batch_events)
        found = find_logs([str(p) for p in logs])
        folder = Path(checkpoint)
        settings = self._settings(options, "time", folder)
        check_bound(settings, folder)
        return self._plan(found, folder, options.batch_events, settings, whole=False)[1]

    def _plan(
        self,
        found: list[tuple[str, bool]],
        folder: Path,
        batch_events: int,
        settings: Settings,
        whole: bool = True,
    ) -> tuple[int, int]:
        """Plan the logs that the checkpoint does not know; (events, batches) planned in all.

        `whole`: no other logs come, so an option that none of these reads has no effect.
        """
        ledger = Ledger(folder)
        fresh = ledger.fresh([name for name, _ in found])
        feed = Feed(folder, settings.kinds_to_find)
        lenient = dict(found)
        spool = folder / "spool"
        logs = [open_log(name, lenient[name], spool) for name in fresh]
        splits = max(int(self.spark.sparkContext.defaultParallelism), 1)
        # A crash while planning leaves batches without a ledger entry: they are planned again.
        first = min(ledger.batches, len(feed))  # the last one may be noted and not planned
        if first == 0 and whole:
            refuse_unread(logs, settings, splits)
        feed.cut(first)
        feed.begin_with(begins_with(logs, settings, splits))
        reaches: list[Future[int]] = []
        with ThreadPoolExecutor(splits) as beside:  # what it does needs no lock of the interpreter
            for n, batch in enumerate(Planner(logs, batch_events, splits, spool).batches(), first):
                feed.add(n, feed.with_kinds(batch))
                reaches += [beside.submit(reach_of, split) for split in batch]
                first = n + 1
            reach = max((found.result() for found in reaches), default=0)
        ledger.add(fresh, first, ledger.events + sum(len(log) for log in logs), reach)
        return ledger.events, first

    def _go_on(self, folder: Path, settings: Settings) -> bool:
        """Plan a batch more if new subscriptions wait for their first results."""
        feed, ledger = Feed(folder, settings.kinds_to_find), Ledger(folder)
        batch = len(feed)
        if not Controls(folder, settings).first_results_wait(batch):
            return False
        # Noted first: a batch that runs is never planned anew (`_plan`).
        ledger.add([], batch + 1, ledger.events)
        feed.add_empty(batch)
        return True

    # -- live streams ------------------------------------------------------------------------

    def run(
        self,
        events: DataFrame,
        out: str | Path | None,
        checkpoint: str | Path,
        *,
        trigger: str | None = None,
        on_batch: OnBatch | None = None,
        sinks: Sequence[SinkOf] = (),
    ) -> Run:
        """Run a streaming DataFrame with the columns of events (or one `value` a row, as Kafka
        gives it) until stopped. Events are handled in the order of their partitions' rows.

        Results go to the folder `out`, if one is given, and to `sinks` (`nearcast.engine.output`).
        """
        if not events.isStreaming:
            raise NearcastError("run: the DataFrame is no stream; use spark.readStream, or replay")
        options = self._options(STREAM, trigger=trigger)
        return self._live(options, out, Path(checkpoint), on_batch, events, sinks)

    def tail(
        self,
        folders: str | Path | list[str],
        out: str | Path | None,
        checkpoint: str | Path,
        *,
        trigger: str | None = None,
        batch_events: int | None = None,
        on_batch: OnBatch | None = None,
        sinks: Sequence[SinkOf] = (),
    ) -> Run:
        """Run the files of one or more folders as they appear and grow, until stopped; `out` and
        `sinks` as in `run`."""
        return self.follow(
            folders if isinstance(folders, list) else [folders], out, checkpoint,
            trigger=trigger, batch_events=batch_events, on_batch=on_batch, sinks=sinks,
        )  # fmt: skip

    def follow(
        self,
        sources: Sequence[str | Path | TopicsOf],
        out: str | Path | None,
        checkpoint: str | Path,
        *,
        trigger: str | None = None,
        batch_events: int | None = None,
        on_batch: OnBatch | None = None,
        sinks: Sequence[SinkOf] = (),
    ) -> Run:
        """Run folders, and topics of Kafka, as they grow, until stopped."""
        options = self._options(FOLDER, trigger=trigger, batch_events=batch_events)
        # Resolved: the feed knows files by their paths, and must know them again after a restart.
        watched = [Path(f).resolve() for f in sources if not isinstance(f, TopicsOf)]
        topics = [s for s in sources if isinstance(s, TopicsOf)]
        connections = {topic: s.settings for s in topics for topic in s.topics}
        if len(connections) < sum(len(s.topics) for s in topics):
            raise NearcastError("a topic is named by two sources; leave it out of one")
        for folder in watched:
            if not folder.is_dir():
                raise NearcastError(f"{folder}: there is no such folder")
        done = _Done(on_batch)
        followed = [Topics(source, Path(checkpoint)) for source in topics]
        for one in followed:
            one.begin()  # what is not there is refused before Spark starts
        run = self._live(options, out, Path(checkpoint), done, None, sinks, connections)
        splits = max(int(self.spark.sparkContext.defaultParallelism), 1)
        planned = options.batch_events
        run.tailer = Tailer(
            watched, Path(checkpoint), planned, splits, run.restarting.stop,
            run.settings.kinds_to_find, topics=followed,
        )  # fmt: skip
        done.then = run.tailer.wake  # what came while the batch ran is the next one
        run.tailer.start()
        return run

    def _live(
        self,
        options: RunOptions,
        out: str | Path | None,
        folder: Path,
        on_batch: OnBatch | None,
        events: DataFrame | None,
        sinks: Sequence[SinkOf],
        connections: Connections = MappingProxyType({}),
    ) -> Run:
        if out is None and not sinks:
            raise NearcastError("nothing takes the results: give a folder or a sink")
        settings = self._settings(options, "arrival", folder)
        job = Job(settings, folder, Path(out) if out is not None else None, True, sinks)
        in_use = InUse(folder)
        trigger = f"{duration_ms(options.trigger)} milliseconds"
        done, server = _Done(on_batch), None
        try:
            if options.metrics:  # what cannot be served is refused before Spark starts
                from nearcast.engine.operations.metrics import Metrics

                metrics = Metrics(folder)
                server = OperationsServer(options.metrics, metrics)
                done.also = server
                in_use.note(server.address)
            job.open_sinks()  # neither is a sink that cannot work
            spark = self.spark
            _prepare_machine(job.settings, spark)
            query = job.start(
                spark, trigger=trigger, on_batch=done, events=events, connections=connections
            )
        except BaseException:
            if server:
                server.close()
            job.close()
            in_use.release()
            raise
        run = Run(job, spark, query, in_use)
        if server:
            run.server = server
            metrics.lag, server.trouble = run.lag_bytes, run.trouble
        return run


class _Done:
    """What is called after each batch: the caller's own, then what waits for it."""

    def __init__(self, on_batch: OnBatch | None) -> None:
        self._on_batch = on_batch
        self.also: OnBatch | None = None
        self.then: Callable[[], None] | None = None

    def __call__(self, record: BatchRecord) -> None:
        """One batch is done."""
        if self.then is not None:
            self.then()
        for call in (self.also, self._on_batch):
            if call is not None:
                call(record)


def _prepare_machine(settings: Settings, spark: SparkSession) -> None:
    """What is made once a machine: the kernels now, a quicker start of Spark meanwhile."""
    warm(settings)
    if sessions.is_local(spark):
        jvm.make_archive()
