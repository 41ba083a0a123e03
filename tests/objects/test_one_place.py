"""100,000 objects at one point, one word in nearly all of them: exact, and without much more work.

The scan is too slow for so many; what is right follows from how they are made.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.objects.making import FOREVER, Query, centres_of, queries_of, regions_of, wishes_of

from nearcast.index.arena import Memory
from nearcast.kernels.hashing import word_hash
from nearcast.model.region import Bbox, Circle
from nearcast.model.space import Space
from nearcast.objects import STORES, ObjectStore
from nearcast.objects.base import Objects, Slicing

N, STEP = 100_000, 25_000
X, Y = 139.7, 35.6
ALL, SEVENTH = word_hash("all"), word_hash("seventh")
ONE, BOTH = np.array([ALL], np.uint64), np.sort(np.array([ALL, SEVENTH], np.uint64))
NONE = ONE[:0]


def objects(first: int, n: int) -> Objects:
    """Object i at time i // 100; every 1000th has no words, every seventh of the others two."""
    at = np.arange(first, first + n)
    held = np.where(at % 1000 == 0, 0, np.where(at % 7 == 0, 2, 1))
    offsets = np.append(0, np.cumsum(held))
    words = np.concatenate([(NONE, ONE, BOTH)[k] for k in held.tolist()])
    place = np.arange(len(words)) - np.repeat(offsets[:-1], held)
    ids = np.frombuffer(b"".join(b"%06d" % i for i in at.tolist()), np.uint8)
    return Objects(
        np.full(n, X), np.full(n, Y), at // 100, at, offsets, words, np.ones(len(words), np.int32),
        place.astype(np.int32), np.arange(0, 6 * n + 1, 6), ids,
    )  # fmt: skip


@pytest.fixture(scope="module", params=[name for name in STORES if name != "scan"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    found = STORES[request.param](Space.GEOGRAPHIC, Memory(), Slicing(delta_ms=400, least=1))
    for first in range(0, N, STEP):
        found.add(objects(first, STEP))
    found.seal(900)
    assert {s.sealed for s in found.slices()} == {True, False}
    return found


def test_all_of_them_are_found_and_counted(store: ObjectStore) -> None:
    here, circle = Bbox(X, Y, X, Y), Circle(X, Y, 0.0)
    asked = [
        Query(region=here),
        Query(region=circle, where="all"),
        Query(region=here, where="seventh", after=99, until=899),
        Query(region=here, where="NOT all"),
        Query(region=circle, limit=3),
        Query(region=Bbox(X, Y + 1e-12, X, Y + 1)),
    ]
    limits = np.array([q.limit for q in asked])
    found = store.within(queries_of(asked), regions_of(asked, store.space), limits)
    rank = np.arange(N)
    some = rank % 1000 != 0
    right = [
        rank,
        rank[some],
        rank[some & (rank % 7 == 0) & (rank >= 10_000) & (rank < 90_000)],
        rank[~some],
        rank[-3:],
        rank[:0],
    ]
    for n, wanted in enumerate(right):
        own = found.rank[found.offsets[n] : found.offsets[n + 1]]
        np.testing.assert_array_equal(own, wanted)
    none = np.zeros(len(asked) + 1, np.int64), np.empty(0, np.uint64)
    counted = store.word_counts(
        queries_of(asked), regions_of(asked, store.space), np.zeros(len(asked), np.int64), *none
    )
    for n, wanted in enumerate(right):
        if asked[n].limit:
            continue
        rows = slice(counted.offsets[n], counted.offsets[n + 1])
        counts = dict(zip(counted.words[rows].tolist(), counted.counts[rows].tolist(), strict=True))
        both = some[wanted]
        expected = {ALL: int(both.sum()), SEVENTH: int((both & (wanted % 7 == 0)).sum())}
        assert counts == {word: count for word, count in expected.items() if count}


def test_ties_go_by_who_came_first_or_last(store: ObjectStore) -> None:
    asked = [
        Query(at=(X, Y), k=4),
        Query(at=(X, Y), k=2, where="seventh"),
        Query(at=(0.0, 0.0), k=3, before_rank=50_000, where="NOT all"),
        Query(at=(X, Y), k=N + 5, until=-1),
    ]
    found = store.nearest(queries_of(asked), centres_of(asked))
    assert found.rank.tolist() == [0, 1, 2, 3, 7, 14, 0, 1000, 2000]
    best = [Query(at=(X, Y), k=3, keywords={"all": 1.0}, until=FOREVER)]
    ranks = store.best(queries_of(best), centres_of(best), wishes_of(best)).rank.tolist()
    single = [i for i in range(N - 1, N - 10, -1) if i % 7 and i % 1000]
    assert ranks == single[:3]  # the newest of those that hold nothing else
