"""Notifications on standard output."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

from nearcast.engine.output.sinks.base import Delivery, OfRun, Shown

__all__ = ["ConsoleOf"]


@dataclass(frozen=True, slots=True)
class ConsoleOf:
    """A sink of type console."""

    promise: ClassVar[str] = "at least once: a batch that is repeated after a crash shows again"
    lines: ClassVar[bool] = True

    def __str__(self) -> str:
        return "standard output"

    def open(self, of: OfRun) -> Delivery:
        """It needs nothing of the run."""
        del of
        return _Console()


class _Console(Delivery):
    def deliver(self, shown: Shown) -> None:
        for line in shown.lines():
            sys.stdout.write(line.decode())
        sys.stdout.flush()
