"""Options that are spans of time: durations, the window of a run, how far back objects are kept."""

from __future__ import annotations

import re
from typing import Any

from nearcast.engine.options.values import Value
from nearcast.model.errors import brief

_UNITS_MS = {
    "ms": 1, "millisecond": 1, "milliseconds": 1,
    "s": 1000, "second": 1000, "seconds": 1000,
    "m": 60_000, "minute": 60_000, "minutes": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "hours": 3_600_000,
    "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
}  # fmt: skip
_PART = r"([0-9]+) ?([a-z]+)"


def duration_ms(text: Any) -> int:
    """Milliseconds of `30s`, `200 milliseconds` or `1 minute 30 seconds`."""
    parts = re.findall(_PART, text) if isinstance(text, str) else []
    whole = parts and re.fullmatch(rf"{_PART}( {_PART})*", text)
    if not whole or any(unit not in _UNITS_MS for _, unit in parts):
        raise ValueError(f"{brief(text)}: write a duration such as 30s, 10m or 1 second")
    return sum(int(number) * _UNITS_MS[unit] for number, unit in parts)


AUTO, ALL, OFF = "auto", "all", "off"
EVER_MS = 2**61


def retained_ms(text: str) -> int:
    """Milliseconds of a duration, of `all`, of `off`; `auto` depends on the logs."""
    if text in (AUTO, OFF):
        return 0
    return EVER_MS if text == ALL else duration_ms(text)


class Duration(Value):
    """A span of time; it may be zero."""

    form = "DURATION"
    sort = "duration, such as 30s or 1 second"

    def check(self, value: Any) -> str:
        """Text that `duration_ms` reads."""
        duration_ms(value)
        return str(value)


class Window(Value):
    """`count:N`, or a span of time that is not zero."""

    form = "count:N|DURATION"
    sort = "count:N, or a duration such as 30s"

    def check(self, value: Any) -> str:
        """Text of one of the two forms."""
        found = re.fullmatch(r"count:([0-9]+)", value) if isinstance(value, str) else None
        try:
            wide = int(found[1]) if found else duration_ms(value)
        except ValueError:
            wide = 0
        if wide < 1:
            raise ValueError(f"{brief(value)}: write count:N or a duration such as 30s, 10m, 1h")
        return str(value)


def keep_ms(text: str) -> int:
    """How long segments of results are kept; 0: for ever."""
    return 0 if text in ("", ALL) else duration_ms(text)


def window_of(text: str) -> tuple[int, int]:
    """(objects, milliseconds) of a window; one of them is 0."""
    count, _, number = text.partition(":")
    return (int(number), 0) if count == "count" else (0, duration_ms(text))


class Retain(Value):
    """How far back objects are retained."""

    form = "DURATION|all|off|auto"
    sort = "a duration such as 1h, all, off or auto"

    def check(self, value: Any) -> str:
        """A duration of at least a millisecond, or one of the words."""
        if value not in (ALL, OFF, AUTO) and duration_ms(value) < 1:
            raise ValueError(f"{brief(value)}: write at least 1ms, or off")
        return str(value)

    def show(self, value: Any) -> str:
        """It depends on the way to run."""
        return "auto for replay, off for a live run" if value is None else str(value)


class Keep(Value):
    """How long results are kept."""

    form = "DURATION|all"
    sort = "a duration such as 7 days, or all"

    def check(self, value: Any) -> str:
        """A duration of at least a second, or the word; empty: they are never touched."""
        if value not in ("", ALL) and duration_ms(value) < 1000:
            raise ValueError(f"{brief(value)}: write at least 1s, or all")
        return str(value)

    def show(self, value: Any) -> str:
        """What nothing stands for."""
        return str(value) or "none: the files of each batch stay as they are"
