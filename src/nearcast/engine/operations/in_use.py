"""Who runs a checkpoint now: a file with the process, locked as long as that lives.

Two drivers on one checkpoint would repeat each other's batches. The system gives the lock back when
a process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path
from typing import BinaryIO

import msgspec

from nearcast.model.errors import NearcastError

__all__ = ["InUse", "Runner", "runner_of"]

_NAME = "in-use"


class Runner(msgspec.Struct):
    """The process of a run."""

    process: int
    host: str
    since: float  # seconds since 1970
    metrics: str = ""  # address, if it serves them


class InUse:
    """A checkpoint is in use by this process, until `release`."""

    def __init__(self, checkpoint: Path) -> None:
        checkpoint.mkdir(parents=True, exist_ok=True)
        path = checkpoint / _NAME
        self._file: BinaryIO | None = path.open("a+b")
        if not _lock(self._file):
            other = _read(path)
            self._file.close()
            self._file = None
            if other is None or other.process != os.getpid():
                who = f"process {other.process} on {other.host}" if other else "another process"
                raise NearcastError(
                    f"{checkpoint}: {who} runs from this checkpoint; stop that run first"
                )
            return  # an older run of this very process that was not stopped
        self._since = time.time()
        self.note()

    def note(self, metrics: str = "") -> None:
        """Write down who this is, and where metrics are served."""
        if self._file is not None:
            now = Runner(os.getpid(), socket.gethostname(), self._since, metrics)
            self._file.truncate(0)
            self._file.write(msgspec.json.encode(now))
            self._file.flush()

    def release(self) -> None:
        """Let others have it."""
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
            self._file = None


def runner_of(checkpoint: Path) -> Runner | None:
    """Who runs a checkpoint now, if anybody does."""
    path = checkpoint / _NAME
    try:
        with path.open("rb") as file:
            if _lock(file):
                return None
    except OSError:
        return None
    return _read(path)


def _lock(file: BinaryIO) -> bool:
    """Take the lock of a file; False: another one has it. Where there are no locks: True."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _read(path: Path) -> Runner | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Runner)
    except (OSError, msgspec.DecodeError):
        return None
