"""Tailing a folder: whole new lines of its files become batches of the feed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from nearcast.engine.feed.source import Feed
from nearcast.engine.moves.control import control_path, read_control
from nearcast.engine.spark.query import RunFailed
from nearcast.model.errors import NearcastError
from nearcast.wire.logs import SUFFIXES, open_log
from nearcast.wire.plan import Planner
from nearcast.wire.split import Split

POLL_SECONDS = 0.2
_CHUNK = 1 << 26
_WAITING = 2  # batches
_logger = logging.getLogger("nearcast.live")


class Tailer:
    """Watches folders from a thread. Where it stands is written in the feed itself.

    Files of lines may grow; packed and columnar files are taken when their size has not changed
    between two looks, whole.

    What may pass (a folder that is away, a full disk) is logged when it begins and when it is over;
    the thread goes on looking. Anything else ends the thread: `failure` then holds the reason and
    `on_failure` is called.
    """

    def __init__(
        self,
        folders: list[Path],
        checkpoint: Path,
        batch_events: int,
        splits: int,
        on_failure: Callable[[], None] = lambda: None,
        kinds: Iterable[str] = (),
        first: Collection[str] = (),
    ) -> None:
        """`kinds`: as `Feed` has them; `first`: those in use from the beginning."""
        self.folders, self.checkpoint = folders, checkpoint
        self.batch_events, self.splits = batch_events, splits
        self.feed = Feed(checkpoint, kinds)
        self.failure: RunFailed | None = None
        self._on_failure = on_failure
        self._problem = ""  # what was wrong at the last look
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._next = len(self.feed)
        self.feed.cut(self._next)
        self.feed.begin_with(first)
        self._read: dict[str, int] = {}  # bytes of each file that are planned; -1: all of it
        self._lines: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        last = {s.name: s for n in range(self._next) for s in self.feed.read(n, folders)}
        for split in last.values():
            self._remember(split)

    def _remember(self, split: Split) -> None:
        """Go on behind the last split of a file."""
        if split.format == "jsonl" and split.path == split.name:
            self._read[split.name] = split.start + split.length
            self._lines[split.name] = split.first_line + _lines_in(split)
        else:
            self._read[split.name] = -1

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._done.set()
        if self._thread.ident is not None:  # it was started
            self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(POLL_SECONDS):
            try:
                if not self.behind():
                    self.poll()
                self._note("")
            except (OSError, NearcastError) as error:
                self._note(str(error))
            except Exception as error:
                self._fail(error)
                return

    def _note(self, problem: str) -> None:
        """Log a problem when it begins, and that it is over when it is."""
        if problem and problem != self._problem:
            _logger.warning("no new events are read: %s; mend it, the run waits for it", problem)
        elif self._problem and not problem:
            _logger.warning("new events are read again")
        self._problem = problem

    def _fail(self, error: Exception) -> None:
        followed = ", ".join(map(str, self.folders))
        self.failure = RunFailed(
            f"{followed}: cannot be followed any more ({type(error).__name__}: {error}); "
            "start the run again, it goes on where it stopped"
        )
        self.failure.__cause__ = error
        _logger.error("%s", self.failure, exc_info=error)
        self._on_failure()

    def behind(self) -> bool:
        """Whether batches wait already: what comes meanwhile then makes one larger batch."""
        reports = self.checkpoint / "reports"
        return (
            self._next >= _WAITING and not (reports / f"{self._next - _WAITING:012d}.json").exists()
        )

    @property
    def planned(self) -> int:
        """Batches planned so far."""
        return self._next

    def poll(self) -> None:
        """Look once, and plan what is new."""
        with self._lock:
            for path in sorted(p for folder in self.folders for p in folder.iterdir()):
                name = str(path)
                hidden = path.name.startswith((".", "_"))
                if hidden or not path.name.endswith(SUFFIXES) or self._read.get(name) == -1:
                    continue
                if path.name.endswith((".gz", ".parquet")):
                    self._whole(path)
                else:
                    self._lines_of(path)
            if self._first_results_wait():  # and no event has come
                self.feed.add_empty(self._next)
                self._next += 1

    def _first_results_wait(self) -> bool:
        """Whether new subscriptions wait for the next batch, and none is planned."""
        path = control_path(self.checkpoint, self._next)
        return path.exists() and bool(read_control(path).firsts)

    def _add(self, splits: list[Split]) -> None:
        if splits:
            self.feed.add(self._next, self.feed.with_kinds(splits))
            self._next += 1

    def _whole(self, path: Path) -> None:
        name = str(path)
        size = path.stat().st_size if path.exists() else 0
        if size == 0 or self._seen.get(name) != size:
            self._seen[name] = size
            return
        log = open_log(name, True, self.checkpoint / "spool")
        log.time[:] = 0  # a live stream is read in arrival order: nothing to sort
        log.group[:] = 0
        batches = list(
            Planner([log], self.batch_events, self.splits, self.checkpoint / "spool").batches()
        )
        batches = [self.feed.with_kinds(splits) for splits in batches]
        # The first of them last: only then do the others count, so a crash leaves all or nothing.
        try:
            for n, splits in reversed(list(enumerate(batches, self._next))):
                self.feed.add(n, splits)
        except BaseException:
            self.feed.cut(self._next)
            raise
        self._next += len(batches)
        self._read[name] = -1

    def _lines_of(self, path: Path) -> None:
        """Plan the whole lines behind what is planned already."""
        name = str(path)
        try:
            with path.open("rb") as file:
                if path.stat().st_size < self._read.get(name, 0):
                    self._give_up(name, "became shorter; put new events into a new file")
                    return
                while data := self._next_lines(file, name):
                    self._plan_lines(name, data)
        except OSError as error:
            self._give_up(name, f"cannot be read: {error.strerror}")

    def _give_up(self, name: str, reason: str) -> None:
        """Reject the rest of a file, and read no more of it."""
        _logger.warning("%s: %s", name, reason)
        self._add([Split("reject", "", name, first_line=0, reason=reason)])
        self._read[name] = -1

    def _next_lines(self, file: object, name: str) -> bytes:
        file.seek(self._read.get(name, 0))  # type: ignore[attr-defined]
        data: bytes = file.read(_CHUNK)  # type: ignore[attr-defined]
        while len(data) % _CHUNK == 0 and data and b"\n" not in data:
            more = file.read(_CHUNK)  # type: ignore[attr-defined]
            if not more:
                break
            data += more
        return data[: data.rfind(b"\n") + 1]

    def _plan_lines(self, name: str, data: bytes) -> None:
        start, line = self._read.get(name, 0), self._lines.get(name, 1)
        lines = data.count(b"\n")
        piece = max(1, min(-(-lines // self.splits), self.batch_events // self.splits or 1))
        at, splits = 0, []
        while at < len(data):
            end = at
            n = 0
            while n < piece and end < len(data):
                end = data.index(b"\n", end) + 1
                n += 1
            splits.append(Split("jsonl", name, name, start + at, end - at, line))
            at, line = end, line + n
            if len(splits) == self.splits or at == len(data):
                self._add(splits)
                splits = []
                # At once: if the next one cannot be written, this one is not planned again.
                self._read[name], self._lines[name] = start + at, line


def _lines_in(split: Split) -> int:
    """How many lines a split of a growing file holds."""
    try:
        with Path(split.path).open("rb") as file:
            file.seek(split.start)
            return file.read(split.length).count(b"\n")
    except OSError:  # the file is gone: nothing of it will need a number
        return 0
