"""The life of slices: every object in exactly one, sealed ones unchanged, nothing lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.objects.making import Post, Query, objects_of, queries_of, regions_of

from nearcast.index.arena import Arena, Memory
from nearcast.model.region import Bbox
from nearcast.model.space import Space
from nearcast.objects import STORES, ObjectStore
from nearcast.objects.base import NOT_SEALED, Slicing

SMALL = Slicing(delta_ms=10, least=3, most=8)
EVERYWHERE = Query(region=Bbox(-180, -90, 180, 90))


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> ObjectStore:
    return STORES[request.param](Space.GEOGRAPHIC, Memory(), SMALL)


def post(number: int, time: int) -> Post:
    words = {f"w{number % 3}": 1 + number % 2, "all": 300 if number % 5 == 0 else 1}
    return Post(number % 7, number % 5, time, words, f"o{number}", b'"t%d"' % number, b"[]")


def put(store: ObjectStore, times: list[int], first: int = 0) -> None:
    store.add(*objects_of([post(first + i, t) for i, t in enumerate(times)], first))


def ranks(store: ObjectStore) -> list[int]:
    queries = [EVERYWHERE]
    found = store.within(queries_of(queries), regions_of(queries, store.space), np.zeros(1, int))
    return sorted(found.rank.tolist())


def test_an_interval_that_is_over_is_one_sealed_slice(store: ObjectStore) -> None:
    put(store, [1, 2, 3, 11])
    put(store, [4, 12, 13], 4)
    store.seal(10)
    assert [(s.objects, s.first_time, s.last_time) for s in store.slices() if s.sealed] == [
        (4, 1, 4)
    ]
    before = store.slices()
    store.seal(19)
    assert store.slices() == before
    store.seal(20)
    assert [s.objects for s in store.slices() if s.sealed] == [4, 3]
    assert ranks(store) == list(range(7))


def test_few_objects_of_several_intervals_share_a_slice(store: ObjectStore) -> None:
    for first, time in enumerate((1, 1001, 100_001)):
        put(store, [time], first)
        store.seal(time + 10)
        assert [s.sealed for s in store.slices()] == [first == 2]
    assert store.slices()[0].last_time == 100_001


def test_a_late_object_leaves_sealed_slices_alone(store: ObjectStore) -> None:
    put(store, [1, 2, 3])
    store.seal(10)
    sealed = store.slices()
    table = store.snapshot(sealed[0].number)
    put(store, [2, 15], 3)
    store.seal(10)
    assert store.slices()[0] == sealed[0]
    assert [s.sealed for s in store.slices()] == [True, False, False]
    assert store.snapshot(sealed[0].number).equals(table)
    put(store, [1, 9], 5)
    store.seal(12)
    assert [(s.objects, s.last_time) for s in store.slices() if s.sealed] == [(3, 3), (3, 9)]
    assert ranks(store) == list(range(7))


def test_a_large_interval_has_several_slices(store: ObjectStore) -> None:
    put(store, [5] * 20)
    store.seal(10)
    assert [s.objects for s in store.slices()] == [7, 7, 6]
    assert ranks(store) == list(range(20))


def test_what_is_merged_is_a_part_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what is too old is dropped soon."""
    monkeypatch.setattr("nearcast.objects.sliced._SMALL", 2)
    largest = []
    for part in (1, 4):
        store = STORES["curve"](Space.GEOGRAPHIC, Memory(), Slicing(least=1, most=100, part=part))
        for n in range(100):
            put(store, [n], n)
        firsts = [s.first_rank for s in store.slices()]
        assert firsts == sorted(firsts)
        largest.append(max(s.objects for s in store.slices()))
        assert ranks(store) == list(range(100))
    assert largest == [64, 8]


