"""C(w) of a plan kept up to date: what one batch on one shard adds to it and takes away.

Counted are the subscriptions that see what comes next (`counted`). A plan surveys these, and what
was counted before a batch, or came with it, and is not counted after it, is taken off: by its
unsubscribe, its replacement or its `expires`. This goes by what the shard holds before and after
the batch, so a batch that is repeated says the same, and nothing is taken off twice.

To look through all subscriptions takes 30 ms a million. It is done only where it must be: while
one of them may end by time, or when an event comes late and may end again what has ended. Else
the index knows what the batch ended.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.shard.state import Manifest
from nearcast.index import LocalIndex
from nearcast.kernels.slots import SUBSCRIBE
from nearcast.routing import Router
from nearcast.routing.costed import counted
from nearcast.routing.orders import TABLE, Order
from nearcast.wire.tables import FOREVER, NEVER, numbers

Slots = NDArray[np.int64]
Costs = NDArray[np.float64]


def _latest_end(controls: list[pa.RecordBatch]) -> int:
    """The latest `expires` of new subscriptions; NEVER without any."""
    latest = NEVER
    for table in controls:
        end = numbers(table["end"])
        begins = numbers(table["op"]) == SUBSCRIBE
        latest = max(latest, int(end[begins & (end < FOREVER)].max(initial=NEVER)))
    return latest


class Bill:
    """What a batch does to C(w) of one kind; opened before the batch is applied.

    In the batch after which a plan holds (`planning`), what began and ended since the survey
    counts where that plan has its home; the route step could not know.
    """

    def __init__(
        self,
        kind: str,
        shard: int,
        router: Router,
        order: Order,
        index: LocalIndex,
        before: Manifest,
        controls: list[pa.RecordBatch],
    ) -> None:
        self._order = order if TABLE in order else {}
        self._router = router.with_table(order[TABLE]) if self._order else router
        self._shard = shard
        self._index = index
        self._first = len(index)
        self._before: Slots | None = None
        new_end = _latest_end(controls)
        self.expiry = max(before.expiry.get(kind, NEVER), new_end)  # until then may one end by time
        late = any(numbers(t["time"]).min(initial=FOREVER) <= before.now for t in controls)
        if self._router.table and (new_end > NEVER or self.expiry > before.now or late):
            self._before = counted(index, before.now)

    def settle(self, now: int) -> list[float]:
        """After the batch, which reached `now`: added to C(w) of each shard, less taken away."""
        if not self._router.table:
            return [0.0] * self._router.shards
        index = self._index
        new = np.arange(self._first, len(index))
        gone = index.ended()
        if self._before is not None:
            here = np.concatenate([self._before, new])
            gone = np.setdiff1d(here, counted(index, now), assume_unique=True)
        total = np.zeros(self._router.shards)
        if len(gone):
            total -= self._by_home(gone, self._router.costs(index.rows(gone)[0]))
        if self._order and len(new):
            placed = self._router.place(index.rows(new)[0], index.id_hashes(new))
            assert placed.costs is not None  # there is a plan
            total += self._by_home(new, placed.costs)
        reported: list[float] = total.tolist()
        return reported

    def _by_home(self, slots: Slots, costs: Costs) -> Costs:
        """The sum of `costs` for each shard."""
        homes = np.full(len(slots), self._shard)
        if self._order:
            homes = self._router.homes(self._order, self._shard, self._index.id_hashes(slots))
        return np.bincount(homes, costs, self._router.shards).astype(np.float64)


def add_costs(costs: dict[str, list[float]], reported: dict[str, list[float]]) -> None:
    """Put what was reported of each shard, by kind, on top of `costs`."""
    for kind, added in reported.items():
        before = costs.get(kind, [0.0] * len(added))
        costs[kind] = [a + b for a, b in zip(before, added, strict=True)]
