"""Sorts of values that options have: how each is read from text, and what it may be.

`read` makes of the words of a command line what a TOML file or Python would give; words that it
cannot read stay text. `check` refuses what is wrong, wherever it comes from, so that a mistake
gets the same answer everywhere. It raises ValueError; the caller adds the name of the option.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


def either(names: Sequence[str]) -> str:
    """`a, b or c`."""
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def number_or_text(text: str) -> int | float | str:
    """The number that a text is, or else the text."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


AUTO, ALL, OFF = "auto", "all", "off"
EVER_MS = 2**61


def retained_ms(text: str) -> int:
    """Milliseconds of a duration, of `all`, of `off`; `auto` depends on the logs."""
    if text in (AUTO, OFF):
        return 0
    return EVER_MS if text == ALL else duration_ms(text)


class Value(ABC):
    """One sort of value."""

    form: str  # how it is written, for help
    sort: str  # what it is, for the reference
    several: bool = False  # it holds names with values: its flag takes many NAME=VALUE

    def read(self, words: Sequence[str]) -> Any:
        """From what stands behind its flag, each time that the flag is given."""
        if len(words) > 1:
            raise ValueError(f"{brief(words[0])} and {brief(words[1])}; give it once")
        return self.parse(words[0])

    def parse(self, text: str) -> Any:
        """One word; by itself it is what it says."""
        return text

    @abstractmethod
    def check(self, value: Any) -> Any:
        """The value as it is kept, or ValueError."""

    def show(self, value: Any) -> str:
        """A default, for people."""
        return "none" if value is None else str(value)


