"""Sorts of values that options have: how each is read from text, and what it may be.

`read` makes of the words of a command line what a TOML file or Python would give; words that it
cannot read stay text. `check` refuses what is wrong, wherever it comes from, so that a mistake
gets the same answer everywhere. It raises ValueError; the caller adds the name of the option.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nearcast.model.errors import brief


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


class Address(Value):
    """Where a server listens: HOST:PORT, or a port of this machine alone."""

    form = "HOST:PORT"
    sort = "HOST:PORT, or a port of 127.0.0.1"

    def check(self, value: Any) -> str:
        """HOST:PORT, or nothing."""
        if value == "":
            return ""
        text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
        host, _, port = text.rpartition(":")
        if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65_535 or text.startswith(":"):
            raise ValueError(f"{brief(value)}; write HOST:PORT, or a port of this machine alone")
        return f"{host or '127.0.0.1'}:{int(port)}"

    def show(self, value: Any) -> str:
        """No address: none is served."""
        return str(value) or "none: off"


class Distance(Value):
    """A distance that is not zero."""

    form = "D"
    sort = "number, above 0"

    def parse(self, text: str) -> Any:
        """A number."""
        return number_or_text(text)

    def check(self, value: Any) -> float:
        """A finite number above 0."""
        if not is_number(value) or not value > 0:
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
        if len(box) != 4 or not all(is_number(v) for v in box):
            raise ValueError("write minx,miny,maxx,maxy")
        a, b, c, d = (float(v) for v in box)
        if not (a < c and b < d):
            raise ValueError("write minx,miny,maxx,maxy with min < max")
        return a, b, c, d


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
