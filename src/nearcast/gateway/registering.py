"""From the event log into the registry: subscriptions as they come and go, and keys of requests.

A gateway notes its own writes as soon as they are on the disk. What another one wrote before it
died, or this one before a crash, is read from the segments.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nearcast.gateway.inbox import Entry, Place, segments_of
from nearcast.gateway.registry import Registry
from nearcast.wire.consumed import read_consumed
from nearcast.wire.durable import sync_folder
from nearcast.wire.times import to_ms

__all__ = ["Meant", "Registering", "Taken", "taken_field"]

_CONTROLS = (b"subscribe", b'"_taken"', b"\\u")
_KEPT_MS = 24 * 3_600_000
_MOST_KEYS = 500_000
_TAIL = 8 << 20
_OPS = ("subscribe", "unsubscribe")


class Taken(NamedTuple):
    """A request that was taken with an Idempotency-Key."""

    key: str
    first: int  # how many of its events an earlier attempt had brought into the log
    lines: int  # how many follow from here
    body: str  # digest of its body


class _Line(msgspec.Struct):
    """What the registry reads of an event."""

    op: str
    id: str
    time: int | str
    owner: str | None = None
    expires: int | str | None = None
    query: dict[str, Any] | None = None
    taken: tuple[str, int, int, str] | None = msgspec.field(default=None, name="_taken")


_LINE = msgspec.json.Decoder(_Line)


class Meant(NamedTuple):
    """What an entry of the inbox means to the registry."""

    controls: Sequence[bytes] = ()  # its lines that are subscribes and unsubscribes, in order
    taken: Taken | None = None


def taken_field(taken: Taken) -> bytes:
    """The key of a request, as its first line in the log carries it: an unknown field."""
    return b',"_taken":' + msgspec.json.encode(tuple(taken))


class Registering:
    """Notes what segments of the inbox hold."""

    def __init__(self, registry: Registry, inbox: Path) -> None:
        self.registry, self.inbox = registry, inbox
        self._noted: dict[str, int] = {}  # bytes of each segment, as far as known here

    def note(self, group: Sequence[Entry], place: Place) -> None:
        """Note what was just written; only what matters costs a transaction."""
        controls = [line for e in group if e.meant for line in e.meant.controls]
        taken = [e.meant.taken for e in group if e.meant and e.meant.taken]
        if controls or taken:
            with self.registry.writing() as db:
                if _read_of(db, place.segment.name) >= place.end:
                    return  # another gateway read it meanwhile
                _apply(db, [(line, _LINE.decode(line)) for line in controls])
                _remember(db, taken)
                _have_read(db, place.segment.name, place.end)
        self._noted[place.segment.name] = place.end

    def catch_up(self, besides: Path | None = None) -> None:
        """Read what segments hold behind what is noted; `besides` the one that is written here."""
        for path in segments_of(self.inbox):
            if path == besides:
                continue
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue
            if self._noted.get(path.name, -1) < size:
                self._read(path)

    def _read(self, path: Path) -> None:
        with suppress(FileNotFoundError), self.registry.writing() as db, path.open("rb") as file:
            # What has neither controls nor keys is only known here to be read.
            at = max(_read_of(db, path.name), self._noted.get(path.name, 0))
            file.seek(at)
            lines = file.read().split(b"\n")
            rest = lines.pop()  # a line that is not finished yet, or never will be
            read = [
                (n, line, _LINE.decode(line))
                for n, line in enumerate(lines)
                if any(part in line for part in _CONTROLS)
            ]
            _apply(db, [(line, r) for _, line, r in read if r.op in _OPS])
            # A crash may have cut a request short: what is there of it is there.
            _remember(
                db,
                [
                    Taken(key, first, min(count, len(lines) - n), body)
                    for n, _, r in read
                    if r.taken
                    for key, first, count, body in (r.taken,)
                ],
            )
            at += sum(map(len, lines)) + len(lines)
            _have_read(db, path.name, at)
            self._noted[path.name] = at + len(rest)

    def prune(self, out: Path, current: Path | None) -> int:
        """Remove segments that the run will not read again, and that are noted; how many."""
        # Names of segments are never used again, wherever the folder is now.
        read = {Path(name).name: done for name, done in read_consumed(out).items()}
        old = []
        for path in segments_of(self.inbox):
            size = path.stat().st_size
            done = read.get(path.name, 0)
            # A torn last line, if there is one, is not read by anyone.
            if path != current and size and (done == -1 or done >= _whole(path, size)):
                old.append(path)
        old = [path for path in old if path != self._latest()]
        if not old:
            return 0
        self.catch_up(current)
        self.registry.settle()
        for path in old:
            path.unlink(missing_ok=True)
            self._noted.pop(path.name, None)
        sync_folder(self.inbox)
        with self.registry.writing() as db:
            db.executemany("DELETE FROM segments WHERE name = ?", [(p.name,) for p in old])
        return len(old)

    def _latest(self) -> Path | None:
        return max(segments_of(self.inbox), default=None)

    def sweep(self, now_ms: int) -> None:
        """Forget subscriptions that have expired, and keys that are old."""
        with self.registry.writing() as db:
            ended = "SELECT id FROM subscriptions WHERE expires <= ?"
            db.execute(f"DELETE FROM results WHERE id IN ({ended})", (now_ms,))
            db.execute("DELETE FROM subscriptions WHERE expires <= ?", (now_ms,))
            db.execute("DELETE FROM requests WHERE at < ?", (now_ms - _KEPT_MS,))
            more = db.execute("SELECT count(*) FROM requests").fetchone()[0] - _MOST_KEYS
            if more > 0:
                oldest = "SELECT key FROM requests ORDER BY at LIMIT ?"
                db.execute(f"DELETE FROM requests WHERE key IN ({oldest})", (more,))


def _whole(path: Path, size: int) -> int:
    """The bytes of a closed segment up to the end of its last whole line."""
    with path.open("rb") as file:
        file.seek(max(size - _TAIL, 0))
        tail = file.read()
    return size - (len(tail) - tail.rfind(b"\n") - 1)


def _apply(db: sqlite3.Connection, lines: Iterable[tuple[bytes, _Line]]) -> None:
    """Subscribe and unsubscribe; a replaced one begins with a fresh result."""
    for line, read in lines:
        db.execute("DELETE FROM results WHERE id = ?", (read.id,))
        if read.op == "unsubscribe":
            db.execute("DELETE FROM subscriptions WHERE id = ?", (read.id,))
            continue
        kind = (read.query or {}).get("kind", "")
        end = None if read.expires is None else to_ms(read.expires, "expires")
        row = (read.id, read.owner, kind, to_ms(read.time), end, line)
        db.execute("INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?, ?, ?, ?)", row)


def _remember(db: sqlite3.Connection, taken: Sequence[Taken]) -> None:
    now = time.time_ns() // 1_000_000
    rows = [(t.key, t.first + t.lines, t.body, now) for t in taken]
    db.executemany("INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?)", rows)


def _read_of(db: sqlite3.Connection, segment: str) -> int:
    found = db.execute("SELECT read FROM segments WHERE name = ?", (segment,)).fetchone()
    return int(found[0]) if found else 0


def _have_read(db: sqlite3.Connection, segment: str, until: int) -> None:
    db.execute("INSERT OR REPLACE INTO segments VALUES (?, ?)", (segment, until))
