"""Compiling the kernels of a store before they are needed."""

from __future__ import annotations

import numpy as np

from nearcast.index.arena import Memory
from nearcast.kernels.hashing import word_hash
from nearcast.model.region import BBOX
from nearcast.model.space import Space
from nearcast.objects import STORES
from nearcast.objects.base import (
    NOT_SEALED,
    Centres,
    Objects,
    Queries,
    Regions,
    Slicing,
    Wishes,
)

__all__ = ["warm"]

_N = 1500  # objects: enough for a tree with tables
_MANY = 64  # queries
_WORD = word_hash("word")


def warm(name: str) -> None:
    """Use every kernel of a store once."""
    store = STORES[name](Space.GEOGRAPHIC, Memory(), Slicing(delta_ms=_N, least=1))
    store.add(_objects(0))
    store.add(_objects(_N))
    store.seal(_N)
    common = _queries()
    none = np.zeros(2, np.int64)
    regions = Regions(
        np.full(1, BBOX), np.array([0, 4]), np.array([-9.0, -9.0, 9.0, 9.0]), none, np.empty(0)
    )
    centres = Centres(np.zeros(1), np.zeros(1), np.ones(1, np.int64))
    weight = np.ones(1)
    keyword = np.array([_WORD], np.uint64)
    wishes = Wishes(np.array([0, 1]), keyword, weight, weight / 2, weight * 1000)
    found = store.within(common, regions, np.zeros(1, np.int64))
    store.nearest(common, centres)
    store.best(common, centres, wishes)
    store.best(*_many_times(common, centres, wishes))
    for k in (0, 1):
        store.word_counts(common, regions, np.full(1, k), none, np.empty(0, np.uint64))
    store.rows(found.handles)
    store.fields(found.handles)
    store.snapshot(NOT_SEALED)


def _many_times(q: Queries, c: Centres, w: Wishes) -> tuple[Queries, Centres, Wishes]:
    """So many that a store may search for all of them in another way."""
    n = _MANY
    none = np.zeros(n + 1, np.int64), np.empty(0, np.uint64)
    return (
        Queries(
            q.after.repeat(n), q.until.repeat(n), q.before_rank.repeat(n), *none, *none,
            q.conjunction.repeat(n),
        ),
        Centres(c.x.repeat(n), c.y.repeat(n), c.k.repeat(n)),
        Wishes(
            np.arange(n + 1), w.keywords.repeat(n), w.weights.repeat(n), w.alpha.repeat(n),
            w.maxdist.repeat(n),
        ),
    )  # fmt: skip


def _objects(first: int) -> Objects:
    """Objects in a row, each with a word of its own."""
    at = np.arange(first, first + _N)
    words = np.sort((at.astype(np.uint64) + np.uint64(9)) << np.uint64(2))
    return Objects(
        at / _N,
        at / _N,
        at,
        at,
        np.arange(_N + 1),
        words,
        np.ones(_N, np.int32),
        np.zeros(_N, np.int32),
        np.arange(_N + 1),
        np.zeros(_N, np.uint8),
    )


def _queries() -> Queries:
    """One query over all times, without words."""
    none = np.zeros(2, np.int64), np.empty(0, np.uint64)
    far = np.array([2**60])
    return Queries(-far, far, far, *none, *none, np.array([True]))
