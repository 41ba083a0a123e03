"""Tokens: who a client is, and what it may do. Only their digests are stored.

A token is 256 random bits, so its SHA-256 gives nothing away and needs no salt.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

import msgspec

from nearcast.gateway.problems import Problem
from nearcast.gateway.settings import Limits
from nearcast.model.errors import NearcastError
from nearcast.wire.durable import write_atomic

__all__ = ["ANYONE", "RIGHTS", "Client", "Token", "Tokens", "new_token"]

RIGHTS = ("publish", "subscribe", "ask", "admin")
_PREFIX = "nc_"


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored of a token."""

    name: str  # for the audit log and for people
    digest: str  # SHA-256 of the token, in hex
    owner: str  # `*`: everyone's
    rights: tuple[str, ...]
    limits: Limits | None = None  # None: those of the service


class Client(msgspec.Struct, frozen=True):
    """Who makes a request."""

    name: str
    owner: str | None  # None: everything is its own
    rights: frozenset[str]
    limits: Limits = Limits()

    def need(self, right: str) -> None:
        """Refuse what it has no right to."""
        if right not in self.rights:
            raise Problem(403, f"this token may not {right}; use one with the right {right!r}")

    def owns(self, owner: str | None) -> bool:
        """Whether something of that owner is its own."""
        return self.owner is None or self.owner == owner


ANYONE = Client("anyone", None, frozenset(RIGHTS))
"""Without a file of tokens."""


class Tokens:
    """The file of tokens; it is read again when it changes."""

    def __init__(self, path: Path, limits: Limits) -> None:
        """`limits`: of tokens that say none."""
        self.path, self.limits = path, limits
        self._seen: tuple[int, int] | None = None
        self._known: dict[str, Client] = {}
        self._look()

    def client(self, authorization: str | None) -> Client:
        """Who sends this header; raises 401."""
        self._look()
        scheme, _, token = (authorization or "").partition(" ")
        found = self._known.get(digest(token.strip())) if scheme.lower() == "bearer" else None
        if found is None:
            what = "no such token" if authorization else "a token is needed"
            challenge = {"WWW-Authenticate": 'Bearer realm="nearcast"'}
            raise Problem(401, f"{what}; send Authorization: Bearer TOKEN", challenge)
        return found

    def _look(self) -> None:
        try:
            now = self.path.stat()
        except OSError as error:
            raise NearcastError(f"{self.path}: {error.strerror}") from error
        if (now.st_mtime_ns, now.st_size) == self._seen:
            return
        self._known = {
            t.digest: Client(
                t.name,
                None if t.owner == "*" else t.owner,
                frozenset(t.rights),
                t.limits or self.limits,
            )
            for t in read_tokens(self.path)
        }
        self._seen = now.st_mtime_ns, now.st_size


def digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def read_tokens(path: Path) -> list[Token]:
    """All tokens of a file; an empty list if there is none."""
    if not path.exists():
        return []
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Token])
    except msgspec.DecodeError as error:
        raise NearcastError(f"{path}: is no file of tokens ({error})") from error


def new_token(path: Path, name: str, owner: str, rights: tuple[str, ...]) -> str:
    """Add a token to the file; the token itself, which is shown this once."""
    known = read_tokens(path)
    if any(t.name == name for t in known):
        raise NearcastError(f"tokens: {name!r} exists; remove it first, or choose another name")
    if unknown := set(rights) - set(RIGHTS):
        raise NearcastError(f"tokens: no right {min(unknown)!r}; there are {', '.join(RIGHTS)}")
    if not rights or not name or not owner:
        raise NearcastError("tokens: give a name, an owner (or *) and at least one right")
    token = _PREFIX + secrets.token_urlsafe(32)
    _write(path, [*known, Token(name, digest(token), owner, rights)])
    return token


def remove_token(path: Path, name: str) -> None:
    """Take a token back; requests with it are refused from now on."""
    known = read_tokens(path)
    if not any(t.name == name for t in known):
        raise NearcastError(f"tokens: there is no {name!r} in {path}")
    _write(path, [t for t in known if t.name != name])


def _write(path: Path, tokens: list[Token]) -> None:
    before = os.umask(0o077)
    try:
        write_atomic(path, msgspec.json.format(msgspec.json.encode(tokens)))
    finally:
        os.umask(before)
