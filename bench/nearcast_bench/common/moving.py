"""Subscriptions moved between the workers of a cluster when a new table comes, as the engine does.

What leaves is found by comparing the owners in both tables (`routing.grid.leaving`), written
as bytes, read by who takes it, and dropped by who gave it. Every worker's part is timed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearcast.engine.moves.parcels import Parcel, parcels_of
from nearcast.routing.grid.survey import RegionSurvey, join, survey_of
from nearcast.routing.grid.table import GridTable, pack
from nearcast.routing.orders import TABLE
from nearcast.wire.tables import REGIONS, from_bytes
from nearcast_bench.common.cluster import Cluster, Reals, id_hashes, timed


@dataclass(slots=True)
class Moved:
    """What a new table moved, and how long each worker was busy with it."""

    bytes: int
    copies: int
    looking: Reals  # seconds of finding out what leaves: each looks through all it holds
    moving: Reals  # seconds of writing, reading, inserting, dropping


def held_by(cluster: Cluster, now: int) -> list[pa.RecordBatch]:
    """The subscriptions that each worker holds, as REGIONS."""
    return [w.rows(w.living(now))[0] for w in cluster.workers]


def survey_by(held: list[pa.RecordBatch]) -> list[RegionSurvey]:
    """What each worker holds, for statistics and plans."""
    return [survey_of(c, id_hashes(c)) for c in held]


def move(cluster: Cluster, table: GridTable, now: int) -> Moved:
    """Let `table` hold from now on, and move what it puts elsewhere."""
    return move_by(cluster, pack(table), now)


def move_by(cluster: Cluster, data: bytes, now: int) -> Moved:
    """The same with a table of any router, as bytes."""
    router = cluster.dispatcher.router
    m = len(cluster.workers)
    moved = Moved(0, 0, np.zeros(m), np.zeros(m))
    sent: list[dict[int, Parcel]] = []
    drops = []
    for w, index in enumerate(cluster.workers):
        with timed(moved.looking, w):
            going = router.leaving({TABLE: data}, w, index, index.living(now))
        with timed(moved.moving, w):
            sent.append(parcels_of(index, going))
        drops.append(going.drops)
        moved.bytes += sum(len(parcel.controls) for parcel in sent[-1].values())
        moved.copies += len(going.slots)
    for w, index in enumerate(cluster.workers):
        with timed(moved.moving, w):
            index.drop(drops[w])
            for parcels in sent:
                if w in parcels:
                    came = from_bytes(parcels[w].controls, REGIONS)
                    index.apply(came, np.zeros(came.num_rows, np.int32))
            index.close()
    following = router.with_table(data)
    cluster.dispatcher.replaced(following, lambda: join(survey_by(held_by(cluster, now))))
    return moved
