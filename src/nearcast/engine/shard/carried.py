"""What the objects of a batch carry on a shard, for kinds that need it: counts, texts, ranks.

The rank of an object is its number in object order over the whole run, the same on every shard.
How many objects came before the batch is in the shard's manifest. They are counted whether or not
a kind needs ranks, so that these are right from the first batch of a kind that does.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.route.envelope import Envelope
from nearcast.model.standing import Needs
from nearcast.wire.carried import TEXTS, Carried, carried_by
from nearcast.wire.tables import from_bytes, numbers


def carried(
    envelopes: list[Envelope],
    tables: list[pa.RecordBatch],
    objects: pa.RecordBatch,
    by_time: bool,
    ranked: int,
) -> Carried | None:
    """What the objects of a batch carry on a shard; None: nothing.

    `envelopes` are in the order of their splits, `tables` hold their objects, and `objects` are
    all of these. `ranked` objects came before the batch.
    """
    needs = Needs.NOTHING
    for envelope in envelopes:
        needs |= Needs(envelope.extras.needs)
    if not needs:
        return None
    texts = [from_bytes(e.extras.texts, TEXTS) for e in envelopes if e.extras.texts is not None]
    ranks = None
    if Needs.RANK in needs:
        every = every_object(envelopes, tables)
        ranks = ranked + _places(every, numbers(objects["pos"]), by_time)
    return carried_by(objects, texts, ranks, needs)


def every_object(envelopes: list[Envelope], tables: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """By envelope, the positions (by time, also the times) of all objects, wherever they went."""
    return [
        table if e.extras.order is None else from_bytes(e.extras.order, table.schema)
        for e, table in zip(envelopes, tables, strict=True)
    ]


def _places(
    every: list[pa.RecordBatch], some: NDArray[np.int64], by_time: bool
) -> NDArray[np.int64]:
    """The place of the objects at the positions `some` among all objects of the batch."""
    none = np.empty(0, np.int64)
    at = np.searchsorted(np.concatenate([none, *(numbers(t["pos"]) for t in every)]), some)
    if not by_time:
        return at
    time = np.concatenate([none, *(numbers(t["time"]) for t in every)])
    place = np.empty_like(time)
    place[np.argsort(time, kind="stable")] = np.arange(len(time))
    return place[at]
