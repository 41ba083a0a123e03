"""Requests that write: events, subscriptions put and deleted.

A write is checked, appended to the event log, and acknowledged when it is on the disk.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from nearcast.gateway.answering import body_of, json_response
from nearcast.gateway.bodies import EventsAnswer, LineReason, SubscriptionBody
from nearcast.gateway.core import Gateway, now_ms
from nearcast.gateway.hub import ASKED
from nearcast.gateway.inbox import Entry
from nearcast.gateway.page_requests import Posts
from nearcast.gateway.problems import Problem
from nearcast.gateway.registering import Meant, Taken, taken_field
from nearcast.gateway.tokens import Client
from nearcast.model.errors import Invalid
from nearcast.model.events import MAX_ID_LENGTH
from nearcast.wire.arriving import Arrived, lines_of
from nearcast.wire.shapes import AskShape, EventShape, PublishShape, SubscribeShape

__all__ = ["Writing"]

_LARGE = 64 << 10  # bytes of a body from which it is checked beside the loop
_MOST_REASONS = 1000
_KEY_LENGTH = 255


class Writing:
    """The requests of one gateway."""

    def __init__(self, gateway: Gateway, posts: Posts) -> None:
        """`posts` are told of what was taken."""
        self.gateway, self._posts = gateway, posts
        self._claims: dict[str, tuple[str | None, int]] = {}  # ids on their way: owner, how often
        self._keys: dict[str, tuple[asyncio.Lock, int]] = {}  # and how many wait for it

    # -- POST /v1/events ---------------------------------------------------------------------

    async def events(self, request: Request, client: Client) -> Response:
        """Events, as lines or as an array."""
        if not client.rights & {"publish", "subscribe", "ask"}:
            client.need("publish")
        body = await body_of(request, client.limits.body_bytes)
        key = self._key(request, client)
        if key is None:
            return await self._take(body, client, None)
        async with self._alone(key):
            return await self._take(body, client, key)

    @asynccontextmanager
    async def _alone(self, key: str) -> AsyncIterator[None]:
        """Requests with the same key come one after the other."""
        lock, waiting = self._keys.get(key, (asyncio.Lock(), 0))
        self._keys[key] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            _, waiting = self._keys.pop(key)
            if waiting > 1:
                self._keys[key] = lock, waiting - 1

    def _key(self, request: Request, client: Client) -> str | None:
        """The key of a request, which is the client's own and tells nobody what it was."""
        given = request.headers.get("idempotency-key")
        if given is None:
            return None
        if not 0 < len(given) <= _KEY_LENGTH:
            raise Problem(400, f"Idempotency-Key: give 1 to {_KEY_LENGTH} characters")
        text = f"{client.name}\n{given}".encode()
        return hmac.new(self.gateway.secret, text, hashlib.sha256).hexdigest()[:32]

    async def _take(self, body: bytes, client: Client, key: str | None) -> Response:
        digest = hashlib.sha256(body).hexdigest()[:16] if key else ""
        before = await self._before(key, digest)
        claimed: list[str] = []
        try:
            work = partial(self._check, body, client, claimed)
            large = len(body) > _LARGE
            taken, refused, valid = await asyncio.to_thread(work) if large else work()
            reasons = [LineReason(r.place, r.reason) for r in refused[:_MOST_REASONS]]
            self.gateway.metrics.events.labels("accepted").inc(valid)
            self.gateway.metrics.events.labels("rejected").inc(len(refused))
            if not valid:
                what = reasons[0].reason if reasons else "the body has no events"
                where = f"line {reasons[0].line}: " if reasons else ""
                raise Problem(400, f"no valid event: {where}{what}", rejected=reasons, accepted=0)
            self.gateway.allowances.events(client, valid)
            await self._append(taken, before, key, digest)
            self._posts.add(taken[before:])
            controls = sum(not isinstance(a.event, (PublishShape, AskShape)) for a in taken)
            if controls:
                self.gateway.audit.note(client.name, "events", "", 202, controls=controls)
        finally:
            self._release(claimed)
        return json_response(EventsAnswer(valid, reasons), 202)

    async def _before(self, key: str | None, digest: str) -> int:
        """How many events of a request with this key are in the log already."""
        if key is None:
            return 0
        gateway = self.gateway
        # Another gateway may have taken it, and died before it could say so.
        await asyncio.to_thread(gateway.registering.catch_up, gateway.inbox.current)
        found = gateway.registry.request(key)
        if found is None:
            return 0
        if found[1] != digest:
            raise Problem(
                422, "Idempotency-Key: was used for another body; use a new key for new events"
            )
        return found[0]

    def _check(
        self, body: bytes, client: Client, claimed: list[str]
    ) -> tuple[list[Arrived], list[Any], int]:
        try:
            lines = lines_of(body)
        except Invalid as error:
            raise Problem(400, str(error)) from None
        admit = _Admission(self, client, claimed)
        return self.gateway.arrival.check(lines, now_ms(), admit)

    async def _append(
        self, taken: list[Arrived], before: int, key: str | None, digest: str
    ) -> None:
        """Append what is not in the log yet."""
        taken = taken[before:]
        if not taken:
            return
        mark = Taken(key, before, len(taken), digest) if key else None
        lines = [a.line for a in taken]
        if mark:
            lines[0] = lines[0][:-1] + taken_field(mark) + b"}"
        controls = [
            line
            for a, line in zip(taken, lines, strict=True)
            if not isinstance(a.event, (PublishShape, AskShape))
        ]
        await self.gateway.append(Entry(b"\n".join(lines) + b"\n", Meant(controls, mark)))

    # -- subscriptions -----------------------------------------------------------------------

    async def put(self, request: Request, client: Client) -> Response:
        """`PUT /v1/subscriptions/{id}`."""
        client.need("subscribe")
        id_ = _id_of(request)
        body = await body_of(request, client.limits.body_bytes)
        try:
            msgspec.json.decode(body, type=SubscriptionBody)
            raw = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, RecursionError) as error:
            raise Problem(400, f"the body is no subscription: {error}") from None
        parts = [f'"op":"subscribe","id":{msgspec.json.encode(id_).decode()}'.encode()]
        parts += [b'"%s":%s' % (name.encode(), bytes(value)) for name, value in raw.items()]
        line = (b"{" + b",".join(parts) + b"}").replace(b"\n", b" ").replace(b"\r", b" ")
        claimed: list[str] = []
        try:
            admit = _Admission(self, client, claimed)
            if not admit.may_use(id_):
                raise Problem(404, f"there is no subscription {id_!r}")
            taken, refused, _ = self.gateway.arrival.check([line], now_ms(), admit)
            if refused:
                raise admit.problem or Problem(400, refused[0].reason)
            known = self.gateway.registry.subscription(id_, now_ms()) is not None
            self.gateway.allowances.events(client, 1)
            await self._append(taken, 0, None, "")
        finally:
            self._release(claimed)
        self.gateway.audit.note(client.name, "subscribe", id_, 200 if known else 201)
        location = {"Location": request.url.path}
        return json_response({"id": id_}, 200 if known else 201, location)

    async def delete(self, request: Request, client: Client) -> Response:
        """`DELETE /v1/subscriptions/{id}`."""
        client.need("subscribe")
        id_ = _id_of(request)
        found = self.gateway.registry.subscription(id_, now_ms())
        if found is None or not client.owns(found.owner):
            raise Problem(404, f"there is no subscription {id_!r}")
        line = msgspec.json.encode({"op": "unsubscribe", "id": id_, "time": now_ms()})
        await self.gateway.append(Entry(line + b"\n", Meant((line,))))
        self.gateway.audit.note(client.name, "unsubscribe", id_, 204)
        return Response(status_code=204)

    # -- whose an id is ----------------------------------------------------------------------

    def owner_of(self, id_: str) -> tuple[bool, str | None]:
        """(whether an id is in use or about to be, whose it is)."""
        if id_ in self._claims:
            return True, self._claims[id_][0]
        found = self.gateway.registry.subscription(id_, now_ms())
        return (False, None) if found is None else (True, found.owner)

    def claim(self, id_: str, owner: str | None) -> None:
        """Until it is registered, an id belongs to who is about to subscribe it."""
        self._claims[id_] = owner, self._claims.get(id_, (None, 0))[1] + 1

    def _release(self, claimed: list[str]) -> None:
        for id_ in claimed:
            owner, count = self._claims.pop(id_)
            if count > 1:
                self._claims[id_] = owner, count - 1


