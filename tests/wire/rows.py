"""Rows of control tables: those that were decoded, and made ones."""

from __future__ import annotations

from typing import Any

from nearcast.kernels.slots import CONJUNCTION, REPORTS
from nearcast.wire.decode import Decoded
from nearcast.wire.tables import FOREVER, NEVER

Json = dict[str, Any]


def controls(decoded: Decoded) -> list[Json]:
    """Subscribes of all kinds and unsubscribes, in the order of the log."""
    rows: list[Json] = decoded.ends.to_pylist()
    for kind, table in decoded.subscribes.items():
        assert table.num_rows, "kinds without subscribes have no table"
        rows += [{"kind": kind, **row} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: int(row["pos"]))


def control_row(
    *own: Any,
    op: int,
    id: bytes,
    time: int,
    pos: int = 0,
    end: int = FOREVER,
    bits: int = 0,
    conjunction: bool = False,
    tail: bytes = b"",
    program: list[int] | None = None,
    cover: list[int] | None = None,
) -> tuple[Any, ...]:
    """One row of CONTROLS, followed by the kind's `own` columns; `bits`: the kind's flags."""
    flags = bits | REPORTS | (CONJUNCTION if conjunction else 0)
    return (pos, op, time, end, NEVER, flags, id, tail, program or [], cover or [], *own)
