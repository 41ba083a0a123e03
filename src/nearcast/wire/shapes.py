"""The JSON shapes of events, as msgspec decodes and checks them (SPEC section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, TypeVar, Union

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from nearcast.model.events import MAX_ID_LENGTH
from nearcast.wire.kind import Kinds

Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]
Time = int | str
Position = tuple[float, float]
Count = Annotated[int, Meta(ge=1, lt=2**61)]
Query = TypeVar("Query")


class PublishShape(Struct, tag_field="op", tag="publish", gc=False):
    """An object."""

    id: Id  # need not differ from those of other objects
    time: Time  # epoch milliseconds, or an RFC 3339 date-time
    at: Position  # [lon, lat] in degrees, or [x, y]
    text: str | None = None  # cut into keywords
    keywords: list[str] | None = None  # each taken whole


class SubscribeShape(Struct, Generic[Query], tag_field="op", tag="subscribe"):
    """A subscription."""

    id: Id  # one that is in use is replaced
    time: Time  # from then on it sees objects
    query: Query  # by its `kind`, as below
    expires: Time | None = None  # from then on it sees none
    owner: str | None = None  # echoed in its notifications
    meta: dict[str, Any] | None = None  # echoed in its notifications
    last: Count | None = None  # milliseconds that it looks back: objects handled before it count


class UnsubscribeShape(Struct, tag_field="op", tag="unsubscribe"):
    """The end of a subscription."""

    id: Id  # an unknown one does nothing
    time: Time  # from then on it sees no objects


Field = Literal["at", "time", "text", "keywords"]


class AskShape(Struct, Generic[Query], tag_field="op", tag="ask", omit_defaults=True):
    """A query about the past, answered once."""

    id: Id  # echoed in the answer
    time: Time  # it is answered over the objects handled before it, up to this time
    last: Count  # milliseconds that it reaches back
    query: Query  # by its `kind`, as below; `limit` and `fields` may also stand in it
    limit: Count | None = None  # at most so many: the best of a ranking, else the latest
    fields: list[Field] | None = None  # of each object, for the answer: at, time, text, keywords


EventShape = PublishShape | SubscribeShape[Any] | UnsubscribeShape | AskShape[Any]

OPS = ("publish", "subscribe", "unsubscribe", "ask")


class Shapes:
    """The events of a run: what msgspec must know to decode the queries of its kinds."""

    def __init__(
        self,
        queries: Sequence[type[Struct]],
        publish: type[PublishShape] = PublishShape,
        subscribe: Any = SubscribeShape,
        unsubscribe: type[UnsubscribeShape] = UnsubscribeShape,
        ask: Any = AskShape,
    ) -> None:
        """The four shapes may be subclasses of those of a log."""
        query: Any = Union[tuple(queries)]  # noqa: UP007 -- as many as there are kinds
        past: Any = Union[tuple(map(ask_query, queries))]  # noqa: UP007
        event: Any = Union[publish, subscribe[query], unsubscribe, ask[past]]  # noqa: UP007
        self.names = tuple(str(q.__struct_config__.tag) for q in queries)
        self.event = event
        self.events: msgspec.json.Decoder[EventShape] = msgspec.json.Decoder(event)
        self.queries: msgspec.json.Decoder[Struct] = msgspec.json.Decoder(query)

    def explain(self, error: Exception, value: object) -> str:
        """One clear line on why an event is refused; `value`: what stood there, if it was JSON."""
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
        kind = query.get("kind", UNSET) if isinstance(query, dict) else None
        if op in ("subscribe", "ask") and isinstance(query, dict) and kind not in self.names:
            return _unknown("query.kind", kind, self.names)
        message, _, path = str(error).partition(" - at `$")
        name = path.rstrip("`").lstrip(".")
        message = message[:1].lower() + message[1:].replace("`", "'")
        return f"{name}: {message}" if name else message


@lru_cache
def ask_query(query: type[Struct]) -> type[Struct]:
    """The query of an ask: that of a subscription, with what only answers have.

    Fields that a query names as `only_standing` mean nothing in asks, and may be missing there.
    """
    more = [("limit", Count | None, None), ("fields", list[Field] | None, None)]
    more += [(name, Count | None, None) for name in getattr(query, "only_standing", ())]
    tag = query.__struct_config__.tag
    return msgspec.defstruct(
        f"{query.__name__}Ask", more, bases=(query,), tag_field="kind", tag=tag, kw_only=True
    )


def shapes_of(kinds: Kinds) -> Shapes:
    """The shapes of events with queries of these kinds."""
    return _shapes(tuple(kind.query for kind in kinds.values()))


@lru_cache
def _shapes(queries: tuple[type[Struct], ...]) -> Shapes:
    return Shapes(queries)


def kind_name(query: Struct) -> str:
    """The kind of a decoded query."""
    return str(query.__struct_config__.tag)


def _unknown(field: str, value: object, known: tuple[str, ...]) -> str:
    choice = ", ".join(known[:-1]) + " or " + known[-1] if len(known) > 1 else known[0]
    if isinstance(value, UnsetType):
        return f"{field}: missing; give {choice}"
    return f"{field}: unknown {str(value)[:40]!r}; use {choice}"
