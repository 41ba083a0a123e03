"""What is registered, and what comes of it: made from the two logs, kept in one SQLite file.

The event log says which subscriptions there are and which requests were taken
(`gateway.registering`), the notification log what their results are now (`gateway.results`). The
file only keeps what was read of both: where it stands is written in the same transaction, so a
crash makes it read on from there. All gateways of a data folder share it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Filters", "Registry", "Subscription"]

FILE = "registry.sqlite"
_VERSION = 1
_TABLES = """
CREATE TABLE subscriptions(
    id TEXT PRIMARY KEY, owner TEXT, kind TEXT NOT NULL, time INTEGER NOT NULL,
    expires INTEGER, line BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX by_owner ON subscriptions(owner, id);
CREATE INDEX by_kind ON subscriptions(kind, id);
CREATE INDEX by_end ON subscriptions(expires) WHERE expires IS NOT NULL;
CREATE TABLE results(id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE requests(key TEXT PRIMARY KEY, lines INTEGER, body TEXT, at INTEGER) WITHOUT ROWID;
CREATE INDEX by_age ON requests(at);
CREATE TABLE segments(name TEXT PRIMARY KEY, read INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE webhooks(
    owner TEXT, name TEXT, body BLOB NOT NULL, cursor TEXT NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY(owner, name)) WITHOUT ROWID;
CREATE TABLE marks(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


class Subscription(NamedTuple):
    """A subscription that stands."""

    id: str
    owner: str | None
    kind: str
    time: int
    expires: int | None
    line: bytes  # as the event log has it


class Filters(NamedTuple):
    """Which subscriptions a list is about."""

    owner: str | None = None
    kind: str | None = None
    after: str = ""  # ids behind this one


_COLUMNS = "id, owner, kind, time, expires, line"


class Registry:
    """The file. Writes go through one connection, reads through another, which nobody blocks."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE
        self.path.touch(0o600)  # it holds secrets of webhooks
        self._lock = threading.RLock()
        self._writes = self._open()
        with self._lock:
            self._writes.execute("BEGIN IMMEDIATE")
            version = self._writes.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in _TABLES.split(";"):
                    self._writes.execute(statement)
                self._writes.execute(f"PRAGMA user_version = {_VERSION}")
            self._writes.execute("COMMIT")
        self._reads = self._open()
        self._reading = threading.Lock()

    def _open(self) -> sqlite3.Connection:
        opened = sqlite3.connect(
            self.path, timeout=30, isolation_level=None, check_same_thread=False
        )
        opened.execute("PRAGMA journal_mode = WAL")
        # What a loss of power takes is read from the logs again.
        opened.execute("PRAGMA synchronous = NORMAL")
        return opened

    def close(self) -> None:
        """Give the file back."""
        with self._lock, self._reading:
            self._writes.close()
            self._reads.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction; other gateways wait for its end."""
        with self._lock:
            self._writes.execute("BEGIN IMMEDIATE")
            try:
                yield self._writes
            except BaseException:
                self._writes.execute("ROLLBACK")
                raise
            self._writes.execute("COMMIT")

    def settle(self) -> None:
        """Have everything on the disk that was written so far."""
        with self._lock:
            self._writes.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds."""
        with self._reading:
            return self._reads.execute(statement, values).fetchall()

    # -- subscriptions -----------------------------------------------------------------------

    def subscription(self, id_: str, now_ms: int) -> Subscription | None:
        """A subscription that stands at this time."""
        found = self.rows(f"SELECT {_COLUMNS} FROM subscriptions WHERE id = ?", id_)
        standing = found and (found[0][4] is None or found[0][4] > now_ms)
        return Subscription(*found[0]) if standing else None

    def subscriptions(self, wanted: Filters, now_ms: int, limit: int) -> list[Subscription]:
        """Those that stand at this time, in the order of their ids."""
        where, values = "id > ? AND (expires IS NULL OR expires > ?)", [wanted.after, now_ms]
        for name in ("owner", "kind"):
            if (value := getattr(wanted, name)) is not None:
                where += f" AND {name} = ?"
                values.append(value)
        found = self.rows(
            f"SELECT {_COLUMNS} FROM subscriptions WHERE {where} ORDER BY id LIMIT ?",
            *values,
            limit,
        )
        return [Subscription(*row) for row in found]

    def owned(self, owner: str | None) -> int:
        """How many subscriptions an owner has; None: how many there are."""
        if owner is None:
            return int(self.rows("SELECT count(*) FROM subscriptions")[0][0])
        found = self.rows("SELECT count(*) FROM subscriptions WHERE owner = ?", owner)
        return int(found[0][0])

    def result(self, id_: str) -> bytes | None:
        """The result of a subscription, as `gateway.results` keeps it."""
        found = self.rows("SELECT body FROM results WHERE id = ?", id_)
        return bytes(found[0][0]) if found else None

    def request(self, key: str) -> tuple[int, str] | None:
        """(lines, digest of the body) of a request that was taken with this key."""
        found = self.rows("SELECT lines, body FROM requests WHERE key = ?", key)
        return (int(found[0][0]), str(found[0][1])) if found else None

    def mark(self, name: str) -> str | None:
        """A mark of how far something was read."""
        found = self.rows("SELECT value FROM marks WHERE name = ?", name)
        return str(found[0][0]) if found else None
