"""Small things that requests share: bodies read within limits, parameters, JSON answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response

from nearcast.gateway.problems import Problem
from nearcast.model.errors import Invalid
from nearcast.wire.told import Cursor

__all__ = ["body_of", "cursor_of", "json_response", "number_of"]

_BODY_S = 30.0
_SLOWEST = 10_000  # bytes per second, on average


async def body_of(request: Request, most: int) -> bytes:
    """The body; 413 if it is too large, 408 if it comes too slowly."""
    told = request.headers.get("content-length", "")
    if told.isdigit() and int(told) > most:
        raise _too_large(most)
    parts, size = [], 0
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_BODY_S) as limit:
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > most:
                    raise _too_large(most)
                if len(part) >= _SLOWEST:  # as long as it comes, it may take longer
                    limit.reschedule(max(limit.when() or 0.0, loop.time() + _BODY_S))
    except TimeoutError:
        raise Problem(408, "the body came too slowly", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise Problem(400, "the body was cut off") from None
    return b"".join(parts)


def _too_large(most: int) -> Problem:
    return Problem(
        413,
        f"the body has more than {most:,} bytes; send it in parts",
        {"Connection": "close"},
    )


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """An answer."""
    return Response(msgspec.json.encode(value), status, headers, "application/json")


def number_of(request: HTTPConnection, name: str, usual: int, most: int) -> int:
    """A whole number of the query, from 1 on."""
    text = request.query_params.get(name)
    if text is None:
        return usual
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= most:
        raise Problem(400, f"{name}: give a number from 1 to {most:,}")
    return int(text[:9])


def cursor_of(text: str | None, name: str = "after") -> Cursor | None:
    """A cursor that a client sends; None: it sends none."""
    if text is None or text == "":
        return None
    try:
        return Cursor.read(text)
    except Invalid as error:
        raise Problem(400, f"{name}: {error}") from None
