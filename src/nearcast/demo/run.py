"""The demo as a whole: start, stream, show, stop, draw, and say what to try next."""

from __future__ import annotations

import os
import queue
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from nearcast.demo.city import City
from nearcast.demo.folder import DemoFolder
from nearcast.demo.map import write_map
from nearcast.demo.notes import in_words, some_notes
from nearcast.demo.screen import Screen, choose_screen
from nearcast.demo.talk import LOOKS_BACK_MS, answer_in, answer_in_words, latest_talk
from nearcast.demo.tally import Tally
from nearcast.demo.writer import Writer
from nearcast.engine import Engine, Run
from nearcast.engine.output.reports import BatchRecord
from nearcast.model.errors import NearcastError

SUBSCRIPTIONS = 3_000
POSTS_A_SECOND = 2_500
CHURN_A_SECOND = 20
_NOTES_OF_EACH_EVENT = 2
_LOOK_S = 0.1


def run_demo(
    seconds: float = 30,
    out: str | Path | None = None,
    shards: int = 2,
    master: str = "local[2]",
    seed: int = 1,
    quiet: bool | None = None,
    strategies: dict[str, str] | None = None,
) -> int:
    """Stream a city for `seconds`, leave a map in `out`; 0 also when Ctrl-C ended it early."""
    if not 0 < seconds <= 3_600:
        raise NearcastError(f"seconds: {seconds} is not between 0 and 3600")
    folder = DemoFolder(out)
    engine = Engine(
        shards=shards,
        strategies=strategies,
        arena=str(folder.arena.resolve()),
        master=master,
        retain=f"{2 * LOOKS_BACK_MS // 1000}s",
    )
    folder.prepare()
    console = Console()
    plural = "" if shards == 1 else "s"
    screen = choose_screen(console, f"nearcast demo: Tokyo, {shards} shard{plural}", seconds, quiet)
    show = _Show(City(seed, seconds), screen, folder)
    with screen:
        summary = _stream(engine, folder, show, seconds)
        screen.status("drawing the map …")
        write_map(folder.map, show.city, folder.notifications, summary)
        folder.tidy()
        screen.status("")
    _say_goodbye(console, folder, summary)
    return 0


class _Show:
    """Takes the reports from the engine's thread and shows them from the main one."""

    def __init__(self, city: City, screen: Screen, folder: DemoFolder) -> None:
        self.city, self.screen, self.folder = city, screen, folder
        self.tally = Tally()
        self.processed = 0
        self._records: queue.SimpleQueue[BatchRecord] = queue.SimpleQueue()

    def on_batch(self, record: BatchRecord) -> None:
        """Called by the engine; must not keep it waiting."""
        self.processed += record.events
        self._records.put(record)

    def catch_up(self) -> None:
        """Show every batch that has ended since."""
        while not self._records.empty():
            record = self._records.get()
            self.tally.add(record)
            files = [self.folder.path / name for r in record.reports for name in r.files]
            reported = [path for path in files if path.parent.name == "notifications"]
            notes = some_notes(reported, _NOTES_OF_EACH_EVENT)
            self.screen.talk(latest_talk(reported))
            self.screen.batch(record, self.tally, [in_words(n, self.city) for n in notes])


