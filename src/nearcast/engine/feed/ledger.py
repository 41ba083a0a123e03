"""Which logs a checkpoint has planned."""

from __future__ import annotations

import hashlib
import json
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nearcast.engine.feed.places import moved_along
from nearcast.engine.formats import FIELD, FORMAT, check_format
from nearcast.model.errors import NearcastError
from nearcast.wire.durable import write_atomic

# Clocks of file systems are coarse: a time of change this close to the look proves nothing.
_UNSURE_NS = 2_000_000_000


class Ledger:
    """Which logs a checkpoint has planned: a log that changed since is refused.

    A log is the same if it has as many bytes as when it was planned and the same digest of all its
    bytes. The digest is computed once, beside the planning. Later it is compared only where the
    system says that the file was written, replaced or touched since: a copy with the same bytes is
    the same log.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ledger.json"
        self._here = folder.resolve()
        self._known: dict[str, Any] = {FIELD: FORMAT, "logs": {}, "batches": 0, "events": 0}
        self._digests: dict[str, Future[dict[str, Any]]] = {}
        if self._path.exists():
            self._known = json.loads(self._path.read_text())
            check_format(self._path, self._known)
            self._follow(Path(self._known["checkpoint"]))

    def _follow(self, then: Path) -> None:
        """If the checkpoint was moved, know logs that were moved along with it by their new paths.

        They must be what they were. Logs that are still where they were are known there as well.
        """
        if then == self._here:
            return
        for name, described in list(self._known["logs"].items()):
            now = moved_along(self._here, then, Path(name))
            if str(now) in self._known["logs"] or not now.exists():
                continue
            if not Path(name).exists():
                _check(str(now), now, described)
            elif _describe(now)["digest"] != described["digest"]:
                continue  # another file of that name
            self._known["logs"][str(now)] = described

    @property
    def batches(self) -> int:
        """Batches planned."""
        return int(self._known["batches"])

    @property
    def events(self) -> int:
        """Events planned."""
        return int(self._known["events"])

    def fresh(self, names: list[str]) -> list[str]:
        """The logs not planned yet."""
        new = []
        for name in names:
            path = Path(name).resolve()
            then = self._known["logs"].get(str(path))
            if then is None:
                new.append(name)
            else:
                _check(name, path, then)
        self._begin(new)
        return new

    def _begin(self, names: list[str]) -> None:
        """Have the digests of new logs computed while they are planned."""
        pool = ThreadPoolExecutor(1, "digests")
        for name in names:
            self._digests[name] = pool.submit(_describe, Path(name).resolve())
        pool.shutdown(wait=False)

    @property
    def reach(self) -> int:
        """How far back an event of them reaches, at most, in milliseconds."""
        return int(self._known.get("reach", 0))

    def add(self, names: list[str], batches: int, events: int, reach: int = 0) -> None:
        """Note that `names` are planned."""
        self._known["reach"] = max(self.reach, reach)
        self._begin([name for name in names if name not in self._digests])
        for name in names:
            self._known["logs"][str(Path(name).resolve())] = self._digests.pop(name).result()
        self._known |= {"checkpoint": str(self._here), "batches": batches, "events": events}
        write_atomic(self._path, json.dumps(self._known).encode())


def _describe(path: Path) -> dict[str, Any]:
    """What is remembered of a log: its size (-1: it is not there), a digest of its bytes (empty:
    they cannot be read), and what shows quickly that it is as it was."""
    looked_ns = time.time_ns()
    quick = _quick(path)
    return {"bytes": quick[0], "digest": _digest(path), "quick": quick, "looked_ns": looked_ns}


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _quick(path: Path) -> list[int]:
    """Size, times and number of a file: some of it changes whenever the file does."""
    try:
        now = path.stat()
    except OSError:
        return [-1]
    return [now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino, now.st_dev]


def _check(name: str, path: Path, then: dict[str, Any]) -> None:
    """Refuse a log that is not what it was."""
    quick = _quick(path)
    if quick[0] != then["bytes"]:
        raise NearcastError(
            f"{name}: the file had {then['bytes']:,} bytes when this checkpoint planned it and has "
            f"{quick[0]:,} now; put new events into a new file"
        )
    untouched = quick == then["quick"] and max(quick[1:3]) < then["looked_ns"] - _UNSURE_NS
    if quick[0] >= 0 and not untouched and _digest(path) != then["digest"]:
        raise NearcastError(
            f"{name}: the file has other content than when this checkpoint planned it; restore it, "
            "and put new events into a new file"
        )
