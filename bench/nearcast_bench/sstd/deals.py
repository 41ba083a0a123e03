"""Who stores a post, and whom an ask visits, under each router (SSTD 4.2, 6.2, 7.1).

SSTD, Quadtree and Text: the worker of the leaf. Tornado and PS2Stream extended to objects that
stay as section 7.1 says: a post rests at one worker of its cell (of a cell dealt by words, at any
one of its workers), an ask goes to all workers of the cells that it overlaps. The engine deals
posts by their place in the log and asks every worker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.kernels.hashing import mix64_array
from nearcast.kernels.slots import CONJUNCTION, REPORTS, SUBSCRIBE
from nearcast.model.extent import circle_boxes
from nearcast.model.region import BBOX
from nearcast.model.space import Space
from nearcast.objects.base import Centres, Queries
from nearcast.routing import ROUTERS
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.survey import RegionSurvey, survey_of
from nearcast.routing.sstd.nearest_by_parts import NearestLeaf
from nearcast.routing.sstd.object_routing import lists_of, route_objects
from nearcast.routing.sstd.qt_router import QtRouter
from nearcast.routing.sstd.versions import Versions
from nearcast.wire.tables import REGIONS, list_column
from nearcast.workload.tables import controls, numbered
from nearcast_bench.common.cluster import id_hashes
from nearcast_bench.sstd.asking import Asks
from nearcast_bench.sstd.source import Longs, Posts, Reals

SSTD, QUADTREE, TEXT = "sstd", "sstd-quadtree", "sstd-text"
TORNADO, PS2STREAM, ENGINE = "tornado", "ps2stream", "engine"
PLANNED = (SSTD, QUADTREE, TEXT, TORNADO, PS2STREAM)
ALL = (*PLANNED, ENGINE)


class Deal(ABC):
    """How one router deals."""

    name: str
    workers: int

    @abstractmethod
    def stored_at(self, posts: Posts, first: int) -> Longs:
        """The worker of each post; `first`: the rank of the first."""

    @abstractmethod
    def visited(self, boxes: Reals, asks: Asks) -> list[int]:
        """The workers that an ask with these outer boxes visits."""

    @abstractmethod
    def begins_at(self, queries: Queries, centres: Centres) -> int:
        """The worker of the first phase of an ask for nearest objects; -1: all at once."""

    def visited_around(self, asks: Asks, i: int, radius: float) -> list[int]:
        """The workers of the second phase, for a radius in metres."""
        boxes = np.array([[-np.inf, -np.inf, np.inf, np.inf]])
        if radius < np.inf:
            out = np.empty((2, 4))
            x, y = float(asks.x[i]), float(asks.y[i])
            boxes = out[: circle_boxes(Space.GEOGRAPHIC.code, x, y, radius, out)]
        return self.visited(boxes, asks)


class Engine(Deal):
    """Posts in turn; asks everywhere."""

    name = ENGINE

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def stored_at(self, posts: Posts, first: int) -> Longs:
        """As `Deal` says."""
        return np.arange(first, first + len(posts.x)) % self.workers

    def visited(self, boxes: Reals, asks: Asks) -> list[int]:
        """As `Deal` says."""
        del boxes, asks
        return list(range(self.workers))

    def begins_at(self, queries: Queries, centres: Centres) -> int:
        """As `Deal` says."""
        del queries, centres
        return -1


class ByTree(Deal):
    """By a QT-tree."""

    def __init__(self, router: QtRouter) -> None:
        assert router.tree is not None
        self.name, self.workers, self.router = router.name, router.shards, router
        self.tree = router.tree
        self.versions = Versions([-1], [self.tree])
        self._lists = lists_of(self.tree)
        self.nearest_leaf = NearestLeaf(self.tree)

    def stored_at(self, posts: Posts, first: int) -> Longs:
        """As `Deal` says."""
        del first
        leaves = route_objects(self.tree, self._lists, *posts)
        return self.tree.shard[leaves].astype(np.int64)

    def visited(self, boxes: Reals, asks: Asks) -> list[int]:
        """As `Deal` says."""
        return self.versions.shards_for(boxes, 0, asks.now)

    def begins_at(self, queries: Queries, centres: Centres) -> int:
        """As `Deal` says."""
        return self.nearest_leaf.worker(queries, centres)


class ByGrid(Deal):
    """By a table of cells, of which each has one worker, or several that share it by words."""

    def __init__(self, router: GridRouter) -> None:
        assert router.grid is not None
        self.name, self.workers, self.router = router.name, router.shards, router
        self.grid = router.grid

    def stored_at(self, posts: Posts, first: int) -> Longs:
        """As `Deal` says."""
        t = self.grid
        held = t.cells[self._lines(posts.y), self._columns(posts.x)].astype(np.int64)
        by_words = np.flatnonzero(held < 0)
        n = -1 - held[by_words]
        begin, among = t.worker_offsets[n], np.diff(t.worker_offsets)[n]
        rank = mix64_array((by_words + first + 1).astype(np.uint64))
        held[by_words] = t.workers[begin + (rank % among.astype(np.uint64)).astype(np.int64)]
        return held

    def visited(self, boxes: Reals, asks: Asks) -> list[int]:
        """As `Deal` says."""
        del asks
        found: set[int] = set()
        for west, south, east, north in boxes:
            columns = self._columns(np.array([west, east]))
            lines = self._lines(np.array([south, north]))
            cells = self.grid.cells[lines[0] : lines[1] + 1, columns[0] : columns[1] + 1]
            for cell in np.unique(cells).tolist():
                found.update(self._workers_of(cell))
        return sorted(found)

    def begins_at(self, queries: Queries, centres: Centres) -> int:
        """One of the workers of the cell, at random (7.1): as the words' hash has it."""
        cell = int(self.grid.cells[self._lines(centres.y)[0], self._columns(centres.x)[0]])
        workers = self._workers_of(cell)
        return workers[int(queries.program.sum() >> np.uint64(8)) % len(workers)]

    def _workers_of(self, cell: int) -> list[int]:
        if cell >= 0:
            return [cell]
        first, stop = self.grid.worker_offsets[-1 - cell :][:2].tolist()
        found: list[int] = self.grid.workers[first:stop].tolist()
        return found

    def _columns(self, x: Reals) -> Longs:
        return _places(x, self.grid.bounds[0], self.grid.bounds[2], self.grid.cells.shape[1])

    def _lines(self, y: Reals) -> Longs:
        return _places(y, self.grid.bounds[1], self.grid.bounds[3], self.grid.cells.shape[0])


