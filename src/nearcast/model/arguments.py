"""What all parts of the command line share: its name, its parser, types of numbers."""

from __future__ import annotations

import argparse
from typing import NoReturn

PROG = "nearcast"


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit 2."""
        self.exit(2, f"{PROG}: {message} (see {self.prog} --help)\n")


def positive(text: str) -> int:
    """A whole number of at least 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def natural(text: str) -> int:
    """The same, or 0."""
    return 0 if text == "0" else positive(text)
