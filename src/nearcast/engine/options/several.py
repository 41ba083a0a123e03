"""Options that hold several values: names, or values by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nearcast.engine.options.values import Value, either, is_number, number_or_text
from nearcast.model.errors import brief


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
        if not is_number(value):
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
