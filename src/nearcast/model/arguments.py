"""What all parts of the command line share: its name, types of numbers."""

from __future__ import annotations

import argparse

PROG = "nearcast"


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
