"""The route step: decode a split, refuse what is not valid, deal the rest into envelopes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine import faults
from nearcast.engine.envelope import Directions, Envelope, pack, to_bytes
from nearcast.engine.mail import Mail
from nearcast.engine.moves import Controls
from nearcast.engine.planning import Samples
from nearcast.engine.settings import Settings
from nearcast.kernels.hashing import hash_ids
from nearcast.kernels.ragged import gather
from nearcast.kernels.slots import PARITY, REPLACED, REPORTS, SUBSCRIBE, UNSUBSCRIBE
from nearcast.routing import GridRouter, Router
from nearcast.wire.decode import Decoded
from nearcast.wire.tables import (
    CONTROLS,
    KINDS,
    REJECTS,
    empty,
    list_column,
    lists,
    numbers,
    strings,
)


class RouteStep:
    """Turns decoded splits into envelopes, by the routing version of the batch."""

    def __init__(self, settings: Settings, checkpoint: str, batch: int) -> None:
        controls = Controls(Path(checkpoint), settings)
        self.settings = settings
        self.batch = batch
        self.directions: Directions = controls.directions(batch)
        self.routers: dict[str, Router] = controls.routers(batch)
        first = next(iter(self.routers.values()))
        # An id may change its kind: unless all kinds have one home for it, ends go everywhere.
        self._one_home = first.by_id and all(
            type(r) is type(first) and r.table == first.table for r in self.routers.values()
        )
        self._anywhere = first
        self._costs: dict[str, list[float]] = {}
        self._samples = Samples(Path(checkpoint))
        self._sampling = controls.waits_for_objects(batch, self.routers, self._samples)

    def envelopes(
        self, decoded: Decoded, split: int, final: bool = False
    ) -> Iterator[tuple[int, bytes]]:
        """(shard, envelope) for every shard: each must learn how far time has come."""
        faults.reach("route-read", self.batch)
        routing = time.perf_counter()
        self._keep_sample(decoded.objects, split)
        shares = self._deal(decoded.controls)
        objects = self._route(decoded.objects)
        none = to_bytes(empty(REJECTS))
        for shard in range(self.settings.shards):
            first = shard == 0
            yield (
                shard,
                pack(
                    Envelope(
                        self.directions,
                        split,
                        final,
                        decoded.latest,
                        decoded.seconds + time.perf_counter() - routing,
                        dict(decoded.events) if first else {},
                        *objects[shard],
                        to_bytes(shares[shard]),
                        to_bytes(decoded.rejects) if first else none,
                        self._costs if first else {},
                    )
                ),
            )

    def _route(self, objects: pa.RecordBatch) -> list[tuple[memoryview, str]]:
        """Objects for each shard, as bytes or by reference, once if any kind needs them there."""
        wanted = np.zeros((self.settings.shards, objects.num_rows), bool)
        for router in self.routers.values():
            routes = router.route(objects)
            if routes is None:
                if self.settings.mail and objects.num_rows:
                    mail = Mail(Path(self.settings.mail))
                    return [
                        (memoryview(b""), mail.post(self.batch, objects))
                    ] * self.settings.shards
                return [(to_bytes(objects), "")] * self.settings.shards
            wanted[routes.shards, routes.rows] = True
        return [(to_bytes(objects.filter(pa.array(mask))), "") for mask in wanted]

    def _keep_sample(self, objects: pa.RecordBatch, split: int) -> None:
        """Objects for a plan, while one is waited for."""
        if self._sampling:
            self._samples.add(self.batch, split, objects)

    def _deal(self, controls: pa.RecordBatch) -> list[pa.RecordBatch]:
        """CONTROLS for each shard, in the order of the log."""
        n, shards = controls.num_rows, self.settings.shards
        self._costs = {}
        if n == 0:
            return [empty(CONTROLS)] * shards
        offsets, data = strings(controls["id"])
        id_hash = hash_ids(data, offsets)
        op, kind = numbers(controls["op"]), numbers(controls["kind"])
        tells = np.zeros((shards, n), np.int8)  # 0 not sent, 1 the end of an id, 2 copy, 3 reports
        if not self._one_home:
            tells[:] = 1
        ending = np.flatnonzero(op == UNSUBSCRIBE)
        if self._one_home and len(ending):
            place = self._anywhere.place(controls.take(pa.array(ending)), id_hash[ending])
            tells[place.shards, ending[place.rows]] = 1
        for code, name in enumerate(KINDS):
            rows = np.flatnonzero((op == SUBSCRIBE) & (kind == code))
            if len(rows):
                place = self.routers[name].place(controls.take(pa.array(rows)), id_hash[rows])
                tells[place.shards, rows[place.rows]] = np.where(place.reports, 3, 2)
                controls = _marked(controls, rows, self.routers[name])
                if place.costs is not None:
                    added = np.bincount(place.shards, place.costs[place.rows], shards)
                    self._costs[name] = added.tolist()
        return [self._share(controls, tells[shard]) for shard in range(shards)]

    def _share(self, controls: pa.RecordBatch, tells: NDArray[np.int8]) -> pa.RecordBatch:
        rows = np.flatnonzero(tells)
        share = controls.take(pa.array(rows))
        told = tells[rows]
        silent = told == 2
        if silent.any():
            flags = np.where(silent, numbers(share["flags"]) & ~REPORTS, numbers(share["flags"]))
            at = CONTROLS.get_field_index("flags")
            share = share.set_column(at, CONTROLS.field(at), pa.array(flags.astype(np.int32)))
        ends = (told == 1) & (numbers(share["op"]) == SUBSCRIBE)
        return _only_ends(share, ends) if ends.any() else share


def _marked(controls: pa.RecordBatch, rows: NDArray[np.int64], router: Router) -> pa.RecordBatch:
    """New subscriptions with the parity of the strategy that places them."""
    if not isinstance(router, GridRouter) or not router.both.parity:
        return controls
    flags = numbers(controls["flags"]).copy()
    flags[rows] |= PARITY
    at = CONTROLS.get_field_index("flags")
    return controls.set_column(at, CONTROLS.field(at), pa.array(flags))


def _only_ends(share: pa.RecordBatch, ends: NDArray[np.bool_]) -> pa.RecordBatch:
    """`share` with some subscribes cut down to the end that they are for an older one."""
    columns = []
    for field, column in zip(CONTROLS, share.columns, strict=True):
        if field.name == "op":
            column = pa.array(np.where(ends, REPLACED, numbers(column)).astype(np.uint8))
        elif pa.types.is_large_list(field.type):
            offsets, values = lists(column, field.type.value_type.to_pandas_dtype())
            lengths = np.where(ends, 0, np.diff(offsets))
            column = list_column(*gather(values, offsets[:-1], lengths), field.type)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=CONTROLS)
