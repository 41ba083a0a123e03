"""The columns of `terms` subscriptions and of what is kept of them."""

from __future__ import annotations

import pyarrow as pa

from nearcast.wire.tables import CONTROLS, REGION_COLUMNS

__all__ = ["COLUMNS", "RESULTS"]

_NUMBERS = pa.large_list(pa.field("item", pa.int64(), nullable=False))
_TEXTS = pa.large_list(pa.field("item", pa.large_string(), nullable=False))

COLUMNS = pa.schema(
    [
        *REGION_COLUMNS,
        ("k", pa.int64()),
        ("window", pa.int64()),
        ("every", pa.int64()),
        ("exclude", CONTROLS.field("program").type),  # words that do not count
    ]
)
RESULTS = pa.schema(
    [
        ("due", pa.int64()),  # of the scan: the next moment
        ("passed", pa.int64()),  # of `tables`: up to when moments have passed
        ("since", pa.int64()),  # of `tables`: the rank of the first object handled after it
        ("ranked", pa.int64()),  # of `tables`: how many objects of the run came so far
        ("times", _NUMBERS),  # of each object in the window its time (of `tables`: only of those
        ("sizes", _NUMBERS),  # from before the subscription, for which it looks back),
        ("words", _TEXTS),  # how many words it holds, and which
        ("texts", _TEXTS),  # of `tables`: texts of words of the shard, in any row
    ]
)
