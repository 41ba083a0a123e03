"""Posting lists against a dictionary of lists, growing as an index lets them grow."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.kernels import blocks
from nearcast.kernels import postings as pl

quick = settings(max_examples=30)

Box = tuple[float, float, float, float]


class Lists:
    """Posting lists that start tiny, and grow by the amount that is missing."""

    def __init__(self, rows: int = 4, entries: int = 1) -> None:
        meta = np.zeros(pl.META, np.int64)
        self.grown = 0
        self._set(
            np.zeros((rows, pl.ROW), np.uint64), np.zeros((entries, pl.ENTRY), np.int32), meta
        )

    def _set(self, table: Any, pool: Any, meta: Any) -> None:
        marks = np.zeros(max(len(table) // 8, 1), np.uint64)
        pl.mark_all(table, marks)
        self.state = pl.Postings(table, marks, pool, pool.view(np.float32), meta)

    def add(self, key: int, slot: int, box: Box = (0, 0, 1, 1)) -> None:
        table, pool, meta = self.state.table, self.state.pool, self.state.meta
        if (meta[pl.KEYS] + 1) * 10 > len(table) * 8:
            wider = np.concatenate([table, np.zeros_like(table)])
            pl.stretch(wider, len(table))
            self._set(wider, pool, meta)
        while pl.add(self.state, np.uint64(key), slot, np.array(box, np.float32)) < 0:
            self.grown += 1
            more = np.concatenate([self.state.pool, np.full((1, pl.ENTRY), -7, np.int32)])
            self._set(self.state.table, more, meta)

    def get(self, key: int) -> list[tuple[int, Box]]:
        row = pl.find(self.state.table, np.uint64(key))
        first, count = pl.entries(self.state, row) if row >= 0 else (0, 0)
        rows = range(first, first + count)
        return [(int(self.state.pool[e, 0]), tuple(self.state.boxes[e, 1:].tolist())) for e in rows]


# Few keys make long lists; equal bits above the lowest byte make long probes.
keys = st.one_of(
    st.integers(1, 6),
    st.integers(0, 3).map(lambda n: 0x5500 | 2 * n + 1),
    st.integers(1, 2**64 - 1),
)
coordinates = st.floats(width=32, allow_nan=False)
additions = st.lists(
    st.tuples(keys, st.integers(0, 2**31 - 1), st.tuples(*[coordinates] * 4)), max_size=60
)


@quick
@given(additions)
def test_lists_hold_what_was_added_in_order(added: list[tuple[int, int, Box]]) -> None:
    lists, right = Lists(), defaultdict(list)
    for key, slot, box in added:
        lists.add(key, slot, box)
        right[key].append((slot, box))
    assert {key: lists.get(key) for key in right} == dict(right)
    assert [lists.get(key) for key in range(7, 20) if key not in right].count([]) == len(
        [key for key in range(7, 20) if key not in right]
    )
    assert lists.state.meta[pl.KEYS] == len(right)
    assert lists.state.meta[pl.LIVE] == len(added)


@quick
@given(additions)
def test_no_two_blocks_overlap(added: list[tuple[int, int, Box]]) -> None:
    lists = Lists()
    for key, slot, _ in added:
        lists.add(key, slot)
    used: list[int] = []
    for row in np.flatnonzero(lists.state.table[:, 0]).tolist():
        first, count = pl.entries(lists.state, row)
        room = 1 << pl.room_class(lists.state.table[row, 1])
        assert count <= room
        used += range(first, first + room)
    for size in range(blocks.META - blocks.FREE):
        head = int(lists.state.meta[blocks.FREE + size])
        while head > 0:
            used += range(head - 1, head - 1 + 2**size)
            head = int(lists.state.pool[head - 1, 0])
    assert sorted(used) == list(range(int(lists.state.meta[blocks.TOP])))


def test_what_a_list_leaves_is_used_again() -> None:
    lists = Lists(entries=64)
    for slot in range(3):
        lists.add(1, slot)  # one entry, then two, then room for four: blocks of 1 and 2 are free
    top = int(lists.state.meta[blocks.TOP])
    for slot in range(10, 12):
        lists.add(2, slot)
    assert int(lists.state.meta[blocks.TOP]) == top
    assert [slot for slot, _ in lists.get(1)] == [0, 1, 2]
    assert [slot for slot, _ in lists.get(2)] == [10, 11]


def test_an_addition_without_room_changes_no_list() -> None:
    lists = Lists(entries=1)
    lists.add(1, 5)
    box = np.zeros(4, np.float32)
    assert pl.add(lists.state, np.uint64(1), 6, box) < 0
    assert pl.add(lists.state, np.uint64(2), 6, box) < 0
    assert [slot for slot, _ in lists.get(1)] == [5]
    assert lists.get(2) == []
    assert lists.state.meta[pl.LIVE] == 1


# Among them many whose search begins at the end of a table and goes on at its beginning.
keys = st.integers(1, 2**64 - 1) | st.integers(2**64 - 2**60, 2**64 - 1) | st.integers(1, 2**60)


@settings(max_examples=200)
@given(st.sets(keys, max_size=14), st.integers(0, 40), st.randoms(use_true_random=False))
def test_find_and_stretch(found: set[int], more: int, random: Random) -> None:
    came = sorted(found)
    random.shuffle(came)
    table = np.zeros((16, 3), np.uint64)
    for n, key in enumerate(came):
        row = pl.find(table, np.uint64(key))
        assert row < 0
        table[-1 - row] = key, n, 2 * n
    wider = np.concatenate([table, np.zeros((more, 3), np.uint64)])
    pl.stretch(wider, 16)
    for either in (table, wider):
        for n, key in enumerate(came):
            assert either[pl.find(either, np.uint64(key))].tolist() == [key, n, 2 * n]
        assert np.count_nonzero(either.any(axis=1)) == len(came)  # nothing is left behind


@quick
@given(st.sets(st.integers(1, 2**64 - 1), min_size=1, max_size=12))
def test_every_key_is_marked(found: set[int]) -> None:
    lists = Lists(entries=64)
    for key in found:
        lists.add(key, 1)
    anew = np.zeros_like(lists.state.marks)
    pl.mark_all(lists.state.table, anew)
    for marks in (lists.state.marks, anew):
        assert all(pl.marked(lists.state._replace(marks=marks), np.uint64(k)) for k in found)
    empty = lists.state._replace(marks=np.zeros_like(anew))
    assert not any(pl.marked(empty, np.uint64(k)) for k in found)
