"""Errors of the disk in one line."""

from __future__ import annotations

import os
from pathlib import Path

from nearcast.model.errors import NearcastError

__all__ = ["explained"]


class explained:  # noqa: N801 -- reads as a word in `with explained(...)`
    """Turns an error of the disk into one line that says what to do. The batch can be repeated.

    `what` stands before the name of the folder.
    """

    def __init__(self, folder: Path, what: str = "") -> None:
        self.named = f"{what} {folder}".strip()

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Name the folder, what the system says, and the way out."""
        if isinstance(error, OSError):
            raise NearcastError(
                f"cannot write to {self.named}: {_brief(error)}; make room and run the same "
                "command again, it goes on where it stopped"
            ) from error


def _brief(error: OSError) -> str:
    """What the system says; Arrow's errors carry a number and no text of the system."""
    if error.strerror:
        return error.strerror
    return os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
