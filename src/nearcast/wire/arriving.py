"""Events that arrive one request at a time: checked by the rules of the log before they are in it.

What is valid leaves as a line that the log may hold; the rest leaves with the reason that
`rejected` would give. A `time` may be missing: it is then the moment of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from nearcast.model.errors import Invalid
from nearcast.model.space import Space, check_position
from nearcast.wire.asks import AskBuilder
from nearcast.wire.kind import Kinds
from nearcast.wire.shapes import (
    AskShape,
    EventShape,
    PublishShape,
    Shapes,
    SubscribeShape,
    Time,
    UnsubscribeShape,
)
from nearcast.wire.subscriptions import ControlBuilder
from nearcast.wire.times import to_ms

__all__ = ["Arrival", "Arrived", "Refused", "lines_of"]

Query = TypeVar("Query")


class _Publish(PublishShape, tag_field="op", tag="publish", kw_only=True):
    time: Time | UnsetType = UNSET  # type: ignore[assignment]


class _Subscribe(
    SubscribeShape[Query], Generic[Query], tag_field="op", tag="subscribe", kw_only=True
):
    time: Time | UnsetType = UNSET  # type: ignore[assignment]


class _Unsubscribe(UnsubscribeShape, tag_field="op", tag="unsubscribe", kw_only=True):
    time: Time | UnsetType = UNSET  # type: ignore[assignment]


class _Ask(AskShape[Query], Generic[Query], tag_field="op", tag="ask", kw_only=True):
    time: Time | UnsetType = UNSET  # type: ignore[assignment]


class Arrived(NamedTuple):
    """An event that is valid."""

    place: int  # of its line in the request, from 1
    event: EventShape  # `time` is epoch milliseconds
    line: bytes  # as the log will hold it, without the end of the line


class Refused(NamedTuple):
    """A line that is not, and why."""

    place: int
    reason: str


Admit = Callable[[EventShape], tuple[bool, bytes]]
"""Whether an event goes into the log, and what its line says besides (`,"owner":"…"`).

It raises `Invalid` for one that is refused.
"""


def _as_it_is(_: EventShape) -> tuple[bool, bytes]:
    return True, b""


class Arrival:
    """Checks the events of requests for one run."""

    def __init__(self, space: Space, kinds: Kinds) -> None:
        self.space, self.kinds = space, kinds
        self.shapes = _arriving(tuple(kind.query for kind in kinds.values()))

    def check(
        self, lines: Iterable[bytes], now_ms: int, admit: Admit = _as_it_is
    ) -> tuple[list[Arrived], list[Refused], int]:
        """(what is valid and goes into the log, what is refused, how many are valid) of the lines.

        Blank lines are skipped, as in a log.
        """
        taken: list[Arrived] = []
        refused: list[Refused] = []
        valid = 0
        controls, asks = (
            ControlBuilder(self.space, self.kinds),
            AskBuilder(self.space, self.kinds, ""),
        )
        decode, stamp = self.shapes.events.decode, b',"time":%d}' % now_ms
        for place, line in enumerate(lines, 1):
            try:
                event = decode(line)
                arrived = isinstance(event.time, UnsetType)
                if arrived:
                    event.time = now_ms
                self._check(event, controls, asks)
                goes, more = admit(event)
            except Invalid as error:
                refused.append(Refused(place, str(error)))
                continue
            except Exception as error:  # a bad line is refused, whatever it holds
                if line.strip():
                    refused.append(Refused(place, self._why(error, line)))
                continue
            valid += 1
            if goes:
                # At the end: of fields that are there twice, the last one counts.
                text = line.strip()
                text = text[:-1] + stamp if arrived else text
                text = text[:-1] + more + b"}" if more else text
                taken.append(Arrived(place, event, text))
        return taken, refused, valid

    def _check(self, event: EventShape, controls: ControlBuilder, asks: AskBuilder) -> None:
        """Raise `Invalid` for what decoding lets pass; every `time` is a number afterwards."""
        if isinstance(event, PublishShape):
            event.time = to_ms(event.time)
            check_position(self.space, *event.at)
        elif isinstance(event, SubscribeShape):
            controls.subscribe(event, 0, "", 1, 0)
            event.time = to_ms(event.time)
        elif isinstance(event, UnsubscribeShape):
            event.time = to_ms(event.time)
        else:
            asks.add(event, 0, 1, 0)
            event.time = to_ms(event.time)

    def _why(self, error: Exception, line: bytes) -> str:
        try:
            value = msgspec.json.decode(line)
        except Exception:  # then the first error says all there is to say
            value = {}
        return self.shapes.explain(error, value)


def lines_of(body: bytes) -> list[bytes]:
    """The events of a request: of a JSON array its members, otherwise its lines."""
    if body.lstrip()[:1] != b"[":
        return body.split(b"\n")
    try:
        members = msgspec.json.decode(body, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise Invalid(f"not a JSON array of events: {error}") from None
    # Ends of lines stand only between the parts of an event: within strings they are escaped.
    return [bytes(m).replace(b"\n", b" ").replace(b"\r", b" ") for m in members]


@lru_cache
def _arriving(queries: tuple[type[msgspec.Struct], ...]) -> Shapes:
    return Shapes(queries, _Publish, _Subscribe, _Unsubscribe, _Ask)


def value_of(line: bytes) -> dict[str, Any]:
    """An event of the log as plain JSON."""
    value: dict[str, Any] = msgspec.json.decode(line)
    return value
