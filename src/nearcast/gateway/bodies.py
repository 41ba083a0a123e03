"""Bodies of requests and answers: the structs that check the one and describe both."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nearcast.wire.shapes import Count, Time

__all__ = [
    "AsOf",
    "AskBody",
    "EventsAnswer",
    "LineReason",
    "Listed",
    "ProblemBody",
    "SubscriptionBody",
    "SubscriptionShown",
    "WebhookBody",
    "WebhookShown",
    "Webhooks",
]  # fmt: skip

Reason = Annotated[str, Meta(description="one clear line")]


class ProblemBody(msgspec.Struct):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: Reason


class LineReason(msgspec.Struct):
    """A line that was refused."""

    line: int
    reason: Reason


class EventsAnswer(msgspec.Struct):
    """What became of the events of a request."""

    accepted: int
    rejected: list[LineReason]


class SubscriptionBody(msgspec.Struct, forbid_unknown_fields=True):
    """A subscription without its id."""

    query: dict[str, Any]
    owner: str | None = None
    meta: dict[str, Any] | None = None
    expires: Time | None = None
    last: Count | None = None


class AsOf(msgspec.Struct, omit_defaults=True):
    """The state of the notification log that an answer is made from."""

    batch: int
    time: int
    engine: str = ""


class SubscriptionShown(msgspec.Struct, omit_defaults=True):
    """A subscription that stands, with its present result."""

    id: str
    query: dict[str, Any]
    time: int
    owner: str | None = None
    meta: dict[str, Any] | None = None
    expires: Time | None = None
    last: int | None = None
    result: dict[str, Any] | None = None
    as_of: AsOf | None = None


class Listed(msgspec.Struct):
    """Some subscriptions, by their ids; `next` is the `after` of the rest, if there is one."""

    subscriptions: list[SubscriptionShown]
    next: str | None
    as_of: AsOf


class AskBody(msgspec.Struct, forbid_unknown_fields=True):
    """A query about the past, without id and time."""

    query: dict[str, Any]
    last: Count
    limit: Count | None = None
    fields: list[str] | None = None


class WebhookBody(msgspec.Struct, forbid_unknown_fields=True):
    """Where notifications are posted to, and which."""

    url: Annotated[str, Meta(min_length=1, max_length=2048)]
    subscriptions: Annotated[list[str], Meta(min_length=1, max_length=10_000)] | None = None
    owner: str | None = None
    secret: Annotated[str, Meta(min_length=1, max_length=256)] | None = None


class WebhookShown(msgspec.Struct, omit_defaults=True):
    """A webhook; its secret is never shown."""

    name: str
    url: str
    cursor: str
    state: str
    signed: bool
    subscriptions: list[str] | None = None
    owner: str | None = None
    failures: int = 0
    dead: int = 0


class Webhooks(msgspec.Struct):
    """All webhooks of an owner."""

    webhooks: list[WebhookShown]
