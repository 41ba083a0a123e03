"""The JSON shapes of events, as msgspec decodes and checks them (SPEC section 3)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

Id = Annotated[str, Meta(min_length=1, max_length=256)]
Time = int | str
Position = tuple[float, float]
Count = Annotated[int, Meta(ge=1, lt=2**61)]
Share = Annotated[float, Meta(ge=0, le=1)]


class RangeShape(Struct, tag_field="kind", tag="range"):
    """A `range` query."""

    region: dict[str, Any]
    where: str | None = None


class KnnShape(Struct, tag_field="kind", tag="knn"):
    """A `knn` query."""

    at: Position
    k: Count
    where: str | None = None
    window: Count | None = None


class TopkShape(Struct, tag_field="kind", tag="topk"):
    """A `topk` query."""

    at: Position
    k: Count
    keywords: list[str]
    alpha: Share


class TermsShape(Struct, tag_field="kind", tag="terms"):
    """A `terms` query."""

    region: dict[str, Any]
    k: Count
    window: Count
    every: Count


Query = RangeShape | KnnShape | TopkShape | TermsShape


class PublishShape(Struct, tag_field="op", tag="publish", gc=False):
    """An object."""

    id: Id
    time: Time
    at: Position
    text: str | None = None
    keywords: list[str] | None = None


class SubscribeShape(Struct, tag_field="op", tag="subscribe"):
    """A subscription."""

    id: Id
    time: Time
    query: Query
    expires: Time | None = None
    owner: str | None = None
    meta: dict[str, Any] | None = None


class UnsubscribeShape(Struct, tag_field="op", tag="unsubscribe"):
    """The end of a subscription."""

    id: Id
    time: Time


class AskShape(Struct, tag_field="op", tag="ask"):
    """A question about the recent past."""

    id: Id
    time: Time
    last: Count
    query: Query


EventShape = PublishShape | SubscribeShape | UnsubscribeShape | AskShape

DECODER: msgspec.json.Decoder[EventShape] = msgspec.json.Decoder(EventShape)
OPS = ("publish", "subscribe", "unsubscribe", "ask")
KINDS = ("range", "knn", "topk", "terms")


def explain(error: Exception, value: object) -> str:
    """One clear line on why an event is refused; `value` is what stood there, if it was JSON."""
    if isinstance(error, RecursionError):
        return "the JSON is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "the line is not UTF-8 text"
    if not isinstance(error, msgspec.ValidationError):
        return f"not valid JSON: {error}"
    if not isinstance(value, dict):
        return "an event must be a JSON object"
    op = value.get("op", UNSET)
    if value and op not in OPS:
        return _unknown("op", op, OPS)
    query = value.get("query")
    if op in ("subscribe", "ask") and isinstance(query, dict) and query.get("kind") not in KINDS:
        return _unknown("query.kind", query.get("kind", UNSET), KINDS)
    message, _, path = str(error).partition(" - at `$")
    name = path.rstrip("`").lstrip(".")
    message = message[:1].lower() + message[1:].replace("`", "'")
    return f"{name}: {message}" if name else message


def _unknown(field: str, value: object, known: tuple[str, ...]) -> str:
    choice = ", ".join(known[:-1]) + " or " + known[-1]
    if value is UNSET or isinstance(value, UnsetType):
        return f"{field}: missing; give {choice}"
    return f"{field}: unknown {str(value)[:40]!r}; use {choice}"
