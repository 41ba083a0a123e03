"""The route step: decode a split, refuse what is not valid, deal the rest into envelopes."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine import faults
from nearcast.engine.moves.control import Controls
from nearcast.engine.moves.planning import Samples
from nearcast.engine.options.settings import Settings
from nearcast.engine.route.envelope import Directions, Envelope, pack, to_bytes
from nearcast.engine.route.extras import extras_for
from nearcast.engine.route.mail import Mail
from nearcast.engine.shard.objects import homes, stores_by
from nearcast.engine.shard.window_parts import holders
from nearcast.kernels.hashing import hash_ids
from nearcast.kernels.slots import REPORTS
from nearcast.kinds.firsts import waits
from nearcast.routing import Router
from nearcast.wire.decode import Decoded
from nearcast.wire.tables import (
    ENDS,
    REJECTS,
    empty,
    numbers,
    replaced,
    strings,
    with_ends,
    with_flags,
)

# Objects for a shard: bytes, or the name of the mail and the rows of it (None: all).
Sent = tuple[memoryview, str, memoryview | None]


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
        self._one_home = all(first.shares_homes(router) for router in self.routers.values())
        self._anywhere = first
        self._costs: dict[str, list[float]] = {}
        self._samples = Samples(Path(checkpoint))
        self._sampling = controls.waits_for_objects(batch, self.routers, self._samples)

    def envelopes(
        self,
        decoded: Decoded,
        split: int,
        final: bool = False,
        kinds: Collection[str] | None = None,
    ) -> Iterator[tuple[int, bytes]]:
        """(shard, envelope) for every shard: each must learn how far time has come.

        `kinds` are in use by the end of the batch: the others route no objects. None: all may be.
        """
        faults.reach("route-read", self.batch)
        routing = time.perf_counter()
        self._keep_sample(decoded.objects, split)
        subscribes, ends = self._deal(decoded)
        in_use = self.routers if kinds is None else kinds
        # No kind routes the objects of a window that waits for its first subscription: one shard
        # holds each of them.
        part = bool(self.settings.awaited(in_use))
        routers = [self.routers[kind] for kind in in_use]
        objects, wanted, held = self._route(decoded.objects, routers, part)
        carried = extras_for(decoded, wanted, self.settings.shards, self.settings.order == "time")
        none = to_bytes(empty(REJECTS))
        asks = {kind: to_bytes(table) for kind, table in decoded.asks.items()}
        every = {*decoded.subscribes, *self.settings.from_start}
        known = sorted(every if kinds is None else kinds)
        lasts = {kind: to_bytes(table) for kind, table in decoded.lasts.items()}
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
                        *objects[shard][:2],
                        {kind: to_bytes(table) for kind, table in subscribes[shard].items()},
                        to_bytes(ends[shard]),
                        to_bytes(decoded.rejects) if first else none,
                        carried[shard],
                        asks,
                        lasts,
                        objects[shard][2],
                        memoryview(held[shard].tobytes()) if held is not None else None,
                        known,
                        self._costs if first else {},
                    )
                ),
            )

    def _route(
        self, objects: pa.RecordBatch, routers: list[Router], part: bool
    ) -> tuple[list[Sent], NDArray[np.bool_] | None, list[NDArray[np.bool_]] | None]:
        """Objects for each shard, as bytes or by reference, once if any kind needs them there;
        which objects that are, by shard and row (None: all go to every shard);
        and if each is held on one shard (`part`), which ones of those that go to a shard."""
        by_name = bool(self.settings.mail and objects.num_rows)
        mail = Mail(Path(self.settings.mail))
        none = memoryview(b"")
        shards = self.settings.shards
        wanted = np.zeros((shards, objects.num_rows), bool)
        for router in routers:
            routes = router.route(objects)
            if routes is None:
                posted = mail.post(self.batch, objects) if by_name else ""
                data = none if by_name else to_bytes(objects)
                sent: list[Sent] = [(data, posted, None)] * shards
                home = holders(numbers(objects["pos"]), None, shards) if part else None
                held = None if home is None else [home == shard for shard in range(shards)]
                return sent, None, held
            wanted[routes.shards, routes.rows] = True
        if self.settings.stores and stores_by(self.routers) is None:
            home = homes(numbers(objects["pos"]), shards)
            wanted[home, np.arange(objects.num_rows)] = True
        mine = None
        if part:
            home = holders(numbers(objects["pos"]), wanted, shards)
            wanted[home, np.arange(objects.num_rows)] = True
            mine = [(home == shard)[mask] for shard, mask in enumerate(wanted)]
        if by_name:
            name = mail.post(self.batch, objects)
            rows = [np.flatnonzero(mask).astype(np.int32).data for mask in wanted]
            return [(none, name, some) for some in rows], wanted, mine
        shares = [to_bytes(objects.filter(pa.array(mask))) for mask in wanted]
        return [(share, "", None) for share in shares], wanted, mine

    def _keep_sample(self, objects: pa.RecordBatch, split: int) -> None:
        """Objects for a plan, while one is waited for."""
        if self._sampling:
            self._samples.add(self.batch, split, objects)

    def _deal(
        self, decoded: Decoded
    ) -> tuple[list[dict[str, pa.RecordBatch]], list[pa.RecordBatch]]:
        """(subscribes by kind, ENDS) for each shard, in the order of the log.

        A subscribe ends what its id meant before, which may rest on any shard unless all kinds have
        one home for an id: there it goes as an end where it does not go as a subscription.
        """
        shards = self.settings.shards
        self._costs = {}
        subscribes: list[dict[str, pa.RecordBatch]] = [{} for _ in range(shards)]
        ends = self._ends(decoded.ends)
        for kind, table in decoded.subscribes.items():
            router = self.routers[kind]
            place = router.place(table, hash_ids(*_ids(table)))
            marked = _marked(table, router)
            sent = np.zeros((shards, table.num_rows), np.int8)  # 1: a copy, 2: it reports
            sent[place.shards, place.rows] = np.where(place.reports, 2, 1)
            for shard in range(shards):
                share = _share(marked, sent[shard])
                if share.num_rows:
                    subscribes[shard][kind] = share
                if not self._one_home and share.num_rows < table.num_rows:
                    elsewhere = table.filter(pa.array(sent[shard] == 0))
                    ends[shard].append(replaced(elsewhere))
            if place.costs is not None:
                costs = place.costs
                if kind in decoded.lasts and waits(self.settings.kinds[kind]):
                    later = np.isin(numbers(table["pos"]), numbers(decoded.lasts[kind]["pos"]))
                    costs = np.where(later, 0.0, costs)  # they come with their first results
                added = np.bincount(place.shards, costs[place.rows], shards)
                self._costs[kind] = added.tolist()
        return subscribes, [with_ends(empty(ENDS), some, ENDS) for some in ends]

    def _ends(self, ends: pa.RecordBatch) -> list[list[pa.RecordBatch]]:
        """Unsubscribes for each shard."""
        shards = self.settings.shards
        if not self._one_home or not ends.num_rows:
            return [[ends] for _ in range(shards)]
        place = self._anywhere.place(ends, hash_ids(*_ids(ends)))
        return [[ends.take(pa.array(place.rows[place.shards == shard]))] for shard in range(shards)]


def _ids(table: pa.RecordBatch) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(bytes, offsets) of the ids."""
    offsets, data = strings(table["id"])
    return data, offsets


def _share(subscribes: pa.RecordBatch, sent: NDArray[np.int8]) -> pa.RecordBatch:
    """The rows that go to a shard; copies do not report."""
    if not (sent == 2).all():
        rows = np.flatnonzero(sent)
        subscribes, sent = subscribes.take(pa.array(rows)), sent[rows]
    silent = sent == 1
    if not silent.any():
        return subscribes
    flags = numbers(subscribes["flags"])
    return with_flags(subscribes, np.where(silent, flags & ~REPORTS, flags))


def _marked(subscribes: pa.RecordBatch, router: Router) -> pa.RecordBatch:
    """New subscriptions with the mark of the table that places them."""
    if not router.mark:
        return subscribes
    return with_flags(subscribes, numbers(subscribes["flags"]) | router.mark)
