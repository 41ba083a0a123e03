"""The engine's commands as a person runs them: progress on a terminal, silence in a pipe."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from nearcast.engine.engine import Engine
from nearcast.engine.options.config import FolderSource, SparkSource, load_config
from nearcast.engine.options.run_options import RunOptions
from nearcast.engine.output.reports import BatchRecord


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


def run(path: str, started: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """`nearcast run`: until it is stopped by SIGINT or SIGTERM.

    `started` is called when it reads events.
    """
    config = load_config(path)
    logging.basicConfig(format="nearcast: %(message)s", stream=sys.stderr)
    logging.getLogger("nearcast").setLevel(logging.INFO)
    engine = Engine(config.options, quiet=True)
    out, sinks, show = config.out, config.sinks, _show if sys.stderr.isatty() else None
    source = config.source[0]
    if isinstance(source, SparkSource):
        reader = engine.spark.readStream.format(source.format).options(**source.options)
        if source.schema:
            reader = reader.schema(source.schema)
        stream = reader.load(source.path) if source.path else reader.load()
        running = engine.run(stream, out, config.checkpoint, on_batch=show, sinks=sinks)
    else:
        folders = [s.path for s in config.source if isinstance(s, FolderSource)]
        running = engine.tail(folders, out, config.checkpoint, on_batch=show, sinks=sinks)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    places = ", ".join([*([out] if out else []), *map(str, sinks)])
    print(f"nearcast: running; notifications go to {places}", file=sys.stderr, flush=True)
    started()
    while not stopped.is_set() and not running.wait(1):
        pass
    return running.stop()


def _show(record: BatchRecord) -> None:
    """One line per batch, on a terminal."""
    print(
        f"batch {record.batch}: {record.events:,} events, "
        f"{record.notifications:,} notifications, {record.seconds:.2f} s",
        file=sys.stderr,
    )
