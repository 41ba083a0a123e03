"""What the map page shows besides the requests of the contract: posts as they arrive, and the run.

`GET /v1/page/settings` once, then `GET /v1/page/live`: server-sent events, a few per second, each
with the latest posts and how the run is. Nothing is read while nobody looks.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from nearcast.gateway.answering import json_response
from nearcast.gateway.core import Gateway
from nearcast.gateway.tokens import Client

__all__ = ["Posts", "Showing"]

_TICK_S = 0.25
_MOST_BYTES = 128 << 10  # of a segment, per tick: of a busier stream the page shows a part
_MOST_POSTS = 400  # per tick
_RUN_TICKS = 8  # the state of the run goes with every so manieth message
_LETTERS = 140


class _Post(msgspec.Struct):
    op: str = ""
    id: str = ""
    time: int | str = 0
    at: tuple[float, float] | None = None
    text: str = ""


class _ShardReport(msgspec.Struct):
    shard: int
    subscriptions: int = 0
    objects: int = 0
    examined: int = 0
    moved: int = 0


class _BatchRecord(msgspec.Struct):
    batch: int
    seconds: float
    reports: list[_ShardReport]


class _Partition(msgspec.Struct):
    batch: int
    kind: str
    bounds: list[float] = []
    cells_after: list[list[int]] = []
    decisions: list[dict[str, Any]] = []


_POST = msgspec.json.Decoder(_Post)
_RECORD = msgspec.json.Decoder(_BatchRecord)
_PARTITION = msgspec.json.Decoder(_Partition)


class Posts:
    """Follows the event log of a service from now on."""

    def __init__(self, inbox: Path) -> None:
        self.inbox = inbox
        self._read = {path: size for path, size in self._sizes()}

    def _sizes(self) -> list[tuple[Path, int]]:
        found = []
        for entry in os.scandir(self.inbox) if self.inbox.is_dir() else ():
            if entry.name.endswith(".jsonl"):
                found.append((Path(entry.path), entry.stat().st_size))
        return sorted(found)

    def fresh(self) -> list[list[Any]]:
        """Posts since the last call, each `[id, x, y, text]`; of too many only the latest."""
        posts: list[list[Any]] = []
        sizes = self._sizes()
        for path, size in sizes:
            start = max(self._read.get(path, 0), size - _MOST_BYTES)
            if start >= size:
                continue
            try:
                with path.open("rb") as file:
                    file.seek(start)
                    data = file.read(size - start)
            except FileNotFoundError:
                continue  # it was pruned
            whole = data.rfind(b"\n") + 1
            self._read[path] = start + whole
            for line in data[:whole].split(b"\n"):
                if (post := _post(line)) is not None:
                    posts.append(post)
        self._read = {path: self._read.get(path, 0) for path, _ in sizes}
        return posts[-_MOST_POSTS:]


def _post(line: bytes) -> list[Any] | None:
    """What is shown of a line; None: it is no post, or its first part was cut off."""
    try:
        event = _POST.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    if event.op != "publish" or event.at is None:
        return None
    return [event.id, *event.at, event.text[:_LETTERS]]


def loads(checkpoint: Path) -> dict[str, Any] | None:
    """What each shard did in the latest batch; None: no batch is done."""
    try:
        newest = max(name for name in os.listdir(checkpoint / "reports") if name.endswith(".json"))
        record = _RECORD.decode((checkpoint / "reports" / newest).read_bytes())
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    shards = sorted(record.reports, key=lambda r: r.shard)
    return {
        "batch": record.batch,
        "seconds": record.seconds,
        "shards": [[r.shard, r.subscriptions, r.objects, r.examined, r.moved] for r in shards],
    }


def partitions(checkpoint: Path) -> dict[str, Any] | None:
    """Which shard owns which cell, by the latest decision of a router that deals by place."""
    try:
        newest = max(name for name in os.listdir(checkpoint / "balance") if name.endswith(".json"))
        found = _PARTITION.decode((checkpoint / "balance" / newest).read_bytes())
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    if not found.cells_after:
        return None
    return {
        "batch": found.batch,
        "kind": found.kind,
        "bounds": found.bounds,
        "cells": found.cells_after,
        "reason": next((str(d.get("reason", "")) for d in found.decisions), ""),
    }


class Showing:
    """The requests of the page."""

    def __init__(self, gateway: Gateway, tick_s: float = _TICK_S) -> None:
        self.gateway, self.tick_s = gateway, tick_s

    async def settings(self, request: Request, client: Client) -> Response:
        """`GET /v1/page/settings`."""
        del request
        service = self.gateway.service
        return json_response(
            {
                "space": service.space,
                "bounds": service.bounds,
                "tiles": service.tiles,
                "kinds": list(self.gateway.kinds),
                "retain_ms": service.retain_ms,
                "rights": sorted(client.rights),
                "owner": client.owner,
            }
        )

    async def live(self, request: Request, client: Client) -> Response:
        """`GET /v1/page/live`."""
        client.need("ask")  # who may ask about posts may see them
        self.gateway.allowances.room(client)
        return StreamingResponse(
            self._live(request, client),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _live(self, request: Request, client: Client) -> AsyncIterator[bytes]:
        posts = await asyncio.to_thread(Posts, self.gateway.service.inbox)
        tick = 0
        with self.gateway.allowances.connection(client):
            while not self.gateway.stopping.is_set() and not await request.is_disconnected():
                shown: dict[str, Any] = {"posts": await asyncio.to_thread(posts.fresh)}
                if tick % _RUN_TICKS == 0:
                    shown |= await asyncio.to_thread(self._run)
                if len(shown) > 1 or shown["posts"]:
                    yield b"data: " + msgspec.json.encode(shown) + b"\n\n"
                tick += 1
                await asyncio.sleep(self.tick_s)

    def _run(self) -> dict[str, Any]:
        gateway = self.gateway
        checkpoint = gateway.service.folder / "checkpoint"
        return {
            "engine": gateway.engine.state,
            "batch": gateway.hub.position,
            "waiting_ms": int(gateway.waiting_s * 1000),
            "accepted": gateway.metrics.count("accepted"),
            "rejected": gateway.metrics.count("rejected"),
            "loads": loads(checkpoint),
            "partitions": partitions(checkpoint),
        }
