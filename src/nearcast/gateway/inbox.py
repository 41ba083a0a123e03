"""The inbox: the event log of a service, appended by requests and followed by the run.

A gateway has a segment of its own, so several can write for one run. Requests that come at the
same time share one write and one sync (group commit); none is acknowledged before that. Room is
reserved before anything is written, so a full disk leaves nothing half written.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nearcast.wire.durable import make_folder, sync_folder

__all__ = ["Entry", "Full", "Inbox", "Place", "segments_of"]

_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of <linux/falloc.h>
_NOT_THERE = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_ROLL_SECONDS = 600.0
_SEGMENT = re.compile(r"\d{17}-[\w-]+\.jsonl")
_AHEAD = 4 << 20  # bytes reserved at a time


class Full(Exception):
    """Nothing can be written now; the message says why."""

    def __init__(self, reason: str, for_good: bool) -> None:
        """`for_good`: the disk is full, which does not pass by itself."""
        super().__init__(reason)
        self.for_good = for_good


@dataclass(frozen=True, slots=True)
class Place:
    """Where a group of entries ends."""

    segment: Path
    start: int
    end: int


@dataclass(slots=True)
class Entry:
    """What one request has for the log: whole lines, and what they mean to the registry."""

    lines: bytes
    meant: Any = None
    done: Future[Place] = field(default_factory=Future)


class Inbox:
    """Appends to the latest segment of one gateway, from a thread of its own."""

    def __init__(
        self,
        folder: Path,
        name: str,
        written: Callable[[Sequence[Entry], Place], None],
        segment_bytes: int,
        most_waiting: int = 256 << 20,
    ) -> None:
        """`written` is called with each group when it is on the disk, before it is acknowledged."""
        self.folder, self.name = folder, name
        self._written, self._segment_bytes = written, segment_bytes
        self._most = most_waiting
        self._waiting: list[Entry] = []
        self._bytes = 0
        self._ready = threading.Condition()
        self._stopped = False
        self._file = -1
        self._path = Path()
        self._size = self._reserved = 0
        self._began = 0.0
        make_folder(folder)
        self._thread = threading.Thread(target=self._work, name="inbox", daemon=True)
        self._thread.start()

    @property
    def current(self) -> Path | None:
        """The segment that is being written."""
        return self._path if self._file >= 0 else None

    def append(self, entry: Entry) -> Future[Place]:
        """Have an entry written; the future is done when it is on the disk."""
        with self._ready:
            if self._stopped or self._bytes + len(entry.lines) > self._most:
                raise Full("more is waiting to be written than fits in memory", False)
            self._waiting.append(entry)
            self._bytes += len(entry.lines)
            self._ready.notify()
        return entry.done

    def stop(self) -> None:
        """Write what waits, and stop."""
        with self._ready:
            self._stopped = True
            self._ready.notify()
        self._thread.join()
        self._close()

    def _work(self) -> None:
        while True:
            with self._ready:
                while not self._waiting and not self._stopped:
                    self._ready.wait()
                group, self._waiting, self._bytes = self._waiting, [], 0
            if not group:
                return
            try:
                place = self._write(b"".join(entry.lines for entry in group))
                self._written(group, place)
            except OSError as error:
                self._close()  # whatever was left of it: go on in another segment
                full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                for entry in group:
                    entry.done.set_exception(Full(f"{self.folder}: {error.strerror}", full))
            except Exception as error:
                self._close()
                for entry in group:
                    entry.done.set_exception(error)
            else:
                for entry in group:
                    entry.done.set_result(place)

    def _write(self, data: bytes) -> Place:
        old = time.monotonic() - self._began > _ROLL_SECONDS
        if self._file < 0 or self._size >= self._segment_bytes or (self._size and old):
            self._begin()
        start = self._size
        self._reserve(start + len(data))
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        os.fdatasync(self._file)
        self._size = start + len(data)
        return Place(self._path, start, self._size)

    def _begin(self) -> None:
        self._close()
        stamp = time.time_ns() // 1000
        path = self.folder / f"{stamp:017d}-{self.name}.jsonl"
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(path, how, 0o640)
        self._path, self._size, self._reserved = path, 0, 0
        self._began = time.monotonic()
        sync_folder(self.folder)

    def _reserve(self, until: int) -> None:
        """Have the room up to there belong to the segment; raises when there is none."""
        if until <= self._reserved:
            return
        length = max(until - self._reserved, min(_AHEAD, self._segment_bytes))
        try:
            reserve(self._file, self._reserved, length)
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise
        self._reserved += length

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def segments_of(folder: Path) -> list[Path]:
    """The segments that gateways wrote, oldest first; other files of a folder are not theirs."""
    return sorted(path for path in folder.glob("*.jsonl") if _SEGMENT.fullmatch(path.name))


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def reserve(file: int, start: int, length: int) -> None:
    """Reserve room in a file without making it longer: who follows it sees whole lines only."""
    call = _libc().fallocate
    offset = ctypes.c_int64
    if call(file, _KEEP_SIZE, offset(start), offset(length)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
