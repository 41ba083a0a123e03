"""Asks over HTTP, answered by the run: the ask goes into the event log, the answer comes out.

The answer is the logged one, so it equals it; `as_of` names the batch in which it stands.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from nearcast.gateway.answering import body_of, json_response
from nearcast.gateway.bodies import AskBody
from nearcast.gateway.core import Gateway, now_ms
from nearcast.gateway.hub import ASKED, Note
from nearcast.gateway.inbox import Entry
from nearcast.gateway.problems import Problem
from nearcast.gateway.tokens import Client

__all__ = ["Asking"]

_WAIT_S = 30.0
_MOST_WAITING = 1000


class Asking:
    """The asks of one gateway."""

    def __init__(self, gateway: Gateway, wait_s: float = _WAIT_S) -> None:
        self.gateway, self.wait_s = gateway, wait_s
        self._waiting = 0

    async def ask(self, request: Request, client: Client) -> Response:
        """`POST /v1/ask`."""
        client.need("ask")
        body = await body_of(request, client.limits.body_bytes)
        line = self._line(body)
        if self.gateway.engine.state not in ("running", "unknown"):
            state = self.gateway.engine.state
            raise Problem(503, f"the engine is {state}; repeat later", {"Retry-After": "5"})
        if self._waiting >= _MOST_WAITING:
            raise Problem(503, "too many asks wait for their answers", {"Retry-After": "1"})
        self._waiting += 1
        try:
            return json_response(await self._answer(*line))
        finally:
            self._waiting -= 1

    def _line(self, body: bytes) -> tuple[str, bytes]:
        """(id, line of the event log) of an ask."""
        try:
            msgspec.json.decode(body, type=AskBody)
            raw = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, RecursionError) as error:
            raise Problem(400, f"the body is no ask: {error}") from None
        id_ = f"{ASKED}{uuid.uuid4().hex}"
        parts = [b'"op":"ask","id":"%s"' % id_.encode()]
        parts += [b'"%s":%s' % (name.encode(), bytes(value)) for name, value in raw.items()]
        text = (b"{" + b",".join(parts) + b"}").replace(b"\n", b" ").replace(b"\r", b" ")
        taken, refused, _ = self.gateway.arrival.check([text], now_ms())
        if refused:
            raise Problem(400, refused[0].reason)
        kept = self.gateway.service.retain_ms
        last = getattr(taken[0].event, "last", 0)
        if last > kept and not self.gateway.service.archive:
            how = f"the last {kept:,} ms of objects" if kept else "no objects"
            raise Problem(400, f"last: reaches back {last:,} ms, and this service retains {how}")
        return id_, taken[0].line

    async def _answer(self, id_: str, line: bytes) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Note] = loop.create_future()

        def then(note: Note) -> None:
            if not answered.done():
                answered.set_result(note)

        self.gateway.hub.expect(id_, then)
        try:
            await self.gateway.append(Entry(line + b"\n"))
            async with asyncio.timeout(self.wait_s):
                note = await answered
        except TimeoutError:
            raise Problem(
                504, f"no answer within {self.wait_s:.0f} s; repeat later", {"Retry-After": "5"}
            ) from None
        finally:
            self.gateway.hub.forget(id_)
        said: dict[str, Any] = msgspec.json.decode(note.line)
        as_of = {"batch": note.cursor.batch, "time": said.pop("time")}
        return {"as_of": as_of} | {k: v for k, v in said.items() if k not in ("id", "event")}
