"""What was decoded besides objects, for tests that look at all of it."""

from __future__ import annotations

from typing import Any

from nearcast.wire.decode import Decoded

Json = dict[str, Any]


def controls(decoded: Decoded) -> list[Json]:
    """Subscribes of all kinds and unsubscribes, in the order of the log."""
    rows: list[Json] = decoded.ends.to_pylist()
    for kind, table in decoded.subscribes.items():
        assert table.num_rows, "kinds without subscribes have no table"
        rows += [{"kind": kind, **row} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: int(row["pos"]))
