"""`AsyncClient`: the same as `Client`, with `await` and `async for`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

from nearcast.client.client import AGAIN, SILENCE_S, TRIES
from nearcast.client.messages import (
    MOST,
    Answer,
    Json,
    Notification,
    ServiceError,
    Stream,
    Subscription,
    Taken,
    answer_of,
    checked,
    event_lines,
    given,
    new_key,
    path_of,
    post,
    subscription_of,
    taken_of,
)

__all__ = ["AsyncClient"]


class AsyncClient:
    """One service. Requests are tried again when it is away for a moment; none is taken twice."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        tries: int = TRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.AsyncClient(
            base_url=url, headers=headers, timeout=timeout, transport=transport
        )
        self._tries = tries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def _call(self, method: str, path: str, **more: Any) -> httpx.Response:
        pause = 0.2
        for left in range(self._tries - 1, -1, -1):
            try:
                answer = await self._http.request(method, path, **more)
                if answer.status_code not in AGAIN or not left:
                    return checked(answer)
            except httpx.TransportError:
                if not left:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5.0)
        raise AssertionError("the last try returns or raises")

    # -- writing -----------------------------------------------------------------------------

    async def send(self, events: Iterable[Mapping[str, Any]], *, most: int = MOST) -> Taken:
        """Send events of any sort; `most` in one request. When it returns they are durable."""
        parts = []
        for n, body in enumerate(event_lines(events, most)):
            key = {"Idempotency-Key": new_key()}
            try:
                answer = (await self._call("POST", "/v1/events", content=body, headers=key)).content
            except ServiceError as error:
                if error.status != 400 or "rejected" not in error.body:
                    raise
                answer = msgspec.json.encode(error.body)  # none of them was valid
            parts.append((n * most, answer))
        return taken_of(parts)

    async def publish(
        self,
        id: str,
        at: Sequence[float],
        *,
        text: str | None = None,
        keywords: Sequence[str] | None = None,
        time: int | str | None = None,
    ) -> None:
        """Publish one object; raises `ServiceError` if it is not valid."""
        key = {"Idempotency-Key": new_key()}
        body = msgspec.json.encode(post(id, at, text, keywords, time))
        await self._call("POST", "/v1/events", content=body, headers=key)

    async def subscribe(
        self,
        id: str,
        query: Mapping[str, Any],
        *,
        owner: str | None = None,
        meta: Mapping[str, Any] | None = None,
        expires: int | str | None = None,
        last: int | None = None,
    ) -> bool:
        """Subscribe, replacing what has this id; whether the id is new."""
        body = given(query=query, owner=owner, meta=meta, expires=expires, last=last)
        status: int = (await self._call("PUT", path_of(id), json=body)).status_code
        return status == 201

    async def unsubscribe(self, id: str) -> bool:
        """End a subscription; whether there was one."""
        try:
            await self._call("DELETE", path_of(id))
        except ServiceError as error:
            if error.status != 404:
                raise
            return False
        return True

    # -- reading -----------------------------------------------------------------------------

    async def subscription(self, id: str) -> Subscription:
        """A subscription, with its present result."""
        return subscription_of((await self._call("GET", path_of(id))).json())

    async def subscriptions(
        self, *, owner: str | None = None, kind: str | None = None
    ) -> AsyncIterator[Subscription]:
        """All that stand, in the order of their ids."""
        after: str | None = ""
        while after is not None:
            params = given(owner=owner, kind=kind, after=after, limit=1000)
            page = (await self._call("GET", "/v1/subscriptions", params=params)).json()
            for shown in page["subscriptions"]:
                yield subscription_of(shown)
            after = page["next"]

    async def ask(
        self,
        query: Mapping[str, Any],
        last: int,
        *,
        limit: int | None = None,
        fields: Sequence[str] | None = None,
    ) -> Answer:
        """Ask about the last so many milliseconds."""
        body: Json = given(query=query, last=last, limit=limit, fields=fields)
        return answer_of((await self._call("POST", "/v1/ask", json=body)).content)

    async def notifications(
        self, *subscriptions: str, owner: str | None = None, after: str | None = None
    ) -> AsyncIterator[Notification]:
        """Notifications as they come, of some subscriptions or of all; each exactly once.

        It goes on where it was when the connection breaks. `after`: a cursor; "0" is the oldest
        that is kept; None: from now on.
        """
        stream = Stream(after)
        params = given(subscription=list(subscriptions) or None, owner=owner)
        timeout = httpx.Timeout(30.0, read=SILENCE_S)
        failures = 0
        while True:
            stream.restarted()
            try:
                async with self._http.stream(
                    "GET", "/v1/notifications", params=params, headers=stream.headers(),
                    timeout=timeout,
                ) as answer:  # fmt: skip
                    if answer.status_code != 200:
                        await answer.aread()
                        if answer.status_code not in AGAIN:
                            checked(answer)
                        raise httpx.TransportError(f"answered {answer.status_code}")
                    async for line in answer.aiter_lines():
                        failures = 0
                        if (note := stream.line(line)) is not None:
                            yield note
            except httpx.TransportError:
                failures += 1
                if failures >= self._tries * 4:
                    raise
            await asyncio.sleep(min(0.2 * 2**failures, 5.0))
