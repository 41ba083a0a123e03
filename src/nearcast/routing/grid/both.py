"""Two strategies side by side (PS2Stream V-B), in what a router is made from.

A new table places what comes; an old one, if there is one, still routes for the subscriptions that
it placed. Each subscription carries the parity of the strategy that placed it, so that a shard
knows which table it goes by. With the next strategy the parity changes. Before an old table is
dropped, all subscriptions that it placed have moved and carry the new parity.
"""

from __future__ import annotations

import msgspec

_BOTH = b"both:"


class Both(msgspec.Struct, frozen=True, array_like=True):
    """The tables in use, each as `grid.table.unpack` takes it."""

    new: bytes
    old: bytes = b""
    parity: bool = False  # of what `new` places
    since: int = 0  # the batch from which it does


def pack_both(both: Both) -> bytes:
    """As the table of a router; the first strategy alone is its table itself."""
    if both == Both(both.new):
        return both.new
    return _BOTH + msgspec.msgpack.encode(both)


def unpack_both(table: bytes) -> Both:
    """The tables that `pack_both` packed."""
    if table.startswith(_BOTH):
        return msgspec.msgpack.decode(table[len(_BOTH) :], type=Both)
    return Both(table)
