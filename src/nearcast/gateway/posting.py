"""One POST to a webhook: signed, to an address that is allowed, within a limit of time."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import msgspec

from nearcast.gateway.hub import Note
from nearcast.gateway.problems import Problem

__all__ = ["MOST", "SIGNATURE", "Poster", "Refused", "as_body", "check_url", "signature"]

SIGNATURE = "X-Nearcast-Signature"
MOST = 100
"""Notifications of one POST, at most."""
TIMEOUT_S = 15.0
_ANSWER = 65_536  # bytes of an answer that are read
# Names are looked up beside everything else: a server of names that hangs must hang nobody.
_NAMES = ThreadPoolExecutor(16, "names")


class Refused(Exception):
    """A POST that was not acknowledged; the message says why."""


class _Sent(msgspec.Struct):
    """One notification of a POST."""

    key: str
    cursor: str
    notification: msgspec.Raw


def as_body(webhook: str, run: str, notes: Sequence[Note]) -> bytes:
    """What is posted. The key of a notification is the same whenever it is sent."""
    sent = [
        _Sent(f"{run}:{note.cursor}", str(note.cursor), msgspec.Raw(note.line)) for note in notes
    ]
    return msgspec.json.encode({"webhook": webhook, "notifications": sent})


def signature(secret: str, body: bytes) -> str:
    """HMAC-SHA256 of a body, in hex."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def check_url(url: str) -> None:
    """Refuse what is no address of a webhook."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Problem(400, f"url: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise Problem(400, "url: give http://HOST… or https://HOST…")
    if parts.username is not None or parts.password is not None:
        raise Problem(400, "url: leave out user and password; use a secret")


class Poster:
    """Posts to one address. It has connections of its own, so nobody waits for another's."""

    def __init__(self, url: str, secret: str | None, private: bool) -> None:
        """`private`: whether addresses of this machine and its networks are allowed."""
        self.url, self.secret, self.private = url, secret, private
        # A proxy of the environment would look names up by itself.
        self._http = httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=TIMEOUT_S)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def post(self, body: bytes) -> None:
        """Post; raises `Refused` unless it is acknowledged."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._post(body)
        except TimeoutError:
            raise Refused(f"no answer within {TIMEOUT_S:.0f} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Refused(f"{type(error).__name__}: {error}"[:200]) from None

    async def _post(self, body: bytes) -> None:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        address = await allowed(host, parts.port or 443, self.private)
        headers = {
            "Content-Type": "application/json",
            "Host": parts.netloc,
            "User-Agent": "nearcast",
        }
        if self.secret is not None:
            headers[SIGNATURE] = signature(self.secret, body)
        # To the address that was checked: a second look-up could give another one.
        to = httpx.URL(self.url).copy_with(host=address)
        extensions: dict[str, Any] = {"sni_hostname": host} if parts.scheme == "https" else {}
        async with self._http.stream(
            "POST", to, content=body, headers=headers, extensions=extensions
        ) as answer:
            if not 200 <= answer.status_code < 300:
                raise Refused(f"answered {answer.status_code}")
            size = 0
            try:
                async for piece in answer.aiter_raw():
                    size += len(piece)
                    if size > _ANSWER:
                        break
            except httpx.HTTPError:
                pass  # it had acknowledged by then


async def allowed(host: str, port: int, private: bool) -> str:
    """An address of a host that may be posted to; raises `Refused`."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.run_in_executor(
            _NAMES, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
    except OSError as error:
        raise Refused(f"{host}: {error.strerror or error}") from None
    addresses = [str(entry[4][0]) for entry in found]
    for text in addresses:
        if not private and not _is_public(text):
            raise Refused(f"{host} is {text}, an address of a private network")
    return addresses[0]


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return _is_public(str(inner))
    return address.is_global and not address.is_multicast
