"""What a subscriber is told about one object (SPEC section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nearcast.model.errors import Invalid

__all__ = ["EVENTS", "Notification"]

EVENTS = ("match", "enter", "leave")
"""An object satisfies a range query; it enters a result of k; it leaves that."""


@dataclass(frozen=True, slots=True)
class Notification:
    """`object` did `event` to the result of the subscription `id`, at the time of its cause."""

    id: str
    event: str
    object: str
    time: int
    distance: float | None = None
    """With `enter` of a knn query only."""
    owner: str | None = None
    meta: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.event not in EVENTS:
            raise Invalid(f"event: {self.event!r} is not one of {', '.join(EVENTS)}")
