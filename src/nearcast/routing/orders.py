"""Orders of the driver to shards: what a new table or a plan makes a shard send and drop."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.int64]
Order = dict[str, Any]

# Keys of an order.
TABLE = "table"  # holds from the batch after that on; shards export what it puts elsewhere
HOMES = "homes"  # the path of a file: where a plan puts the subscriptions that it knows


class Leaving(NamedTuple):
    """What an order makes a shard do: slots to drop, and copies (slot, shard) to send."""

    drops: Slots
    slots: Slots
    shards: Slots
    parity: bool | None = None  # that copies get; None: as they are


class Plan(NamedTuple):
    """What a router made of objects and subscriptions, for its next table.

    The table says where subscriptions go, or `ids` and `homes` do for each that was surveyed.
    """

    data: bytes  # what the file of the plan holds
    ids: NDArray[np.uint64] = np.empty(0, np.uint64)  # hashes of ids, in the order of the survey
    homes: NDArray[np.int64] = np.empty(0, np.int64)  # the shard of each
    costs: NDArray[np.float64] = np.empty(0)  # C(w) of each shard by it, where the router keeps it
