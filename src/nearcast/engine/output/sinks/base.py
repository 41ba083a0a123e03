"""What a sink is given, and what it does with it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from nearcast.engine.options.settings import Settings
from nearcast.wire.segments import ANSWERS
from nearcast.wire.told import Cursor

__all__ = ["Delivery", "OfRun", "Shown", "SinkOf"]

_SHARD = re.compile(r"-s(\d+)\.")


class OfRun(NamedTuple):
    """What a sink knows of its run."""

    settings: Settings
    checkpoint: Path
    run: str  # its name, which no other run has


class Shown(NamedTuple):
    """The results of a batch, as files with their final names."""

    batch: int
    out: Path
    notifications: Sequence[str]  # names within `out`, in the order of the log
    rejected: Sequence[str]

    def lines(self) -> Iterator[tuple[Cursor, bytes]]:
        """Every notification with its cursor; the files must be JSON lines."""
        for name in self.notifications:
            yield from self._lines(name)

    def rejects(self) -> Iterator[tuple[Cursor, bytes]]:
        """Every reject with its place among those of its shard."""
        for name in self.rejected:
            yield from self._lines(name)

    def _lines(self, name: str) -> Iterator[tuple[Cursor, bytes]]:
        found = _SHARD.search(name)
        shard = int(found[1]) if found else ANSWERS
        with (self.out / name).open("rb") as file:
            for n, line in enumerate(file, 1):
                yield Cursor(self.batch, shard, n), line


class Delivery(ABC):
    """A sink of a run that goes on."""

    @abstractmethod
    def deliver(self, shown: Shown) -> None:
        """Take a batch, perhaps again. The next one begins when this returns."""

    def after(self, batch: int) -> None:
        """Do upkeep, now and then, when a batch is done."""
        del batch  # most need none

    def close(self) -> None:
        """Give back what it holds."""
        return  # most hold nothing


class SinkOf(Protocol):
    """What a user says of a sink."""

    promise: ClassVar[str]  # what a reader sees of a batch that is repeated
    lines: ClassVar[bool]  # whether it needs notifications as JSON lines

    def open(self, of: OfRun) -> Delivery:
        """Begin to deliver; what cannot work is refused."""
