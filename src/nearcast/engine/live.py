"""Tailing a folder: whole new lines of its files become batches of the feed."""

from __future__ import annotations

import threading
from pathlib import Path

from nearcast.engine.source import Feed
from nearcast.model.errors import NearcastError
from nearcast.wire.logs import SUFFIXES, open_log
from nearcast.wire.plan import Planner
from nearcast.wire.split import Split

POLL_SECONDS = 0.2
_CHUNK = 1 << 26
_WAITING = 2  # batches


class Tailer:
    """Watches folders from a thread. Where it stands is written in the feed itself.

    Files of lines may grow; packed and columnar files are taken when their size has not changed
    between two looks, whole.
    """

    def __init__(
        self, folders: list[Path], checkpoint: Path, batch_events: int, splits: int
    ) -> None:
        self.folders, self.checkpoint = folders, checkpoint
        self.batch_events, self.splits = batch_events, splits
        self.feed = Feed(checkpoint)
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._next = len(self.feed)
        self.feed.cut(self._next)
        self._read: dict[str, int] = {}  # bytes of each file that are planned; -1: all of it
        self._lines: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        last = {s.name: s for batch in range(self._next) for s in self.feed.read(batch)}
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
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(POLL_SECONDS):
            try:
                if not self.behind():
                    self.poll()
            except (OSError, NearcastError) as error:  # a folder comes back, a full disk has room
                self.error = error

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

    def _add(self, splits: list[Split]) -> None:
        if splits:
            self.feed.add(self._next, splits)
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
        # The first of them last: only then do the others count, so a crash leaves all or nothing.
        for n, splits in reversed(list(enumerate(batches, self._next))):
            self.feed.add(n, splits)
        self._next += len(batches)
        self._read[name] = -1

    def _lines_of(self, path: Path) -> None:
        """Plan the whole lines behind what is planned already."""
        name = str(path)
        try:
            with path.open("rb") as file:
                while data := self._next_lines(file, name):
                    self._plan_lines(name, data)
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
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
            if len(splits) == self.splits:
                self._add(splits)
                splits = []
        self._add(splits)
        self._read[name], self._lines[name] = start + len(data), line


def _lines_in(split: Split) -> int:
    """How many lines a split of a growing file holds."""
    try:
        with Path(split.path).open("rb") as file:
            file.seek(split.start)
            return file.read(split.length).count(b"\n")
    except OSError:  # the file is gone: nothing of it will need a number
        return 0