def _stream(engine: Engine, folder: DemoFolder, show: _Show, seconds: float) -> dict[str, Any]:
    """The city through the pipeline; the summary of the run."""
    screen = show.screen
    writer = Writer(
        show.city, folder.log, lambda: show.processed, rate=POSTS_A_SECOND, churn=CHURN_A_SECOND
    )
    screen.status("building the city …")
    writer.open(int(time.time() * 1000), SUBSCRIPTIONS)
    opened = writer.written
    screen.status("starting Spark …")
    _start_spark(engine, folder.spark_log)
    stop = threading.Event()
    with _ctrl_c_sets(stop, lambda: screen.status("stopping; Ctrl-C again to leave at once …")):
        screen.status("preparing the kernels …")
        run = engine.tail(
            folder.events,
            folder.path,
            folder.checkpoint,
            trigger="500 milliseconds",
            on_batch=show.on_batch,
        )
        try:
            screen.status(f"{SUBSCRIPTIONS:,} subscriptions on their way to their shards …")
            while not show.processed and not stop.is_set():
                _look(run, writer, show)
            if not stop.is_set():
                writer.start()
                screen.status("the first posts are on their way …")
            # They wait for the workers to load the kernels; the time counts after that.
            while show.processed <= opened and not stop.is_set():
                _look(run, writer, show)
            if not stop.is_set():
                screen.status("")
            began = time.monotonic()
            while (elapsed := time.monotonic() - began) < seconds and not stop.is_set():
                screen.elapsed(elapsed)
                _look(run, writer, show)
            writer.stop()
            writer.ask()
            screen.status("the last posts are on their way …")
            while show.processed < writer.written:
                _look(run, writer, show)
        finally:
            writer.stop()
            summary = run.stop()
    show.catch_up()
    return summary


def _look(run: Run, writer: Writer, show: _Show) -> None:
    """Wait a moment, show what is new, and notice if something broke."""
    try:
        ended = run.wait(_LOOK_S)
    except NearcastError as error:
        raise NearcastError(f"{error} (Spark's own words: {show.folder.spark_log})") from error
    if ended:
        raise NearcastError(f"the stream ended by itself; see {show.folder.spark_log}")
    if writer.error is not None:
        raise NearcastError(f"{show.folder.log}: {writer.error}") from writer.error
    show.catch_up()


def _start_spark(engine: Engine, log: Path) -> None:
    """Start the session from a thread.

    In the main thread Spark would take Ctrl-C for itself: its handler cancels the batch in work,
    and the run with it.
    """
    failed: list[Exception] = []

    def start() -> None:
        try:
            _ = engine.spark
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=start, daemon=True)
    with _chatter_in(log):
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK_S)
    if failed:
        reason = str(failed[0]).strip().splitlines()[:1] or [type(failed[0]).__name__]
        raise NearcastError(f"Spark did not start: {reason[0]} (its own words: {log})") from failed[
            0
        ]


@contextmanager
def _ctrl_c_sets(stop: threading.Event, say: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C ends the city in good order, the second ends the program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        say()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _chatter_in(path: Path) -> Iterator[None]:
    """What Spark starts in here writes its errors to a file: it would tear the picture.

    The JVM inherits the handle, so it goes on writing there when this process has its own back.
    """
    sys.stderr.flush()
    ours = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(ours, 2)
        os.close(ours)


def _say_goodbye(console: Console, folder: DemoFolder, summary: dict[str, Any]) -> None:
    events, reported = summary["events"], summary["notifications"]
    answer = answer_in(folder.notifications)
    kinds = {
        event: n
        for kind, counts in reported.items()
        if kind != "total"
        for event, n in counts.items()
    }
    listed = ", ".join(f"{n:,} {event}" for event, n in sorted(kinds.items()))
    here = shlex.quote(str(folder.path))
    lines = [
        f"\n{events.get('publish', 0):,} posts, {events.get('subscribe', 0):,} subscriptions, "
        f"{events.get('unsubscribe', 0):,} withdrawn, {summary['rejects']:,} rejected",
        f"{reported['total']:,} notifications ({listed or 'none'})",
        *([f"asked          {answer_in_words(answer)}"] if answer else []),
        "",
        f"map            {folder.map}   open it in a browser",
        f"events         {folder.log}",
        f"notifications  {folder.notifications}/",
        "",
        "The same log again, as fast as it goes; it reports the same:",
        f"  nearcast replay {here}/events --out replayed",
        f"  nearcast replay {here}/events --out replayed --shards 4 --strategy range=hash+inverted",
        "All that can be chosen:",
        "  nearcast strategies",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
