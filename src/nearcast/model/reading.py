"""Fields of raw events, read the plain way: by the oracle and by each kind's own definition."""

from __future__ import annotations

from typing import Any

from nearcast.model.errors import Invalid, brief
from nearcast.model.expression import Expression, parse
from nearcast.model.space import Space, check_position

__all__ = ["LIMIT", "count", "field", "optional", "position", "where"]

LIMIT = 2**61
"""Numbers stay below it, so that sums and differences of two fit into 64 bits."""


def field(raw: dict[str, Any], name: str, type_: type) -> Any:
    """A field that must be there and of that type; raises `Invalid`."""
    if not isinstance(raw.get(name), type_):
        raise Invalid(f"{name}: {brief(raw.get(name))} is not a {type_.__name__}")
    return raw[name]


def optional(raw: dict[str, Any], name: str, type_: type) -> Any:
    """A field that may be missing or null."""
    return None if raw.get(name) is None else field(raw, name, type_)


def count(query: dict[str, Any], name: str) -> int:
    """A whole number from 1 on."""
    value: int = field(query, name, int)
    if isinstance(value, bool) or not 1 <= value < LIMIT:
        raise Invalid(f"query.{name}: {brief(value)} is not an integer from 1 to 2**61")
    return value


def position(value: object, space: Space) -> tuple[float, float]:
    """[x, y] in the space."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise Invalid(f"at: {brief(value)} is not a position [x, y]")
    x, y = value
    check_position(space, x, y)
    return float(x), float(y)


def where(query: dict[str, Any]) -> Expression:
    """The condition on words; without one, every object satisfies it."""
    return parse(optional(query, "where", str) or "")
