"""Raw events to values of the model, refusing what SPEC section 3 refuses; for the oracle."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import Any

from nearcast.model.errors import Invalid
from nearcast.model.events import Publish, Subscribe, Unsubscribe
from nearcast.model.expression import Expression, parse
from nearcast.model.query import KnnQuery, RangeQuery
from nearcast.model.region import region_from_json
from nearcast.model.space import Space, check_position
from nearcast.model.words import keyword_counts

__all__ = ["read_event", "read_time"]

_COUNT_LIMIT = 2**61
_DAYS_OF_400_YEARS = 146_097
_EPOCH = date(1970, 1, 1).toordinal()
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


def read_event(raw: dict[str, Any] | str, space: Space) -> Publish | Subscribe | Unsubscribe | None:
    """The event of a line (or of the object it holds); None for a blank line; raises `Invalid`."""
    if isinstance(raw, str):
        if not raw.strip():
            return None
        raw = _parsed(raw)
    if not isinstance(raw, dict):
        raise Invalid("an event must be a JSON object")
    op = raw.get("op")
    if op == "publish":
        return _publish(raw, space)
    if op == "subscribe":
        return _subscribe(raw, space)
    if op == "unsubscribe":
        return Unsubscribe(_field(raw, "id", str), read_time(raw.get("time")))
    raise Invalid(f"op: {op!r} is not publish, subscribe or unsubscribe")


def _parsed(line: str) -> Any:
    try:
        value = json.loads(line, parse_constant=_no_constant)
        # Half of a surrogate pair is no character, so no text and no id.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Invalid(f"not valid JSON: {error}") from None
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _publish(raw: dict[str, Any], space: Space) -> Publish:
    x, y = _position(raw.get("at"), space)
    keywords = _optional(raw, "keywords", list) or []
    if not all(isinstance(entry, str) for entry in keywords):
        raise Invalid("keywords: every entry must be a string")
    counts = keyword_counts(_optional(raw, "text", str), keywords)
    return Publish(_field(raw, "id", str), read_time(raw.get("time")), x, y, counts)


def _subscribe(raw: dict[str, Any], space: Space) -> Subscribe:
    expires = raw.get("expires")
    return Subscribe(
        _field(raw, "id", str),
        read_time(raw.get("time")),
        None if expires is None else read_time(expires),
        _query(_field(raw, "query", dict), space),
        _optional(raw, "owner", str),
        _optional(raw, "meta", dict),
    )


def _query(query: dict[str, Any], space: Space) -> RangeQuery | KnnQuery:
    kind = query.get("kind")
    if kind == "range":
        region = region_from_json(space, _field(query, "region", dict))
        return RangeQuery(region, _where(query))
    if kind == "knn":
        x, y = _position(query.get("at"), space)
        window = None if query.get("window") is None else _count(query, "window")
        return KnnQuery(x, y, _count(query, "k"), _where(query), window)
    raise Invalid(f"query.kind: {kind!r} is not range or knn, the kinds of this oracle")


def _where(query: dict[str, Any]) -> Expression:
    return parse(_optional(query, "where", str) or "")


def _position(value: object, space: Space) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise Invalid(f"at: {value!r} is not a position [x, y]")
    x, y = value
    check_position(space, x, y)
    return float(x), float(y)


def _count(query: dict[str, Any], name: str) -> int:
    value: int = _field(query, name, int)
    if isinstance(value, bool) or not 1 <= value < _COUNT_LIMIT:
        raise Invalid(f"query.{name}: {value!r} is not an integer from 1 to 2**61")
    return value


def _field(raw: dict[str, Any], name: str, kind: type) -> Any:
    if not isinstance(raw.get(name), kind):
        raise Invalid(f"{name}: {raw.get(name)!r} is not a {kind.__name__}")
    return raw[name]


def _optional(raw: dict[str, Any], name: str, kind: type) -> Any:
    return None if raw.get(name) is None else _field(raw, name, kind)


def read_time(value: object) -> int:
    """Epoch milliseconds of an integer or an RFC 3339 string; finer fractions are cut off."""
    if not isinstance(value, str):
        # The events themselves refuse what is no integer, and what is out of reach.
        return value  # type: ignore[return-value]
    found = _RFC3339.fullmatch(value)
    if not found:
        raise Invalid(f"time: {value!r} is not an RFC 3339 date-time")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    if hour > 23 or minute > 59 or second > 60:  # 60: a leap second
        raise Invalid(f"time: there is no {value!r}")
    try:
        # The calendar repeats after 400 years, and `date` knows no year 0.
        ordinal = date(year % 400 + 400, month, day).toordinal()
    except ValueError:
        raise Invalid(f"time: there is no {value!r}") from None
    days = ordinal + (year // 400 - 1) * _DAYS_OF_400_YEARS - _EPOCH
    offset_hours, offset_minutes = (int(part or 0) for part in found.groups()[8:])
    if offset_hours > 23 or offset_minutes > 59:
        raise Invalid(f"time: {value!r} has an impossible offset")
    offset = (offset_hours * 60 + offset_minutes) * (-1 if found[8] == "-" else 1)
    seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second
    return seconds * 1000 + int(f"{found[7] or ''}000"[:3])
