"""How the run is, for the map page: what each shard does, and whose part of the map is whose.

Both are read from the checkpoint, where the engine writes them: no request goes to it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from nearcast.gateway.answering import json_response
from nearcast.gateway.core import Gateway
from nearcast.gateway.tokens import Client

__all__ = ["Showing", "loads", "partitions"]


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


class _Decision(msgspec.Struct):
    batch: int
    kind: str
    bounds: list[float] = []
    cells_after: list[list[int]] = []
    decisions: list[dict[str, Any]] = []


_RECORD = msgspec.json.Decoder(_BatchRecord)
_DECISION = msgspec.json.Decoder(_Decision)


def _newest(folder: Path) -> bytes | None:
    """The newest of some numbered files; None: there is none."""
    try:
        newest = max(folder.glob("*.json"), default=None)
        return None if newest is None else newest.read_bytes()
    except OSError:
        return None  # there is no such folder yet, or the file was pruned just now


def loads(checkpoint: Path) -> dict[str, Any] | None:
    """What each shard did in the latest batch; None: no batch is done."""
    data = _newest(checkpoint / "reports")
    if data is None:
        return None
    record = _RECORD.decode(data)
    shards = sorted(record.reports, key=lambda r: r.shard)
    return {"batch": record.batch, "seconds": record.seconds, "shards": shards}


def partitions(checkpoint: Path) -> dict[str, Any] | None:
    """Which shard owns which cell, by the latest decision of a router that deals by place."""
    data = _newest(checkpoint / "balance")
    if data is None:
        return None
    found = _DECISION.decode(data)
    if not found.cells_after:
        return None
    reason = next((str(d.get("reason", "")) for d in found.decisions), "")
    return {
        "batch": found.batch,
        "kind": found.kind,
        "bounds": found.bounds,
        "cells": found.cells_after,
        "reason": reason,
    }


class Showing:
    """The request of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    async def run(self, request: Request, client: Client) -> Response:
        """`GET /v1/run`."""
        del request
        client.need("ask")
        return json_response(await asyncio.to_thread(self._run))

    def _run(self) -> dict[str, Any]:
        checkpoint = self.gateway.service.folder / "checkpoint"
        count = self.gateway.metrics.count
        return {
            "accepted": count("accepted"),
            "rejected": count("rejected"),
            "loads": loads(checkpoint),
            "partitions": partitions(checkpoint),
        }
