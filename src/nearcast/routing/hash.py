"""`hash`: subscriptions dealt by their id, objects to every shard."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.routing.base import Placement, Router


def home_of(id_hash: NDArray[np.uint64], shards: int) -> NDArray[np.int64]:
    """The shard that an id's hash names; routers that plan place by it before their first plan."""
    return (id_hash % np.uint64(shards)).astype(np.int64)


class Hash(Router):
    """An id's hash names its shard; no plan, no statistics, about as many on each shard."""

    name = "hash"
    paper = "baseline (DSkype's hash-based distribution)"
    about = "subscriptions dealt by id, objects to every shard"
    by_id = True

    def home(self, id_hash: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The shard of each id."""
        return home_of(id_hash, self.shards)

    def place(self, controls: pa.RecordBatch, id_hash: NDArray[np.uint64]) -> Placement:
        """One copy, at home."""
        n = controls.num_rows
        return Placement(np.arange(n), self.home(id_hash), np.ones(n, bool))
