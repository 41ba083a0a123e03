"""`Client`: a service from ordinary code."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

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

__all__ = ["Client"]

TRIES = 5
AGAIN = (429, 502, 503, 504)
"""Answers after which a request is worth another try."""
SILENCE_S = 60.0
"""A stream that says nothing for so long, not even a heartbeat, is dead."""


class Client:
    """One service. Requests are tried again when it is away for a moment; none is taken twice."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        tries: int = TRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(
            base_url=url, headers=headers, timeout=timeout, transport=transport
        )
        self._tries = tries

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def _call(self, method: str, path: str, **more: Any) -> httpx.Response:
        pause = 0.2
        for left in range(self._tries - 1, -1, -1):
            try:
                answer = self._http.request(method, path, **more)
                if answer.status_code not in AGAIN or not left:
                    return checked(answer)
            except httpx.TransportError:
                if not left:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, 5.0)
        raise AssertionError("the last try returns or raises")

    # -- writing -----------------------------------------------------------------------------

    def send(self, events: Iterable[Mapping[str, Any]], *, most: int = MOST) -> Taken:
        """Send events of any sort; `most` in one request. When it returns they are durable."""
        parts = []
        for n, body in enumerate(event_lines(events, most)):
            key = {"Idempotency-Key": new_key()}
            try:
                answer = self._call("POST", "/v1/events", content=body, headers=key).content
            except ServiceError as error:
                if error.status != 400 or "rejected" not in error.body:
                    raise
                answer = msgspec.json.encode(error.body)  # none of them was valid
            parts.append((n * most, answer))
        return taken_of(parts)

    def publish(
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
        self._call("POST", "/v1/events", content=body, headers=key)

    def subscribe(
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
        status: int = self._call("PUT", path_of(id), json=body).status_code
        return status == 201

    def unsubscribe(self, id: str) -> bool:
        """End a subscription; whether there was one."""
        try:
            self._call("DELETE", path_of(id))
        except ServiceError as error:
            if error.status != 404:
                raise
            return False
        return True

    # -- reading -----------------------------------------------------------------------------

    def subscription(self, id: str) -> Subscription:
        """A subscription, with its present result."""
        return subscription_of(self._call("GET", path_of(id)).json())

    def subscriptions(
        self, *, owner: str | None = None, kind: str | None = None
    ) -> Iterator[Subscription]:
        """All that stand, in the order of their ids."""
        after: str | None = ""
        while after is not None:
            params = given(owner=owner, kind=kind, after=after, limit=1000)
            page = self._call("GET", "/v1/subscriptions", params=params).json()
            yield from map(subscription_of, page["subscriptions"])
            after = page["next"]

    def ask(
        self,
        query: Mapping[str, Any],
        last: int,
        *,
        limit: int | None = None,
        fields: Sequence[str] | None = None,
    ) -> Answer:
        """Ask about the last so many milliseconds."""
        body: Json = given(query=query, last=last, limit=limit, fields=fields)
        return answer_of(self._call("POST", "/v1/ask", json=body).content)

    def notifications(
        self, *subscriptions: str, owner: str | None = None, after: str | None = None
    ) -> Iterator[Notification]:
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
                with self._http.stream(
                    "GET", "/v1/notifications", params=params, headers=stream.headers(),
                    timeout=timeout,
                ) as answer:  # fmt: skip
                    if answer.status_code != 200:
                        answer.read()
                        if answer.status_code not in AGAIN:
                            checked(answer)
                        raise httpx.TransportError(f"answered {answer.status_code}")
                    for line in answer.iter_lines():
                        failures = 0
                        if (note := stream.line(line)) is not None:
                            yield note
            except httpx.TransportError:
                failures += 1
                if failures >= self._tries * 4:
                    raise
            time.sleep(min(0.2 * 2**failures, 5.0))
