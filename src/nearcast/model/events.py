"""The four events of a log (docs/spec.md section 3). Times are integer epoch milliseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from nearcast.model.errors import Invalid, brief

__all__ = [
    "MAX_ID_LENGTH",
    "TIME_LIMIT",
    "Ask",
    "Event",
    "Publish",
    "Subscribe",
    "Unsubscribe",
    "order_class",
]

MAX_ID_LENGTH = 256
TIME_LIMIT = 2**61
"""Times are smaller than this in size, so that sums and differences of two fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class Publish:
    """An object appears at x, y with its keywords and how often it holds each."""

    op: ClassVar[str] = "publish"
    order: ClassVar[int] = 1

    id: str
    time: int
    x: float
    y: float
    keywords: dict[str, int]
    fields: dict[str, Any] = field(default_factory=dict)
    """What answers may show of it, as it was published: at, time, text, keywords."""

    def __post_init__(self) -> None:
        _check_id(self.id)
        _check_time("time", self.time)
        if not (math.isfinite(self.x) and math.isfinite(self.y)):
            raise Invalid(f"at: [{self.x!r}, {self.y!r}] is not two finite numbers")


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A standing query starts (or replaces the one with its id) and may expire."""

    op: ClassVar[str] = "subscribe"
    order: ClassVar[int] = 0

    id: str
    time: int
    expires: int | None
    query: Any
    """As its kind defines it (`nearcast.kinds`)."""
    owner: str | None = None
    meta: dict[str, Any] | None = None
    last: int | None = None
    """How far it looks back, in milliseconds."""

    def __post_init__(self) -> None:
        _check_id(self.id)
        _check_time("time", self.time)
        # At or before `time` is allowed: such a subscription sees nothing.
        if self.expires is not None:
            _check_time("expires", self.expires)
        if self.last is not None:
            _check_last(self.last)


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A standing query ends; an unknown id does nothing."""

    op: ClassVar[str] = "unsubscribe"
    order: ClassVar[int] = 0

    id: str
    time: int

    def __post_init__(self) -> None:
        _check_id(self.id)
        _check_time("time", self.time)


@dataclass(frozen=True, slots=True)
class Ask:
    """A query answered once, over the objects of the `last` milliseconds up to `time`."""

    op: ClassVar[str] = "ask"
    order: ClassVar[int] = 2

    id: str
    time: int
    last: int
    query: Any
    limit: int | None = None
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_id(self.id)
        _check_time("time", self.time)
        _check_last(self.last)


Event: TypeAlias = Publish | Subscribe | Unsubscribe | Ask


def order_class(event: Event) -> int:
    """What comes first at equal times: 0 subscribe and unsubscribe, 1 publish, 2 ask."""
    return event.order


def _check_id(value: object) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_ID_LENGTH:
        raise Invalid(f"id: not a string of 1 to {MAX_ID_LENGTH} characters")


def _check_time(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"{name}: {brief(value)} is not an integer number of milliseconds")
    if not -TIME_LIMIT < value < TIME_LIMIT:
        raise Invalid(f"{name}: is not within 2**61 milliseconds of the epoch")


def _check_last(value: object) -> None:
    _check_time("last", value)
    assert isinstance(value, int)
    if value < 1:
        raise Invalid(f"last: {brief(value)} is less than 1; write the milliseconds to look back")
