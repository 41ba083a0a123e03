"""Webhooks as they are registered: who posts where, and how far each one is."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from nearcast.gateway.hub import Wanted
from nearcast.gateway.registry import Registry
from nearcast.wire.durable import make_folder, sync_file
from nearcast.wire.told import Cursor

__all__ = ["DeadLetter", "DeadLetters", "Hook", "HookState", "Hooks"]


class Hook(msgspec.Struct, frozen=True):
    """What was registered."""

    url: str
    ids: tuple[str, ...] | None  # of subscriptions; None: all of the owner
    owner: str | None  # whose notifications; None: everyone's
    secret: str | None

    @property
    def wanted(self) -> Wanted:
        """As the hub knows it."""
        return Wanted(None if self.ids is None else frozenset(self.ids), self.owner)


class HookState(msgspec.Struct, frozen=True):
    """A webhook and how far it is."""

    tenant: str  # owner of the token that registered it; empty: `*`
    name: str
    hook: Hook
    cursor: str
    failures: int  # since the last acknowledgement
    dead: int  # notifications that were given up

    @property
    def reader(self) -> str:
        """Its name for the run, which keeps the log for it."""
        return "webhook-" + hashlib.sha256(f"{self.tenant}\n{self.name}".encode()).hexdigest()[:24]


_COLUMNS = "owner, name, body, cursor, failures, dead"


class Hooks:
    """The table of webhooks."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    def all(self, tenant: str | None = None) -> list[HookState]:
        """Those of a tenant; None: of all."""
        where = "" if tenant is None else " WHERE owner = ?"
        rows = self.registry.rows(
            f"SELECT {_COLUMNS} FROM webhooks{where} ORDER BY owner, name",
            *(() if tenant is None else (tenant,)),
        )
        return [_state(*row) for row in rows]

    def one(self, tenant: str, name: str) -> HookState | None:
        """One of them."""
        rows = self.registry.rows(
            f"SELECT {_COLUMNS} FROM webhooks WHERE owner = ? AND name = ?", tenant, name
        )
        return _state(*rows[0]) if rows else None

    def put(self, tenant: str, name: str, hook: Hook, cursor: Cursor) -> None:
        """Register; one that is there goes on from where it is."""
        with self.registry.writing() as db:
            db.execute(
                "INSERT INTO webhooks(owner, name, body, cursor) VALUES (?, ?, ?, ?) "
                "ON CONFLICT(owner, name) DO UPDATE SET body = excluded.body, failures = 0",
                (tenant, name, msgspec.msgpack.encode(hook), str(cursor)),
            )

    def remove(self, tenant: str, name: str) -> None:
        """Forget one."""
        with self.registry.writing() as db:
            db.execute("DELETE FROM webhooks WHERE owner = ? AND name = ?", (tenant, name))

    def move(self, tenant: str, name: str, cursor: Cursor, failures: int, dead: int) -> None:
        """Note how far one is; `dead` are more that were given up."""
        with self.registry.writing() as db:
            db.execute(
                "UPDATE webhooks SET cursor = ?, failures = ?, dead = dead + ? "
                "WHERE owner = ? AND name = ?",
                (str(cursor), failures, dead, tenant, name),
            )


def _state(tenant: str, name: str, body: bytes, cursor: str, failures: int, dead: int) -> HookState:
    hook = msgspec.msgpack.decode(body, type=Hook)
    return HookState(tenant, name, hook, cursor, failures, dead)


class DeadLetter(msgspec.Struct):
    """A POST that was given up."""

    at: int  # epoch milliseconds
    reason: str
    count: int
    body: msgspec.Raw  # as it was posted


class DeadLetters:
    """The file of one webhook: what was given up, in order."""

    def __init__(self, data: Path, state: HookState) -> None:
        self.path = data / "webhooks" / f"{state.reader}.jsonl"

    def add(self, letter: DeadLetter) -> None:
        """Keep one; it is on the disk when this returns."""
        make_folder(self.path.parent)
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(letter) + b"\n")
        sync_file(self.path)

    def all(self) -> list[DeadLetter]:
        """Those that wait to be replayed."""
        try:
            lines = self.path.read_bytes()
        except FileNotFoundError:
            return []
        return msgspec.json.Decoder(DeadLetter).decode_lines(lines)
