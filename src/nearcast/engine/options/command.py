"""The engine's commands as a person runs them: progress on a terminal, silence in a pipe."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from nearcast.engine.engine import Engine
from nearcast.engine.operations.json_log import JsonLines, log_batch
from nearcast.engine.options.config import SparkSource, load_config
from nearcast.engine.options.run_options import RunOptions
from nearcast.engine.output.commit import OnBatch
from nearcast.engine.output.reports import BatchRecord

_logger = logging.getLogger("nearcast.run")


def replay(
    events: list[str], out: str, checkpoint: str | None, options: RunOptions
) -> dict[str, Any]:
    """`nearcast replay`."""
    console = Console(stderr=True)
    engine = Engine(options, quiet=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} events"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting Spark", total=1)

        def planned(total: int, _batches: int) -> None:
            progress.update(task, description="replaying", total=max(total, 1))

        def done(record: BatchRecord) -> None:
            progress.advance(task, record.events)

        summary = engine.replay(events, out, checkpoint=checkpoint, on_batch=done, on_plan=planned)
    if console.is_terminal:
        total = summary["notifications"]["total"]
        console.print(
            f"{summary['events']['total']:,} events, {total:,} notifications, "
            f"{summary['rejects']:,} rejects in {summary['seconds']:.1f} s → {out}"
        )
    return summary


def run(
    path: str,
    started: Callable[[], None] = lambda: None,
    metrics: str | None = None,
    log: str = "text",
) -> dict[str, Any]:
    """`nearcast run`: until it is stopped by SIGINT or SIGTERM.

    The first of these finishes the batches that have begun; a second one stops at once. `started`
    is called when it reads events; `metrics` is an address in place of that in the file.
    """
    config = load_config(path)
    options = config.options if metrics is None else config.options.with_({"metrics": metrics})
    show = _log_to(log)
    engine = Engine(options, quiet=True)
    out, sinks = config.out, config.sinks
    source = config.sources
    if isinstance(source, SparkSource):
        reader = engine.spark.readStream.format(source.format).options(**source.options)
        if source.schema:
            reader = reader.schema(source.schema)
        stream = reader.load(source.path) if source.path else reader.load()
        running = engine.run(stream, out, config.checkpoint, on_batch=show, sinks=sinks)
    else:
        running = engine.follow(source, out, config.checkpoint, on_batch=show, sinks=sinks)
    stopped = _stop_by_signals()
    places = ", ".join([*([out] if out else []), *map(str, sinks)])
    _logger.info("running; notifications go to %s", places)
    started()
    while not stopped.is_set() and not running.wait(1):
        pass
    if stopped.is_set():
        running.finish()
    return running.stop()


def _log_to(form: str) -> OnBatch | None:
    """Log to standard error as text or JSON; what is called after each batch."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLines() if form == "json" else logging.Formatter("nearcast: %(message)s")
    )
    logging.basicConfig(handlers=[handler])
    logging.getLogger("nearcast").setLevel(logging.INFO)
    if form == "json":
        return log_batch
    return _show if sys.stderr.isatty() else None


def _stop_by_signals() -> threading.Event:
    """What SIGINT or SIGTERM sets; a second one ends this process, as a crash would."""
    stopped = threading.Event()

    def stop(number: int, _frame: object) -> None:
        if stopped.is_set():  # nothing is lost: the batch comes again
            os.write(2, b"nearcast: stopped at once; the same command goes on from here\n")
            os._exit(128 + number)
        stopped.set()
        os.write(2, b"nearcast: finishing what has begun; once more to stop at once\n")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return stopped


def _show(record: BatchRecord) -> None:
    """One line per batch, on a terminal."""
    print(
        f"batch {record.batch}: {record.events:,} events, "
        f"{record.notifications:,} notifications, {record.seconds:.2f} s",
        file=sys.stderr,
    )
