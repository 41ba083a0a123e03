"""`broadcast`: everything to every shard. The null strategy: nothing can be missed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.routing.base import Placement, Router
from nearcast.routing.hash import home_of


class Broadcast(Router):
    """Every shard holds every subscription; the one that the id's hash names reports."""

    name = "broadcast"
    paper = "baseline"
    about = "everything to every shard, one reports; with its scan, for checking only"
    by_id = True

    def place(self, controls: pa.RecordBatch, id_hash: NDArray[np.uint64]) -> Placement:
        """One copy per shard."""
        rows = np.repeat(np.arange(controls.num_rows), self.shards)
        shards = np.tile(np.arange(self.shards), controls.num_rows)
        owner = home_of(id_hash, self.shards)
        return Placement(rows, shards, owner[rows] == shards)
