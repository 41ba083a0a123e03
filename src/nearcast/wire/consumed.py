"""How far a live run has read the files that it follows, for whoever writes and removes them.

The run says so now and then, in the file `consumed` beside its notifications: of each file, the
bytes that no repeated batch will read again.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from nearcast.wire.durable import write_atomic

__all__ = ["CONSUMED", "read_consumed", "say_consumed"]

CONSUMED = "consumed"


def say_consumed(out: Path, read: dict[str, int]) -> None:
    """Say how many bytes of each file are done with; -1: all of it."""
    write_atomic(out / CONSUMED, msgspec.json.encode(read))


def read_consumed(out: Path) -> dict[str, int]:
    """What was said last."""
    try:
        return msgspec.json.decode((out / CONSUMED).read_bytes(), type=dict[str, int])
    except (OSError, msgspec.DecodeError):
        return {}
