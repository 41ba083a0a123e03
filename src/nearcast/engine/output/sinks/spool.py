"""The folder of results of a run without a sink of type files: other sinks are fed from it.

It holds the batches that may be repeated, so that their lines keep their cursors.
"""

from __future__ import annotations

import re
from pathlib import Path

from nearcast.engine.output.sinks.base import Delivery, Shown

__all__ = ["KEPT", "Spool"]

KEPT = 100
"""Batches that stay, at least."""
_BATCH = re.compile(r"b(\d{8,})-")


class Spool(Delivery):
    """Removes what all other sinks have, so it must be the last of them."""

    def __init__(self, out: Path) -> None:
        self._folders = [out / "notifications", out / "rejected"]

    def deliver(self, shown: Shown) -> None:
        """Nothing to do: it is there."""

    def after(self, batch: int) -> None:
        """Remove the files of old batches."""
        for folder in self._folders:
            for path in folder.iterdir():
                found = _BATCH.match(path.name)
                if found and int(found[1]) <= batch - KEPT:
                    path.unlink(missing_ok=True)
