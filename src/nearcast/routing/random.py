"""`random`: like `hash`, but re-deals some subscriptions at random every few batches.

It balances nothing. It is there to show, and to let tests insist, that running subscriptions move
between shards without a trace in the notifications.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.hashing import mix64_array
from nearcast.routing.base import Load
from nearcast.routing.hash import Hash

EVERY = 2  # batches
SHARE = 0.3  # of the subscriptions, each time


class Random(Hash):
    """Homes by hash, with exceptions: a sorted list of id hashes and their shards."""

    name = "random"
    paper = "none: it exercises moves"
    about = "like hash, but re-deals a third of the subscriptions at random every other batch"
    by_id = False
    keeps_ids = True

    def __init__(self, shards: int, table: bytes = b"") -> None:
        super().__init__(shards, table)
        rows = np.frombuffer(table, np.uint64).reshape(-1, 2)
        self._ids, self._shards = rows[:, 0], rows[:, 1].astype(np.int64)

    def home(self, id_hash: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The shard of each id, exceptions first."""
        homes = super().home(id_hash)
        if len(self._ids):
            at = np.minimum(np.searchsorted(self._ids, id_hash), len(self._ids) - 1)
            homes = np.where(self._ids[at] == id_hash, self._shards[at], homes)
        return homes

    def order(self, batch: int, loads: list[Load]) -> dict[str, Any] | None:
        """A new deal every other batch."""
        del loads  # it moves whatever they are
        return {"seed": batch + 1} if batch % EVERY == 0 and self.shards > 1 else None

    def homes(
        self, order: dict[str, Any], shard: int, id_hash: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """A third goes to random shards, drawn with the order's seed."""
        lot = mix64_array(id_hash ^ mix64_array(np.array([order["seed"]], np.uint64))[0])
        drawn = (lot >> np.uint64(40)).astype(np.float64) < SHARE * 2**24
        return np.where(drawn, (lot % np.uint64(self.shards)).astype(np.int64), shard)

    def moved(self, id_hash: NDArray[np.uint64], shards: NDArray[np.int64]) -> bytes:
        """The exceptions with these put in."""
        ids = np.concatenate([self._ids, id_hash])
        homes = np.concatenate([self._shards, shards]).astype(np.uint64)
        _, last = np.unique(ids[::-1], return_index=True)
        rows = np.stack([ids[::-1][last], homes[::-1][last]], axis=1)
        return np.ascontiguousarray(rows).tobytes()
