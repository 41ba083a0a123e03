"""Following a live stream: whole new lines of files, and new records of topics, become batches."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nearcast.engine.feed.source import Feed
from nearcast.engine.feed.topics import POLL_SECONDS as TOPIC_SECONDS
from nearcast.engine.feed.topics import Topics
from nearcast.engine.moves.control import control_path, read_control
from nearcast.engine.spark.query import RunFailed
from nearcast.model.errors import NearcastError
from nearcast.wire.logs import SUFFIXES, open_log
from nearcast.wire.plan import Planner
from nearcast.wire.split import Split
from nearcast.wire.watching import Watch

POLL_SECONDS = 0.2  # between two looks, at most, also where the system wakes for a write
_CHUNK = 1 << 26
_SMALL = 1000  # lines that are not worth a task of their own
_WAITING = 1  # batch that is planned and not done: what comes meanwhile makes the next one
_logger = logging.getLogger("nearcast.live")


@dataclass(slots=True)
class _Found:
    """Lines of growing files that no batch has yet."""

    splits: list[Split] = field(default_factory=list)
    events: int = 0
    read: dict[str, int] = field(default_factory=dict)  # bytes of each file, with these
    lines: dict[str, int] = field(default_factory=dict)

    def clear(self) -> None:
        """They are planned."""
        self.splits, self.events, self.read, self.lines = [], 0, {}, {}


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
        inotify: bool = True,
        topics: Sequence[Topics] = (),
    ) -> None:
        """`kinds`: as `Feed` has them; `inotify`: whether the system may be used to be woken;
        `topics`: what is followed besides, read before the folders."""
        self.topics = topics
        self.folders, self.checkpoint = folders, checkpoint
        self.batch_events, self.splits = batch_events, splits
        self.feed = Feed(checkpoint, kinds)
        self.failure: RunFailed | None = None
        self._on_failure = on_failure
        self._problem = ""  # what was wrong at the last look
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._watch_of = Watch(folders, inotify)
        self._packed_at = 0.0  # when packed files were looked at
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._next = len(self.feed)
        self.feed.cut(self._next)
        self._read: dict[str, int] = {}  # bytes of each file that are planned; -1: all of it
        self._lines: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        last = {s.name: s for s in self.feed.ends(folders)}
        for n in range(self.feed.first, self._next):
            last |= {s.name: s for s in self.feed.read(n, folders)}
        for split in last.values():
            self._remember(split)

    def _remember(self, split: Split) -> None:
        """Go on behind the last split of a file or partition."""
        if split.topic:
            for topics in self.topics:
                topics.remember(split)
            return
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
        self._watch_of.wake()
        if self._thread.ident is not None:  # it was started
            self._thread.join()
        self._watch_of.close()

    def wake(self) -> None:
        """Look at once: a batch is done, or something was written."""
        self._watch_of.wake()

    def _watch(self) -> None:
        while not self._done.is_set():
            try:
                if not self.behind():
                    # Packed files must not have grown between two looks, which a write of another
                    # file may wake one after the other.
                    now = time.monotonic()
                    packed = now - self._packed_at >= POLL_SECONDS
                    self._packed_at = now if packed else self._packed_at
                    self.poll(packed)
                self._note("")
            except RunFailed as error:
                self._fail(error)
                return
            except (OSError, NearcastError) as error:
                self._note(str(error))
            except Exception as error:
                self._fail(error)
                return
            self._watch_of.wait(TOPIC_SECONDS if self.topics else POLL_SECONDS)

    def _note(self, problem: str) -> None:
        """Log a problem when it begins, and that it is over when it is."""
        if problem and problem != self._problem:
            _logger.warning("no new events are read: %s; mend it, the run waits for it", problem)
        elif self._problem and not problem:
            _logger.warning("new events are read again")
        self._problem = problem

    def _fail(self, error: Exception) -> None:
        followed = ", ".join(map(str, [*self.folders, *self.topics]))
        known = isinstance(error, RunFailed)
        self.failure = (
            error
            if isinstance(error, RunFailed)
            else RunFailed(
                f"{followed}: cannot be followed any more ({type(error).__name__}: {error}); "
                "start the run again, it goes on where it stopped"
            )
        )
        if not known:
            self.failure.__cause__ = error
        _logger.error("%s", self.failure, exc_info=None if known else error)
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

    def lag_bytes(self) -> int:
        """Bytes in the folders that no batch has yet."""
        waiting = 0
        for path in (p for folder in self.folders for p in _listed(folder)):
            read = self._read.get(str(path), 0)
            if read >= 0 and path.name.endswith(SUFFIXES) and not path.name.startswith((".", "_")):
                with suppress(OSError):  # it is gone
                    waiting += max(path.stat().st_size - read, 0)
        return waiting

    def poll(self, packed: bool = True) -> None:
        """Look once, and plan what is new; `packed`: also in packed and columnar files."""
        with self._lock:
            found = _Found()
            for topics in self.topics:
                self._records_of(topics, found)
            for path in sorted(p for folder in self.folders for p in folder.iterdir()):
                name = str(path)
                hidden = path.name.startswith((".", "_"))
                if hidden or not path.name.endswith(SUFFIXES) or self._read.get(name) == -1:
                    continue
                if not path.name.endswith((".gz", ".parquet")):
                    self._lines_of(path, found)
                elif packed:
                    self._plan(found)
                    self._whole(path)
            self._plan(found)
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

    def _records_of(self, topics: Topics, found: _Found) -> None:
        """Find new records, as many as make a batch; others make the next one."""
        for split in topics.find(self.batch_events - found.events, self.splits):
            found.splits.append(split)
            found.events += split.events
        if found.events >= self.batch_events:
            self._plan(found)

    def _lines_of(self, path: Path, found: _Found) -> None:
        """Find the whole lines behind what is planned already."""
        name = str(path)
        try:
            size = path.stat().st_size
            if size == self._read.get(name, 0) and path.is_file():
                return
            with path.open("rb") as file:
                if size < self._read.get(name, 0):
                    self._give_up(name, "became shorter; put new events into a new file", found)
                    return
                while data := self._next_lines(file, found.read.get(name, self._read.get(name, 0))):
                    self._cut(name, data, found)
        except OSError as error:
            self._give_up(name, f"cannot be read: {error.strerror}", found)

    def _give_up(self, name: str, reason: str, found: _Found) -> None:
        """Reject the rest of a file, and read no more of it."""
        self._plan(found)
        _logger.warning("%s: %s", name, reason)
        self._add([Split("reject", "", name, first_line=0, reason=reason)])
        self._read[name] = -1

    def _next_lines(self, file: BinaryIO, at: int) -> bytes:
        file.seek(at)
        data = file.read(_CHUNK)
        while len(data) % _CHUNK == 0 and data and b"\n" not in data:
            more = file.read(_CHUNK)
            if not more:
                break
            data += more
        return data[: data.rfind(b"\n") + 1]

    def _cut(self, name: str, data: bytes, found: _Found) -> None:
        """Cut whole lines into splits; whenever these make a batch, plan it."""
        start = found.read.get(name, self._read.get(name, 0))
        line = found.lines.get(name, self._lines.get(name, 1))
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
        piece = min(
            max(-(-len(ends) // self.splits), _SMALL), max(self.batch_events // self.splits, 1)
        )
        at = done = 0
        while done < len(ends):
            lines = min(piece, len(ends) - done, self.batch_events - found.events)
            end = int(ends[done + lines - 1])
            found.splits.append(
                Split("jsonl", name, name, start + at, end - at, line, events=lines)
            )
            at, line, done = end, line + lines, done + lines
            found.events += lines
            found.read[name], found.lines[name] = start + at, line
            if found.events == self.batch_events:
                self._plan(found)

    def _plan(self, found: _Found) -> None:
        """Plan what was found as one batch."""
        self._add(found.splits)
        # At once: if the next one cannot be written, this one is not planned again.
        self._read |= found.read
        self._lines |= found.lines
        for split in found.splits:
            if split.topic:
                self._remember(split)
        found.clear()


def _listed(folder: Path) -> list[Path]:
    """What is in a folder; nothing if it is away."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _lines_in(split: Split) -> int:
    """How many lines a split of a growing file holds."""
    if split.events:
        return split.events
    try:
        with Path(split.path).open("rb") as file:
            file.seek(split.start)
            return file.read(split.length).count(b"\n")
    except OSError:  # the file is gone: nothing of it will need a number
        return 0
