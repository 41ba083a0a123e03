"""What a sink is given, and what it does with it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from nearcast.engine.options.settings import Settings
from nearcast.wire.segments import ANSWERS

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

    def read(self, names: Sequence[str]) -> Iterator[tuple[int, Iterable[bytes]]]:
        """(shard, its lines) of some of the files; notifications must be JSON lines."""
        for name in names:
            found = _SHARD.search(name)
            with (self.out / name).open("rb") as file:
                yield int(found[1]) if found else ANSWERS, file

    def lines(self) -> Iterator[bytes]:
        """Every notification, in the order of the log."""
        for _, lines in self.read(self.notifications):
            yield from lines


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