class _Admission:
    """Which events of one request go into the log, and under whose name."""

    def __init__(self, writing: Writing, client: Client, claimed: list[str]) -> None:
        self.writing, self.client, self.claimed = writing, client, claimed
        self.service = writing.gateway.service
        self.problem: Problem | None = None  # the latest, with its own status

    def may_use(self, id_: str) -> bool:
        """Whether an id of a subscription is free, or the client's own."""
        used, owner = self.writing.owner_of(id_)
        return not used or self.client.owns(owner)

    def __call__(self, event: EventShape) -> tuple[bool, bytes]:
        """Raises `Invalid` for what is refused."""
        with self._as_invalid():
            if isinstance(event, PublishShape):
                self.client.need("publish")
                return True, b""
            if isinstance(event, AskShape):
                self.client.need("ask")
                self._looks_back(event.last)
                if event.id.startswith(ASKED):
                    raise Invalid(f"id: {ASKED}… is for asks over HTTP; choose another one")
                return True, b""
            self.client.need("subscribe")
            if isinstance(event, SubscribeShape):
                return True, self._subscribe(event)
            # To unsubscribe what is another's does what it does for an unknown id: nothing.
            return self.may_use(event.id), b""

    def _subscribe(self, event: SubscribeShape[Any]) -> bytes:
        if not self.may_use(event.id):
            raise Invalid("id: cannot be used here; choose another one")
        if event.last is not None:
            self._looks_back(event.last)
        owner = self.client.owner
        if owner is not None and event.owner not in (None, owner):
            raise Invalid(f"owner: this token subscribes for {owner!r} alone; leave it out")
        if not self.writing.owner_of(event.id)[0]:
            self.writing.gateway.allowances.subscriptions(self.client, 1)
        self.writing.claim(event.id, event.owner if owner is None else owner)
        self.claimed.append(event.id)
        if owner is None or event.owner is not None:
            return b""
        return b',"owner":' + msgspec.json.encode(owner)

    @contextmanager
    def _as_invalid(self) -> Iterator[None]:
        """What is a problem of a whole request is a reason for one line here."""
        try:
            yield
        except Problem as error:
            self.problem = error
            raise Invalid(error.detail) from None

    def _looks_back(self, last: int) -> None:
        kept = self.service.retain_ms
        if last > kept and not self.service.archive:
            how = f"the last {kept:,} ms of objects" if kept else "no objects"
            raise Invalid(f"last: reaches back {last:,} ms, and this service retains {how}")


def _id_of(request: Request) -> str:
    id_ = str(request.path_params["id"])
    if not 1 <= len(id_) <= MAX_ID_LENGTH:
        raise Problem(400, f"id: give 1 to {MAX_ID_LENGTH} characters")
    return id_