def _places(v: Reals, low: float, high: float, side: int) -> Longs:
    """The column or row of coordinates, as `routing.grid.table` has it."""
    inside = np.clip(v, low, high)
    part = (0.5 * inside - 0.5 * low) / (0.5 * high - 0.5 * low)
    return np.minimum((part * side).astype(np.int64), side - 1)


class Standing(NamedTuple):
    """Standing range queries: as controls, and as a plan reads them."""

    controls: list[pa.RecordBatch]
    survey: RegionSurvey


def standing_of(asks: Asks, first: int = 0) -> Standing:
    """CRQs with the regions and words of asks."""
    n, k = len(asks), asks.keywords
    words = np.ascontiguousarray(asks.words[:, :k]).ravel()
    boxes = np.array([asks.box(i) for i in range(n)]).reshape(n, 4)
    made = controls(
        n,
        op=pa.array(np.full(n, SUBSCRIBE, np.uint8)),
        time=pa.array(np.zeros(n, np.int64)),
        flags=pa.array(np.full(n, BBOX | REPORTS | CONJUNCTION, np.int32)),
        id=numbered("s", np.arange(first, first + n)),
        program=list_column(np.arange(n + 1) * k, words, REGIONS.field("program").type),
        region=list_column(np.arange(0, 4 * n + 1, 4), boxes.ravel(), REGIONS.field("region").type),
    )  # fmt: skip
    return Standing([made], survey_of(made, id_hashes(made)))


def deal_of(
    name: str, workers: int, sample: Posts, survey: RegionSurvey, theta: float = 64.0
) -> Deal:
    """The deal of a router, planned by posts and queries."""
    if name == ENGINE:
        return Engine(workers)
    router = ROUTERS[name](workers)
    assert isinstance(router, QtRouter | GridRouter)
    given = {"theta": theta} if isinstance(router, QtRouter) else {}
    made = router.with_table(router.plan(sample.sample(), survey, given).data)
    if isinstance(made, QtRouter):
        return ByTree(made)
    assert isinstance(made, GridRouter)
    return ByGrid(made)
