"""Envelopes: all that goes from one split to one shard, as one row of bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from nearcast.engine.route.mail import read_mail
from nearcast.model.standing import Needs
from nearcast.wire.carried import objects_with
from nearcast.wire.tables import ENDS, REJECTS, from_bytes, to_bytes


class Directions(msgspec.Struct):
    """What a shard must do in a batch besides its events (`engine.moves.control`)."""

    batch: int
    orders: dict[str, dict[str, Any]] = {}  # kind: what to export at the end
    imports: dict[
        str, list[str]
    ] = {}  # kind: exports to take in, of all shards; relative to the checkpoint
    tables: dict[str, bytes] = {}  # kind: the routing table, to select by
    reach: dict[str, int] = {}  # kind: how many milliseconds back any shard's subscriptions look
    firsts: list[str] = []  # what the shards found for first results in the batch before


class Extras(msgspec.Struct):
    """What a split sends beside its objects (`engine.route.extras`)."""

    published: int  # objects of the whole split, also of those that went elsewhere
    needs: int = 0  # what the objects carry, as a value of `model.standing.Needs`
    texts: memoryview | None = None  # TEXTS of the words of the objects, if needed
    order: memoryview | None = None  # all objects of the split, if ranks need those elsewhere


class Envelope(msgspec.Struct):
    """One split's share for one shard."""

    directions: Directions
    split: int
    final: bool  # no later batch is planned: what happens at the latest instant may be reported
    latest: int  # latest time of any valid event of the split, also of those that went elsewhere
    seconds: float  # that the route step took until here
    events: dict[str, int]  # of the whole split, by op (sent to shard 0 only)
    objects: memoryview  # the table; empty if it goes by reference
    mail: str  # the file that holds it then (`engine.route.mail`)
    subscribes: dict[str, memoryview]  # by kind, of those that have any
    ends: memoryview  # ENDS
    rejects: memoryview
    extras: Extras
    asks: dict[str, memoryview] = {}  # by kind, of those that have any
    lasts: dict[str, memoryview] = {}  # subscribes that look back, the same
    rows: memoryview | None = None  # of what goes by reference, those for this shard; None: all
    held: memoryview | None = None  # of its objects, those that the shard holds (`window_parts`)
    in_use: list[str] = []  # kinds that route objects in the batch, as far as the split knows
    costs: dict[str, list[float]] = {}  # kind: what the split adds to each shard, by a plan

    @property
    def object_table(self) -> pa.RecordBatch:
        """OBJECTS, with what they carry."""
        schema = objects_with(Needs(self.extras.needs))
        if not self.mail:
            return from_bytes(self.objects, schema)
        whole = read_mail(self.mail, schema)
        return whole if self.rows is None else whole.take(pa.array(np.frombuffer(self.rows, _ROW)))

    @property
    def end_table(self) -> pa.RecordBatch:
        """ENDS."""
        return from_bytes(self.ends, ENDS)

    @property
    def reject_table(self) -> pa.RecordBatch:
        """REJECTS."""
        return from_bytes(self.rejects, REJECTS)


_ROW = np.dtype(np.int32)
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Envelope)


def pack(envelope: Envelope) -> bytes:
    """An envelope as bytes."""
    return _ENCODER.encode(envelope)


def unpack(data: bytes) -> Envelope:
    """The envelope that `pack` made."""
    return _DECODER.decode(data)


__all__ = ["Directions", "Envelope", "Extras", "pack", "to_bytes", "unpack"]