@dataclass(frozen=True)
class Whole(Value):
    """A whole number within limits."""

    least: int
    most: int | None = None
    zero: str = ""  # what 0 means, where it is no number
    form = "N"

    @property
    def sort(self) -> str:  # type: ignore[override]
        """With its limits."""
        limits = f"at least {self.least}" if self.most is None else f"{self.least} to {self.most}"
        return f"whole number, {limits}"

    def parse(self, text: str) -> int | str:
        """Digits, perhaps with a sign."""
        return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text

    def check(self, value: Any) -> int:
        """A number, which True is not."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{brief(value)} is not a whole number")
        if self.most is not None and not self.least <= value <= self.most:
            raise ValueError(f"{value} is not between {self.least} and {self.most}")
        if value < self.least:
            raise ValueError(f"{value} is less than {self.least}")
        return value

    def show(self, value: Any) -> str:
        """With what 0 stands for."""
        return self.zero if self.zero and value == 0 else str(value)


@dataclass(frozen=True)
class Choice(Value):
    """One of some names."""

    names: tuple[str, ...]

    @property
    def form(self) -> str:  # type: ignore[override]
        """All names."""
        return "|".join(self.names)

    @property
    def sort(self) -> str:  # type: ignore[override]
        """All names."""
        return either(self.names)

    def check(self, value: Any) -> str:
        """A name that there is."""
        if value not in self.names:
            raise ValueError(f"{brief(value)}; use {either(self.names)}")
        return str(value)


@dataclass(frozen=True)
class Text(Value):
    """Some text."""

    form: str
    empty: str = ""  # what it means to give none; empty: there must be some
    sort = "text"

    def check(self, value: Any) -> str:
        """Text, and some of it unless there may be none."""
        if not isinstance(value, str) or not (value or self.empty):
            raise ValueError(f"{brief(value)} is not text")
        return value

    def show(self, value: Any) -> str:
        """With what no text stands for."""
        return str(value) or self.empty


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


def window_of(text: str) -> tuple[int, int]:
    """(objects, milliseconds) of a window; one of them is 0."""
    count, _, number = text.partition(":")
    return (int(number), 0) if count == "count" else (0, duration_ms(text))


class Distance(Value):
    """A distance that is not zero."""

    form = "D"
    sort = "number, above 0"

    def parse(self, text: str) -> Any:
        """A number."""
        return number_or_text(text)

    def check(self, value: Any) -> float:
        """A finite number above 0."""
        if not _is_number(value) or not value > 0:
            raise ValueError(f"{brief(value)} is not a number above 0")
        return float(value)

    def show(self, value: Any) -> str:
        """The space says it."""
        return "half way round the earth; in a plane none" if value is None else str(value)


class Bounds(Value):
    """A box: minx, miny, maxx, maxy."""

    form = "minx,miny,maxx,maxy"
    sort = "four numbers: minx, miny, maxx, maxy"

    def parse(self, text: str) -> Any:
        """Numbers with commas between them."""
        return tuple(number_or_text(part) for part in text.split(","))

    def check(self, value: Any) -> tuple[float, float, float, float]:
        """Four finite numbers, the smaller ones first."""
        box = list(value) if isinstance(value, list | tuple) else []
        if len(box) != 4 or not all(_is_number(v) for v in box):
            raise ValueError("write minx,miny,maxx,maxy")
        a, b, c, d = (float(v) for v in box)
        if not (a < c and b < d):
            raise ValueError("write minx,miny,maxx,maxy with min < max")
        return a, b, c, d


class _ByName(Value):
    """Values by name; on the command line NAME=VALUE, several times."""

    several = True
    example: str  # or where to find one

    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """NAME=VALUE each."""
        given: dict[str, Any] = {}
        for word in words:
            name, equals, value = word.partition("=")
            if not equals or not name or not value:
                raise ValueError(f"{brief(word)}: write {self.form}{self.example}")
            if name in given:
                raise ValueError(f"{name} is {given[name]} and {value}; give it once")
            given[name] = self.parse(value)
        return given

    def check(self, value: Any) -> dict[str, Any]:
        """A mapping whose names are text."""
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise ValueError(f"{brief(value)}: write {self.form}{self.example}")
        return {name: self.check_one(name, one) for name, one in value.items()}

    @abstractmethod
    def check_one(self, name: str, value: Any) -> Any:
        """One of the values."""

    def show(self, value: Any) -> str:
        """Nothing is given by default."""
        return str(value) if value else "those of the strategies"


class Strategies(_ByName):
    """Names of strategies by kind."""

    form = "KIND=NAME"
    sort = "names by kind"
    example = " (see `nearcast strategies`)"

    def check_one(self, name: str, value: Any) -> str:
        """Text; `kinds.strategies` knows the names."""
        if not isinstance(value, str) or not value:
            raise ValueError(f"{name}: {brief(value)} is not the name of a strategy")
        return value

    def show(self, value: Any) -> str:
        """Which they are, `nearcast strategies` says."""
        return str(value) if value else "see `nearcast strategies`"


class Modules(Value):
    """Names of Python modules."""

    form = "MODULE"
    sort = "names of modules"
    several = True

    def read(self, words: Sequence[str]) -> tuple[str, ...]:
        """One each."""
        return tuple(words)

    def check(self, value: Any) -> tuple[str, ...]:
        """Names, such as company.kinds."""
        if not isinstance(value, list | tuple):
            raise ValueError(f"{brief(value)} is not a list of modules, such as company.kinds")
        for name in value:
            if not isinstance(name, str) or not all(p.isidentifier() for p in name.split(".")):
                raise ValueError(
                    f"{brief(name)} is not the name of a module, such as company.kinds"
                )
        return tuple(value)

    def show(self, value: Any) -> str:
        """None is given by default."""
        return ", ".join(value) if value else "none"


class Names(Value):
    """Some names."""

    form = "NAME"
    sort = "names"
    several = True

    def read(self, words: Sequence[str]) -> tuple[str, ...]:
        """One each."""
        return tuple(words)

    def check(self, value: Any) -> tuple[str, ...]:
        """Text each, none of them twice."""
        if not isinstance(value, list | tuple) or not all(isinstance(n, str) for n in value):
            raise ValueError(f"{brief(value)} is not a list of names")
        if len(set(value)) < len(value):
            raise ValueError(f"{brief(list(value))} names one twice")
        return tuple(value)

    def show(self, value: Any) -> str:
        """All there are, by default."""
        return ", ".join(value) if value else "all"


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


class Numbers(_ByName):
    """Numbers by name."""

    form = "NAME=NUMBER"
    sort = "numbers by name"
    example = ", such as side=128"

    def parse(self, text: str) -> Any:
        """A number."""
        return number_or_text(text)

    def check_one(self, name: str, value: Any) -> float:
        """A finite number."""
        if not _is_number(value):
            raise ValueError(f"{name}: {brief(value)} is not a number")
        return float(value)


class Texts(_ByName):
    """Text by name; what a TOML file writes as a number or as true is taken as text."""

    form = "KEY=VALUE"
    sort = "text by name"
    example = ", such as spark.driver.memory=4g"

    def check_one(self, name: str, value: Any) -> str:
        """Text, or what has one plain form of it."""
        if not isinstance(value, str | int | float):
            raise ValueError(f"{name}: {brief(value)} is not text, a number, true or false")
        return str(value).lower() if isinstance(value, bool) else str(value)

    def show(self, value: Any) -> str:
        """Nothing is given by default."""
        return str(value) if value else "none"


@dataclass(frozen=True)
class Balancing(Value):
    """A mode, or settings by name with the mode among them.

    `routing.balance.Balance` knows the settings and checks them.
    """

    modes: tuple[str, ...]
    usual: str  # the mode of settings that name none
    sort = "a mode, or a table of settings with `mode`"

    @property
    def form(self) -> str:  # type: ignore[override]
        """All modes."""
        return f"{'|'.join(self.modes)}[,NAME=VALUE...]"

    def parse(self, text: str) -> Any:
        """MODE, or MODE,NAME=VALUE,..."""
        first, *more = text.split(",")
        if "=" not in text:
            return text
        settings: dict[str, Any] = {} if "=" in first else {"mode": first}
        for pair in ([first] if "=" in first else []) + more:
            name, equals, value = pair.partition("=")
            if not equals or not name or not value:
                raise ValueError(f"{brief(pair)}: write NAME=VALUE, such as threshold=1.5")
            if name in settings:
                raise ValueError(f"{name} is {settings[name]} and {value}; give it once")
            settings[name] = number_or_text(value)
        return settings

    def check(self, value: Any) -> str | dict[str, Any]:
        """A mode alone as text, with settings as a mapping that has it."""
        settings = dict(value) if isinstance(value, Mapping) else {"mode": value}
        mode = settings.setdefault("mode", self.usual)
        if mode not in self.modes:
            raise ValueError(f"{brief(mode)}; use {either(self.modes)}")
        return settings if len(settings) > 1 else str(mode)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
