"""What the map page shows besides subscriptions and notifications: posts, rejects, how it goes.

Posts are those that came through this gateway, the latest of them, a sample where they are many.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from nearcast.gateway.answering import json_response, number_of
from nearcast.gateway.core import Gateway
from nearcast.gateway.tokens import Client
from nearcast.wire.arriving import Arrived
from nearcast.wire.shapes import PublishShape

__all__ = ["PageRequests", "Posts"]

_KEPT = 2000  # posts
_TICK_S = 0.25
_SHOWN = 100  # posts of a tick, at most
_BEAT = 60  # ticks without a post until something is sent
_FILES = 50  # of rejects that are looked at, the latest


class Posts:
    """The latest posts of a gateway."""

    def __init__(self) -> None:
        self.count = 0
        self._latest: deque[PublishShape] = deque(maxlen=_KEPT)

    def add(self, arrived: Iterable[Arrived]) -> None:
        """Note what was taken."""
        for one in arrived:
            if isinstance(one.event, PublishShape):
                self._latest.append(one.event)
                self.count += 1

    def since(self, count: int) -> list[dict[str, Any]]:
        """Posts behind the first so many, a sample if they are many."""
        new = min(self.count - count, len(self._latest))
        found = list(itertools.islice(self._latest, len(self._latest) - new, None))
        if new > _SHOWN:
            found = [found[n * new // _SHOWN] for n in range(_SHOWN)]
        return [_shown(post) for post in found]


def _shown(post: PublishShape) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": post.id, "time": post.time, "at": list(post.at)}
    if post.text is not None:
        shown["text"] = post.text
    if post.keywords:
        shown["keywords"] = post.keywords
    return shown


class PageRequests:
    """The requests of one gateway."""

    def __init__(self, gateway: Gateway, posts: Posts) -> None:
        self.gateway, self._posts = gateway, posts

    async def status(self, request: Request, client: Client) -> Response:
        """`GET /v1/status`: what the service is, and how it goes."""
        del request
        gateway, service = self.gateway, self.gateway.service
        held = gateway.reader.held if gateway.reader is not None else None
        return json_response(
            {
                "space": service.space,
                "bounds": service.bounds,
                "kinds": list(gateway.kinds),
                "retain_ms": service.retain_ms,
                "tiles": service.tiles or None,
                "rights": sorted(client.rights),
                "owner": client.owner,
                "as_of": gateway.as_of(),
                "waiting_ms": int(gateway.waiting_s * 1000),
                "restarts": gateway.engine.restarts,
                "objects": None if held is None else held.ranked,
                "posts": self._posts.count,
            }
        )

    async def posts(self, request: Request, client: Client) -> Response:
        """`GET /v1/posts`: posts as they come, as server-sent events of some each."""
        client.need("ask")  # who may ask can see them anyway
        del request
        self.gateway.allowances.room(client)
        return StreamingResponse(
            self._stream(client),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _stream(self, client: Client) -> AsyncIterator[bytes]:
        at, quiet = max(self._posts.count - _SHOWN, 0), _BEAT
        with self.gateway.allowances.connection(client):
            while not self.gateway.hub.closed:
                if self._posts.count > at:
                    found, at, quiet = self._posts.since(at), self._posts.count, 0
                    yield b"data: %s\n\n" % msgspec.json.encode(found)
                elif quiet >= _BEAT:
                    quiet = 0
                    yield b": beat\n\n"
                quiet += 1
                await asyncio.sleep(_TICK_S)

    async def rejects(self, request: Request, client: Client) -> Response:
        """`GET /v1/rejects`: the latest events that the run refused."""
        client.need("admin")
        limit = number_of(request, "limit", 20, 1000)
        found = await asyncio.to_thread(latest_rejects, self.gateway.service.folder, limit)
        return json_response({"rejects": found, "as_of": self.gateway.as_of()})


def latest_rejects(folder: Path, limit: int) -> list[dict[str, Any]]:
    """The latest rejects of a run, newest first."""
    found: list[dict[str, Any]] = []
    names = sorted((folder / "rejected").glob("b*.jsonl"), reverse=True)[:_FILES]
    for path in names:
        try:
            lines = path.read_bytes().splitlines()
        except FileNotFoundError:  # it was rolled into a segment
            continue
        found += [msgspec.json.decode(line) for line in reversed(lines)]
        if len(found) >= limit:
            break
    return found[:limit]