def test_long_ids_and_many_words_make_more_slices(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nearcast.objects.sliced._MOST_BYTES", 6)
    put(store, [5] * 6)  # of two words each: three of them fill a slice
    store.seal(10)
    assert [s.objects for s in store.slices()] == [3, 3]
    assert ranks(store) == list(range(6))
    store.add(*objects_of([Post(id="x" * 256)], 6))  # larger than a slice, but it is one object
    assert ranks(store) == list(range(7))


def test_slices_are_dropped_when_all_their_objects_are_too_old(store: ObjectStore) -> None:
    put(store, [1, 2, 3, 11, 12, 13])
    store.seal(20)
    store.expire(2)
    assert len(store) == 6
    store.expire(3)
    assert ranks(store) == [3, 4, 5]
    store.expire(13)
    assert len(store) == 0
    assert store.slices() == []
    put(store, [30], 6)
    assert ranks(store) == [6]


def test_rows_and_fields_come_in_the_order_of_handles(store: ObjectStore) -> None:
    times = [1, 2, 3, 11, 12, 5, 30]
    put(store, times[:5])
    store.seal(10)
    put(store, times[5:], 5)
    queries = [EVERYWHERE]
    found = store.within(queries_of(queries), regions_of(queries, store.space), np.zeros(1, int))
    order = np.array([3, 0, 6, 1, 2, 5, 4, 3])
    rows, fields = store.rows(found.handles[order]), store.fields(found.handles[order])
    expected = [post(r, times[r]) for r in found.rank[order].tolist()]
    want, want_fields = objects_of(expected)
    for got, wanted in zip(rows, want._replace(rank=found.rank[order]), strict=True):
        np.testing.assert_array_equal(got, wanted)
    for got, wanted in zip(fields, want_fields, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_nothing_found_has_no_rows(store: ObjectStore) -> None:
    none = np.empty(0, np.int64)
    assert len(store.rows(none).time) == 0
    assert store.fields(none).text_offsets.tolist() == [0]


def test_an_unknown_slice_has_no_snapshot(store: ObjectStore) -> None:
    put(store, [1])
    with pytest.raises(KeyError):
        store.snapshot(0)


def test_clear_forgets_everything(store: ObjectStore) -> None:
    put(store, [1, 2, 3, 40])
    store.seal(10)
    store.clear()
    assert len(store) == store.bytes == 0
    put(store, [1])
    assert ranks(store) == [0]


@pytest.mark.parametrize("name", STORES)
def test_another_process_attaches_what_one_left(name: str, memory: Path) -> None:
    one = STORES[name](Space.GEOGRAPHIC, Arena(memory / "run" / "arena"), SMALL)
    put(one, [1, 2, 3, 11, 12])
    one.seal(10)
    two = STORES[name](Space.GEOGRAPHIC, Arena(memory / "run" / "arena"), SMALL)
    assert two.slices() == one.slices()
    assert two.snapshot(NOT_SEALED).equals(one.snapshot(NOT_SEALED))
    put(two, [13, 4], 5)
    two.seal(20)
    three = STORES[name](Space.GEOGRAPHIC, Arena(memory / "run" / "arena"), SMALL)
    assert ranks(three) == list(range(7))
    assert {s.number for s in three.slices()} >= {s.number for s in two.slices() if s.sealed}


@pytest.mark.parametrize("name", STORES)
@given(data=st.data())
def test_every_object_is_in_exactly_one_slice(name: str, data: st.DataObject) -> None:
    store = STORES[name](Space.GEOGRAPHIC, Memory(), SMALL)
    posted: list[int] = []
    expired = -1
    for _ in range(data.draw(st.integers(1, 8))):
        times = data.draw(st.lists(st.integers(0, 45), max_size=12))
        put(store, times, len(posted))
        posted += times
        store.seal(data.draw(st.sampled_from([0, 9, 10, 20, 33, 40])))
        if data.draw(st.booleans()):
            expired = max(expired, data.draw(st.integers(-1, 30)))
            store.expire(expired)
    store.expire(expired)
    found = [store.snapshot(s.number) for s in store.slices() if s.sealed]
    rank = [r for t in [*found, store.snapshot(NOT_SEALED)] for r in t["rank"].to_pylist()]
    assert len(set(rank)) == len(rank) == len(store)
    kept = {r for r, time in enumerate(posted) if time > expired}
    assert kept <= set(rank)
    for s in store.slices():
        assert s.last_time > expired
        assert not s.sealed or SMALL.least <= s.objects <= SMALL.most
    again = STORES[name](Space.GEOGRAPHIC, Memory(), SMALL)
    for s in store.slices():
        if s.sealed:
            again.restore(s.number, store.snapshot(s.number))
    again.restore(NOT_SEALED, store.snapshot(NOT_SEALED))
    assert ranks(again) == sorted(rank)
    assert [s for s in again.slices() if s.sealed] == [s for s in store.slices() if s.sealed]
