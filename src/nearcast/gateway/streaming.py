"""Notifications as they come: server-sent events and WebSocket, from any cursor on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from nearcast.gateway.answering import cursor_of
from nearcast.gateway.core import Gateway, now_ms
from nearcast.gateway.hub import Listener, Note, Wanted
from nearcast.gateway.problems import Problem, problem
from nearcast.gateway.reading import owner_of
from nearcast.gateway.tokens import Client

__all__ = ["Streaming", "with_cursor"]

BEAT_S = 15.0
_MOST_IDS = 10_000
_RESTARTING = 1012
_POLICY = 1008  # closing code: what was sent breaks the rules


class _Wish(msgspec.Struct, forbid_unknown_fields=True):
    """What a WebSocket client sends."""

    subscribe: list[str] | None = None  # ids; without it all that the client may see
    after: str | int | None = None  # a cursor; 0 as a number is meant as well


class Streaming:
    """The streams of one gateway."""

    def __init__(self, gateway: Gateway, beat_s: float = BEAT_S) -> None:
        self.gateway, self.beat_s = gateway, beat_s

    def wanted(
        self, ids: Iterable[str], owner: str | None, client: Client, all_ids: bool
    ) -> Wanted:
        """What a client may have of what it wants."""
        chosen = frozenset(ids)
        if len(chosen) > _MOST_IDS:
            raise Problem(400, f"subscription: no more than {_MOST_IDS:,} of them; use owner")
        owner = owner_of(owner, client)
        if client.owner is not None:
            for id_ in chosen:
                found = self.gateway.registry.subscription(id_, now_ms())
                if found is None or not client.owns(found.owner):
                    raise Problem(404, f"there is no subscription {id_!r}")
        return Wanted(None if all_ids else chosen, owner)

    # -- server-sent events ------------------------------------------------------------------

    async def events(self, request: Request, client: Client) -> Response:
        """`GET /v1/notifications`."""
        client.need("subscribe")
        given = request.query_params
        ids = [i for text in given.getlist("subscription") for i in text.split(",") if i]
        wanted = self.wanted(ids, given.get("owner"), client, not ids)
        # A browser that comes back repeats the address that it began with.
        last = request.headers.get("last-event-id")
        after = cursor_of(last, "Last-Event-ID") or cursor_of(given.get("after"))
        self.gateway.allowances.room(client)
        listener = self.gateway.hub.listen(wanted, after)
        return StreamingResponse(
            self._events(listener, client),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _events(self, listener: Listener, client: Client) -> AsyncIterator[bytes]:
        channel = "sse"
        with self.gateway.allowances.connection(client), self._counted(channel):
            yield b"retry: 1000\nid: %s\n\n" % str(listener.cursor).encode()
            async for notes in listener.batches(self.beat_s):
                if not notes:  # without data it moves the cursor and is no event
                    yield b": beat\nid: %s\n\n" % str(listener.cursor).encode()
                    continue
                yield b"".join(
                    b"id: %s\ndata: %s\n\n" % (str(n.cursor).encode(), n.line) for n in notes
                )
                self._delivered(channel, notes)

    # -- WebSocket ---------------------------------------------------------------------------

    async def socket(self, socket: WebSocket, client: Client) -> None:
        """`GET /v1/stream`."""
        client.need("subscribe")
        self.gateway.allowances.room(client)
        await socket.accept()
        sending: asyncio.Task[None] | None = None
        with self.gateway.allowances.connection(client), self._counted("websocket"):
            try:
                while True:
                    text = await socket.receive_text()
                    try:
                        listener = self._listener(text, client)
                    except Problem as error:
                        await socket.send_text(_as_text(error))
                        continue
                    if sending is not None:
                        await _end(sending)
                    sending = asyncio.create_task(self._send(socket, listener))
            except (WebSocketDisconnect, RuntimeError, KeyError):
                pass  # it went away, or sent bytes
            finally:
                if sending is not None:
                    await _end(sending)
        if socket.application_state is WebSocketState.CONNECTED:
            with suppress(RuntimeError, WebSocketDisconnect):  # it may have gone meanwhile
                await socket.close(_POLICY, "send JSON text")

    def _listener(self, text: str, client: Client) -> Listener:
        try:
            wish = msgspec.json.decode(text, type=_Wish)
        except (msgspec.DecodeError, RecursionError) as error:
            form = '{"subscribe":[ids],"after":CURSOR}'
            raise Problem(400, f"send {form}: {error}") from None
        wanted = self.wanted(wish.subscribe or (), None, client, wish.subscribe is None)
        after = None if wish.after is None else str(wish.after)
        return self.gateway.hub.listen(wanted, cursor_of(after))

    async def _send(self, socket: WebSocket, listener: Listener) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            async for notes in listener.batches(self.beat_s):
                if not notes:
                    await socket.send_text(f'{{"cursor":"{listener.cursor}"}}')
                for note in notes:
                    await socket.send_text(with_cursor(note).decode())
                if notes:
                    self._delivered("websocket", notes)
            await socket.close(_RESTARTING, "the gateway stops; come back")

    # -- figures -----------------------------------------------------------------------------

    @contextmanager
    def _counted(self, channel: str) -> Iterator[None]:
        gauge = self.gateway.metrics.connections.labels(channel)
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()

    def _delivered(self, channel: str, notes: list[Note]) -> None:
        self.gateway.metrics.notifications.labels(channel, "delivered").inc(len(notes))
        self.gateway.observe_lag(channel, notes[-1])


def with_cursor(note: Note) -> bytes:
    """A notification as one object with its cursor."""
    return b'{"cursor":"%s",%s' % (str(note.cursor).encode(), note.line[1:])


def _as_text(error: Problem) -> str:
    return msgspec.json.encode(problem(error.status, error.detail)).decode()


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def token_of(connection: HTTPConnection) -> str | None:
    """The token of a stream: browsers cannot send a header with those."""
    header = connection.headers.get("authorization")
    given = connection.query_params.get("access_token")
    return header if header or not given else f"Bearer {given}"
