"""Asks over HTTP: answered by a reader of the objects that the run holds, or by the run itself.

`gateway.reader` answers as of the latest batch. What it cannot answer (a run with a fitted table or
on a cluster; what only the archive holds) goes into the event log as an ask, and the answer that is
reported is handed on. Both equal a logged ask at the batch and time that `as_of` names.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
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
from nearcast.gateway.reader import Answered, Reader
from nearcast.gateway.tokens import Client
from nearcast.wire.arriving import Arrived
from nearcast.wire.shapes import AskShape

__all__ = ["Asking"]

_WAIT_S = 30.0
_CATCH_UP_S, _LOOK_S = 1.0, 0.002
_MOST_WAITING = 1000


class Asking:
    """The asks of one gateway."""

    def __init__(self, gateway: Gateway, wait_s: float = _WAIT_S) -> None:
        self.gateway, self.wait_s = gateway, wait_s
        self._waiting = 0
        self._pool = ThreadPoolExecutor(1, "asks")  # one after the other, beside all other work

    async def ask(self, request: Request, client: Client) -> Response:
        """`POST /v1/ask`."""
        client.need("ask")
        body = await body_of(request, client.limits.body_bytes)
        id_, asked = self._checked(body)
        ask = asked.event
        assert isinstance(ask, AskShape)
        reader = self.gateway.reader
        if reader is not None and reader.held is not None:
            await self._caught_up(reader)
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._pool, reader.answer, ask)
            if found is not None:
                return self._respond(found)
            if not self.gateway.service.archive:
                raise Problem(400, reader.beyond(ask))
        return await self._by_the_run(id_, asked.line)

    async def _caught_up(self, reader: Reader) -> None:
        """Wait a moment for the batch whose notifications clients have seen by now."""
        seen, since = self.gateway.hub.position, time.monotonic()
        while reader.held is not None and reader.held.batch < seen:
            if time.monotonic() - since > _CATCH_UP_S:
                return  # `as_of` says how old the answer is
            await asyncio.sleep(_LOOK_S)

    def _respond(self, found: Answered) -> Response:
        as_of = b'"batch":%d,"time":%d' % (found.batch, found.time)
        if self._away:  # it may be older than one would think
            as_of += b',"engine":' + msgspec.json.encode(self.gateway.engine.state)
        return Response(b'{"as_of":{%s},%s}' % (as_of, found.body), media_type="application/json")

    @property
    def _away(self) -> bool:
        return self.gateway.engine.state not in ("running", "unknown")

    async def _by_the_run(self, id_: str, line: bytes) -> Response:
        """Answered by a batch."""
        if self._away:
            state = self.gateway.engine.state
            raise Problem(503, f"the engine is {state}; repeat later", {"Retry-After": "5"})
        if self._waiting >= _MOST_WAITING:
            raise Problem(503, "too many asks wait for their answers", {"Retry-After": "1"})
        self._waiting += 1
        try:
            return json_response(await self._answer(id_, line))
        finally:
            self._waiting -= 1

    def _checked(self, body: bytes) -> tuple[str, Arrived]:
        """An id, and the ask as an event of the log."""
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
        return id_, taken[0]

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
