"""Times of events: epoch milliseconds, or RFC 3339 strings."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.model.errors import Invalid
from nearcast.wire.tables import LIMIT

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _days_before(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01, by the Gregorian calendar also for years before it."""
    if month <= 2:
        year, month = year - 1, month + 12
    era, of_era = divmod(year, 400)
    of_year = (153 * (month - 3) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def parse_rfc3339(text: str, name: str = "time") -> int:
    """Epoch milliseconds of an RFC 3339 date-time; finer fractions are cut off.

    `name` is what errors call it.
    """
    found = _RFC3339.fullmatch(text)
    if not found:
        raise Invalid(
            f"{name}: {text[:40]!r} is not an RFC 3339 date-time such as 2023-11-14T22:13:20Z"
        )
    year, month, day, hour, minute, second = (int(g) for g in found.group(1, 2, 3, 4, 5, 6))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = _DAYS[month - 1] + (leap and month == 2) if 1 <= month <= 12 else 0
    shift_h, shift_m = (int(g or 0) for g in found.group(10, 11))
    if not (1 <= day <= longest and hour < 24 and minute < 60 and second <= 60):
        raise Invalid(f"{name}: there is no {text[:40]!r}")
    if shift_h > 23 or shift_m > 59:
        raise Invalid(f"{name}: {text[:40]!r} has an impossible offset")
    shift = (shift_h * 60 + shift_m) * (-1 if found[9] == "-" else 1)
    seconds = ((_days_before(year, month, day) * 24 + hour) * 60 + minute - shift) * 60 + second
    return seconds * 1000 + int(((found[7] or "") + "000")[:3])


def to_ms(value: int | str, name: str = "time") -> int:
    """Epoch milliseconds of a time as events carry it."""
    ms = parse_rfc3339(value, name) if isinstance(value, str) else value
    if not -LIMIT < ms < LIMIT:
        raise Invalid(f"{name}: {ms} is beyond what epoch milliseconds can hold here (2^61)")
    return ms


def timestamps_ms(column: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """Epoch milliseconds of an Arrow timestamp column; 0 for null, finer fractions cut off.

    Not by Arrow's casts or Python's datetime: both raise for a single value out of their reach.
    """
    raw: NDArray[np.int64] = column.cast(pa.int64()).fill_null(0).to_numpy()
    if column.type.unit == "s":
        return np.clip(raw, -LIMIT // 1000, LIMIT // 1000 + 1) * 1000
    return raw // {"ms": 1, "us": 1000, "ns": 1_000_000}[column.type.unit]


def all_ms(values: list[int | str]) -> NDArray[np.int64] | None:
    """`to_ms` of all values at once, or None if each needs a closer look."""
    if not values:
        return np.empty(0, np.int64)
    try:
        times = np.array(values)
    except (ValueError, OverflowError):
        return None
    if times.dtype != np.int64 or times.max() >= LIMIT or times.min() <= -LIMIT:
        return None
    return times
