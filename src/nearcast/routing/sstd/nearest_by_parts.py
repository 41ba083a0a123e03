"""Snapshot kNN in two phases (SSTD, section 6.2): the nearest leaf first, then a radius.

Each worker has the objects of its leaves in a store. In the first phase the worker of one leaf at
the place of the ask gives its k nearest; the k-th distance is a radius that holds the k nearest of
all. In the second phase the ask goes, as one by region, to the workers of all leaves within that
radius, of every version by which an object of the period may have been routed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.extent import circle_boxes
from nearcast.model.region import CIRCLE
from nearcast.model.space import Space, distance
from nearcast.objects.base import Centres, Found, Objects, Queries, Regions
from nearcast.routing.sstd.object_routing import Lists, lists_of, route_objects
from nearcast.routing.sstd.qt_tree import QtTree
from nearcast.routing.sstd.versions import Versions

_FAR = np.inf
_NO_LIMIT = np.zeros(1, np.int64)


class Searched(Protocol):
    """What is needed of the store of a worker (`ObjectStore` has it)."""

    space: Space

    def nearest(self, queries: Queries, centres: Centres, /) -> Found:
        """The k nearest of its objects."""

    def within(self, queries: Queries, regions: Regions, limit: NDArray[np.int64], /) -> Found:
        """Its objects inside regions."""

    def rows(self, handles: NDArray[np.int64], /) -> Objects:
        """The objects behind handles."""


class Near(NamedTuple):
    """One object of an answer."""

    distance: float
    rank: int
    worker: int
    handle: int  # of the worker's store


class Answered(NamedTuple):
    """The answer of one ask, and what it took."""

    near: list[Near]  # nearest first; of equally near ones the lower rank first
    radius: float  # after the first phase; infinite: the leaf's worker had fewer than k
    visited: list[int]  # workers, in this order
    examined: list[int]  # objects that each of them looked at


class NearestLeaf:
    """Finds the leaf that is visited first: the one an object of that place and words would go to.

    It is nearest, its cell contains the place; of the leaves of a textual node, which share a
    cell, it is the one whose keyword list has most of the words.
    """

    def __init__(self, tree: QtTree) -> None:
        self._tree = tree
        self._lists: Lists = lists_of(tree)

    def worker(self, queries: Queries, centres: Centres) -> int:
        """The worker of that leaf."""
        words = queries.program if queries.conjunction[0] else queries.cover
        ascending = np.unique(words)
        ends = np.array([0, len(ascending)])
        leaf = route_objects(self._tree, self._lists, centres.x, centres.y, ends, ascending)
        return int(self._tree.shard[leaf[0]])


def in_two_phases(
    first: NearestLeaf,
    versions: Versions,
    stores: Sequence[Searched],
    queries: Queries,
    centres: Centres,
) -> Answered:
    """The k nearest of all workers' objects; `queries` and `centres` are one ask.

    Times of versions are those of objects: `Versions` says which leaf had them.
    """
    k = int(centres.k[0])
    begin = first.worker(queries, centres)
    found = stores[begin].nearest(queries, centres)
    near = _hits(found, found.value.tolist(), begin)
    radius = near[-1].distance if len(near) == k else _FAR
    visited, examined = [begin], [found.examined]
    for worker in _within_reach(versions, stores[begin].space, radius, queries, centres):
        if worker == begin:
            continue
        hits, looked = _part(stores[worker], worker, radius, queries, centres)
        near += hits
        visited.append(worker)
        examined.append(looked)
    return Answered(sorted(near)[:k], radius, visited, examined)


def in_one_round(
    stores: Sequence[Searched], queries: Queries, centres: Centres, workers: Sequence[int]
) -> Answered:
    """The way of one micro-batch: each of `workers` gives its k nearest, and these are merged."""
    near, examined = [], []
    for worker in workers:
        found = stores[worker].nearest(queries, centres)
        near += _hits(found, found.value.tolist(), worker)
        examined.append(found.examined)
    return Answered(sorted(near)[: int(centres.k[0])], _FAR, list(workers), examined)


def _within_reach(
    versions: Versions, space: Space, radius: float, queries: Queries, centres: Centres
) -> list[int]:
    """The workers of leaves within the radius; all that there are if it is infinite."""
    boxes = np.array([[-_FAR, -_FAR, _FAR, _FAR]])
    if radius < _FAR:
        out = np.empty((2, 4))
        x, y = float(centres.x[0]), float(centres.y[0])
        boxes = out[: circle_boxes(space.code, x, y, radius, out)]
    return versions.shards_for(boxes, int(queries.after[0]) + 1, int(queries.until[0]))


def _part(
    store: Searched, worker: int, radius: float, queries: Queries, centres: Centres
) -> tuple[list[Near], int]:
    """What a worker gives in the second phase: its objects in the circle, at most k."""
    if radius == _FAR:
        found = store.nearest(queries, centres)
        return _hits(found, found.value.tolist(), worker), found.examined
    x, y = float(centres.x[0]), float(centres.y[0])
    out = np.empty((2, 4))
    boxes = out[: circle_boxes(store.space.code, x, y, radius, out)]
    region = Regions(
        np.array([CIRCLE]),
        np.array([0, 3]),
        np.array([x, y, radius]),
        np.array([0, boxes.size]),
        frozen(boxes.ravel()),
    )
    found = store.within(queries, region, _NO_LIMIT)
    rows = store.rows(found.handles)
    code = store.space.code
    far = [distance(code, x, y, *at) for at in zip(rows.x.tolist(), rows.y.tolist(), strict=True)]
    return sorted(_hits(found, far, worker))[: int(centres.k[0])], found.examined


def _hits(found: Found, far: Sequence[float], worker: int) -> list[Near]:
    pairs = zip(far, found.rank.tolist(), found.handles.tolist(), strict=True)
    return [Near(d, rank, worker, handle) for d, rank, handle in pairs]
