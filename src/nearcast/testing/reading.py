"""Raw events to values of the model, refusing what SPEC section 3 refuses; for the oracle."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from nearcast.kinds.base import Kind
from nearcast.model.errors import Invalid
from nearcast.model.events import Ask, Event, Publish, Subscribe, Unsubscribe
from nearcast.model.reading import count, field, optional, position
from nearcast.model.space import Space
from nearcast.model.standing import Standing
from nearcast.model.words import keyword_counts

__all__ = ["read_event", "read_time"]

FIELDS = ("at", "time", "text", "keywords")
_DAYS_OF_400_YEARS = 146_097
_EPOCH = date(1970, 1, 1).toordinal()
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


def read_event(raw: dict[str, Any] | str, space: Space, kinds: Mapping[str, Kind]) -> Event | None:
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
        return _subscribe(raw, space, kinds)
    if op == "unsubscribe":
        return Unsubscribe(field(raw, "id", str), read_time(raw.get("time")))
    if op == "ask":
        return _ask(raw, space, kinds)
    raise Invalid(f"op: {op!r} is not publish, subscribe, unsubscribe or ask")


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
    x, y = position(raw.get("at"), space)
    keywords = optional(raw, "keywords", list) or []
    if not all(isinstance(entry, str) for entry in keywords):
        raise Invalid("keywords: every entry must be a string")
    text, time = optional(raw, "text", str), read_time(raw.get("time"))
    shown = {"at": [x, y], "time": time}
    if text is not None:
        shown["text"] = text
    if keywords:
        shown["keywords"] = keywords
    counts = keyword_counts(text, keywords)
    return Publish(field(raw, "id", str), time, x, y, counts, shown)


def _ask(raw: dict[str, Any], space: Space, kinds: Mapping[str, Kind]) -> Ask:
    query = field(raw, "query", dict)
    read = _query(query, space, kinds)
    if read[0].answers is None:
        raise Invalid(f"query.kind: {read[0].name} has no asks")
    beside, inside = _of_answer(raw), _of_answer(query)
    for name in beside.keys() & inside.keys():
        if beside[name] != inside[name]:
            raise Invalid(f"{name}: stands beside the query and in it, and differs")
    chosen = beside | inside
    return Ask(
        field(raw, "id", str),
        read_time(raw.get("time")),
        count(raw, "last"),
        read,
        chosen.get("limit"),
        tuple(chosen.get("fields", ())),
    )


def _of_answer(raw: dict[str, Any]) -> dict[str, Any]:
    """`limit` and `fields`, where they stand."""
    found: dict[str, Any] = {}
    if raw.get("limit") is not None:
        found["limit"] = count(raw, "limit")
    fields = optional(raw, "fields", list)
    if fields is not None:
        if not all(isinstance(f, str) and f in FIELDS for f in fields):
            raise Invalid(f"fields: use {', '.join(FIELDS)}")
        found["fields"] = fields
    return found


def _subscribe(raw: dict[str, Any], space: Space, kinds: Mapping[str, Kind]) -> Subscribe:
    expires = raw.get("expires")
    last = None if raw.get("last") is None else count(raw, "last")
    query = field(raw, "query", dict)
    kind, standing = _query(query, space, kinds)
    for name in getattr(kind.query, "only_standing", ()):  # asks may lack them
        count(query, name)
    if kind.window is not None:
        last = None  # it begins with the window anyway
    if last is not None and kind.firsts is None:
        raise Invalid(f"last: {kind.name} does not look back")
    return Subscribe(
        field(raw, "id", str),
        read_time(raw.get("time")),
        None if expires is None else read_time(expires),
        (kind, standing),
        optional(raw, "owner", str),
        optional(raw, "meta", dict),
        last,
    )


def _query(query: dict[str, Any], space: Space, kinds: Mapping[str, Kind]) -> tuple[Kind, Standing]:
    name = query.get("kind")
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise Invalid(f"query.kind: {name!r} is not {' or '.join(kinds)}, the kinds of this oracle")
    return kind, kind.read(query, space)


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
