"""Envelopes: all that goes from one split to one shard, as one row of bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from nearcast.engine.mail import read_mail
from nearcast.wire.tables import CONTROLS, OBJECTS, REJECTS, from_bytes, to_bytes


class Directions(msgspec.Struct):
    """What a shard must do in a batch besides its events (`engine.moves`)."""

    batch: int
    orders: dict[str, dict[str, Any]] = {}  # kind: what to export at the end
    imports: dict[str, list[str]] = {}  # kind: exports to take in, of all shards
    tables: dict[str, bytes] = {}  # kind: the routing table, to select by


class Envelope(msgspec.Struct):
    """One split's share for one shard."""

    directions: Directions
    split: int
    final: bool  # no later batch is planned: what happens at the latest instant may be told
    latest: int  # latest time of any valid event of the split, also of those that went elsewhere
    seconds: float  # that the route step took until here
    events: dict[str, int]  # of the whole split, by op (sent to shard 0 only)
    objects: memoryview  # the table; empty if it goes by reference
    mail: str  # the file that holds it then (`engine.mail`)
    controls: memoryview
    rejects: memoryview
    costs: dict[str, list[float]] = {}  # kind: what the split adds to each shard, by a plan

    @property
    def object_table(self) -> pa.RecordBatch:
        """OBJECTS."""
        return read_mail(self.mail, OBJECTS) if self.mail else from_bytes(self.objects, OBJECTS)

    @property
    def control_table(self) -> pa.RecordBatch:
        """CONTROLS."""
        return from_bytes(self.controls, CONTROLS)

    @property
    def reject_table(self) -> pa.RecordBatch:
        """REJECTS."""
        return from_bytes(self.rejects, REJECTS)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Envelope)


def pack(envelope: Envelope) -> bytes:
    """An envelope as bytes."""
    return _ENCODER.encode(envelope)


def unpack(data: bytes) -> Envelope:
    """The envelope that `pack` made."""
    return _DECODER.decode(data)


__all__ = ["Directions", "Envelope", "pack", "to_bytes", "unpack"]
