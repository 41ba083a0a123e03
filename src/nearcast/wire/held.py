"""Which objects a live run retains, for whoever answers asks beside it.

After each batch the run replaces `held` beside its notifications: the files that hold the objects,
immutable each, and up to where they reach. Together they are the objects of all batches up to the
one that is named, and no others: a snapshot that needs no lock. A file stays for some batches after
the last `held` that names it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

__all__ = ["HELD", "Held", "read_held", "say_held"]

HELD = "held"


class Held(msgspec.Struct):
    """What the file says."""

    run: str
    batch: int
    ranked: int  # objects of the run so far: all have lower ranks
    now: int  # the greatest time so far
    floor: int  # objects up to this time may be gone
    files: list[str]  # within the checkpoint, tables of STORED (`objects.base`)


def read_held(out: Path) -> Held | None:
    """What was said last; None: the run retains nothing, or has not begun."""
    try:
        return msgspec.json.decode((out / HELD).read_bytes(), type=Held)
    except (OSError, msgspec.DecodeError):
        return None


def say_held(out: Path, held: Held) -> None:
    """Say it; after a loss of power it may be an older one, until the next batch is done."""
    temporary = out / f".{HELD}.tmp"
    temporary.write_bytes(msgspec.json.encode(held))
    temporary.replace(out / HELD)
