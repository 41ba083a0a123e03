"""The engine: settings and a Spark session in, running queries out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from nearcast.engine import jvm
from nearcast.engine import session as sessions
from nearcast.engine.ledger import Ledger
from nearcast.engine.live import Tailer
from nearcast.engine.query import finish, stop
from nearcast.engine.run import Job, Run
from nearcast.engine.settings import Settings, check_bound
from nearcast.engine.sink import OnBatch
from nearcast.engine.source import Feed
from nearcast.engine.warm import is_warm, warm
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.routing.balance import Balance
from nearcast.wire.logs import find_logs, open_log
from nearcast.wire.plan import Planner

BATCH_EVENTS = 500_000


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
        warmup: int = 0,
        plan: dict[str, float] | None = None,  # parameters of a strategy's plan
        balance: str | dict[str, Any] = "off",  # a mode, or settings as [balance] of a config has
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
            "warmup": warmup,
            "plan": plan or {},
            "balance": Balance.from_json(
                {"mode": balance} if isinstance(balance, str) else balance
            ),
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
            if is_warm(Settings(**self._settings)):
                sessions.wake(self._spark)
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
        out = Path(out)
        folder = Path(checkpoint) if checkpoint is not None else out / "_checkpoint"
        settings = Settings(**self._settings, order="time")
        job = Job(settings, folder, out, keep=checkpoint is not None)
        spark = self.spark
        total, planned = self._plan(found, folder, batch_events, spark)
        if on_plan:
            on_plan(total, planned)
        _prepare_machine(settings, spark)
        if planned:
            query = job.start(spark, on_batch=on_batch)
            try:
                finish(query)
            finally:
                stop(query)
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
        job = Job(Settings(**self._settings, order="arrival"), folder, out, keep=True)
        spark = self.spark
        _prepare_machine(job.settings, spark)
        query = job.start(spark, trigger=trigger, on_batch=on_batch, events=events)
        return Run(job, spark, query)


def _prepare_machine(settings: Settings, spark: SparkSession) -> None:
    """What is made once a machine: the kernels now, a quicker start of Spark meanwhile."""
    warm(settings)
    if sessions.is_local(spark):
        jvm.make_archive()
