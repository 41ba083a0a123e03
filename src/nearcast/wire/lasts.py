"""Subscribes that look back, as rows: with `last` they also see what was handled before them.

Such a subscribe is a row of its kind's table like any other. Besides it is a row here, which goes
to every shard as an ask does, because objects of the past rest on all of them.
"""

from __future__ import annotations

import pyarrow as pa

from nearcast.wire.kind import WireKind

__all__ = ["LAST_COLUMNS", "lasts_with"]

LAST_COLUMNS = pa.schema(
    [
        ("after", pa.int64()),  # objects after this time count
        ("file", pa.string()),  # for a reject on the shard, as in REJECTS
        ("line", pa.int64()),
        ("event", pa.string()),
    ]
)


def lasts_with(kind: WireKind) -> pa.Schema:
    """The columns of subscribes of a kind that look back."""
    return pa.schema([*kind.schema, *LAST_COLUMNS])
