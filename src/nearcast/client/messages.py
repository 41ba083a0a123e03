"""What a client sends and gets, and how both are written (docs/spec.md, section 8)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

__all__ = [
    "Answer",
    "Json",
    "Notification",
    "Refusal",
    "ServiceError",
    "Stream",
    "Subscription",
    "Taken",
]

Json = dict[str, Any]
MOST = 1000
"""Events of one request, unless the caller says otherwise."""


class ServiceError(Exception):
    """A request that the service refused; the message is the service's own."""

    def __init__(self, status: int, detail: str, body: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {detail}")
        self.status, self.detail, self.body = status, detail, body


class Refusal(msgspec.Struct, frozen=True):
    """An event that was not taken."""

    line: int  # its number among the events of the call, from 1
    reason: str


class Taken(msgspec.Struct, frozen=True):
    """What became of the events of a call."""

    accepted: int
    rejected: list[Refusal]


class Subscription(msgspec.Struct, frozen=True):
    """A subscription that stands, with its present result where it has one."""

    id: str
    query: Json
    time: int
    owner: str | None = None
    meta: Json | None = None
    expires: int | str | None = None
    last: int | None = None
    result: Json | None = None


class Answer(msgspec.Struct, frozen=True):
    """The answer to an ask."""

    as_of: Json
    fields: Json  # `objects`, or whatever else the kind answers with

    @property
    def objects(self) -> list[Json]:
        """The objects, best first; of a kind that answers with objects."""
        found: list[Json] = self.fields["objects"]
        return found


class Notification(msgspec.Struct, frozen=True):
    """A line of the notification log."""

    cursor: str  # where to go on behind it
    id: str  # of the subscription
    event: str
    time: int
    fields: Json  # everything that it says

    @property
    def object(self) -> str | None:
        """The object that it is about."""
        return self.fields.get("object")


class _Refused(msgspec.Struct):
    detail: str = ""


def event_lines(events: Iterable[Mapping[str, Any]], most: int) -> Iterator[bytes]:
    """Events as bodies of requests of at most so many lines."""
    lines: list[bytes] = []
    for event in events:
        lines.append(msgspec.json.encode(event))
        if len(lines) == most:
            yield b"\n".join(lines)
            lines = []
    if lines:
        yield b"\n".join(lines)


def post(
    id_: str, at: Sequence[float], text: str | None, keywords: Sequence[str] | None, time: Any
) -> Json:
    """The event of a post."""
    event: Json = {"op": "publish", "id": id_, "at": list(at)}
    more = {"text": text, "keywords": keywords, "time": time}
    return event | {name: value for name, value in more.items() if value is not None}


def given(**fields: Any) -> Json:
    """Those that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def new_key() -> str:
    """For `Idempotency-Key`: a request that is sent again is taken once."""
    return uuid.uuid4().hex


def path_of(id_: str) -> str:
    """Where a subscription is."""
    return f"/v1/subscriptions/{quote(id_, safe='')}"


def checked(answer: httpx.Response) -> httpx.Response:
    """The answer, or the error that it is."""
    if answer.is_success:
        return answer
    try:
        body = msgspec.json.decode(answer.content, type=Json)
    except msgspec.DecodeError:
        body = {}
    detail = str(body.get("detail") or answer.reason_phrase)
    raise ServiceError(answer.status_code, detail, body)


def taken_of(bodies: Iterable[tuple[int, bytes]]) -> Taken:
    """The answers to the parts of a call as one; with the number of events before each part."""
    accepted, rejected = 0, []
    for before, body in bodies:
        part = msgspec.json.decode(body, type=Taken)
        accepted += part.accepted
        rejected += [Refusal(before + r.line, r.reason) for r in part.rejected]
    return Taken(accepted, rejected)


def subscription_of(value: Json) -> Subscription:
    """A subscription as the service shows it."""
    return msgspec.convert(value, Subscription)


def answer_of(body: bytes) -> Answer:
    """An answer as the service gives it."""
    said = msgspec.json.decode(body, type=Json)
    return Answer(said.pop("as_of"), said)


class Stream:
    """Server-sent events, read line by line; `cursor` is behind all that was read."""

    def __init__(self, cursor: str | None) -> None:
        self.cursor = cursor
        self._data: list[str] = []
        self._id: str | None = None

    def headers(self) -> dict[str, str]:
        """Of a request that goes on here."""
        last = {} if self.cursor is None else {"Last-Event-ID": self.cursor}
        return {"Accept": "text/event-stream", **last}

    def restarted(self) -> None:
        """Another connection begins: what was cut off comes again."""
        self._data, self._id = [], None

    def line(self, line: str) -> Notification | None:
        """Take in a line; a notification if it ended one."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self._data.append(value)
            elif name == "id":
                self._id = value
            return None
        data, id_ = "\n".join(self._data), self._id
        self._data, self._id = [], None
        if id_ is not None:
            self.cursor = id_
        if not data:
            return None
        said = msgspec.json.decode(data, type=Json)
        return Notification(self.cursor or "", said["id"], said["event"], said["time"], said)
