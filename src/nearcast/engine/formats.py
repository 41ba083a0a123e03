"""The format of the files of a checkpoint: `nearcast.wire.formats`, by the engine's usual name."""

from __future__ import annotations

from nearcast.wire.formats import (
    FIELD,
    FORMAT,
    body,
    check_format,
    head,
    read_binary,
    refused,
    write_binary,
)

__all__ = [
    "FIELD",
    "FORMAT",
    "body",
    "check_format",
    "head",
    "read_binary",
    "refused",
    "write_binary",
]
