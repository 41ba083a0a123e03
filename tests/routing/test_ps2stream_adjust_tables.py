"""Decisions on tables: who owns what afterwards, for every cell and word, after any sequence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing import ps2stream_adjust_twins as twins

from nearcast.index.posting import UNIVERSAL
from nearcast.routing.grid.table import GridTable, owner_in, pack, sealed, unpack
from nearcast.routing.ps2stream.adjust.decisions import (
    MERGE,
    MIGRATE,
    REPARTITION,
    SPLIT,
    Decision,
    apply,
    owns,
    window,
)

quick = settings(max_examples=100)
SIDE, SHARDS = 3, 4
WORDS = [int(UNIVERSAL), 4, 8, 12, 2**63, 2**64 - 4]
shards = st.integers(0, SHARDS - 1)
maps = st.tuples(
    st.dictionaries(st.sampled_from(WORDS), shards, max_size=4),
    st.lists(shards, min_size=1, max_size=3),
)


@st.composite
def tables(draw: st.DrawFn) -> GridTable:
    """Tables with maps that cells share, that none uses, and that have a single shard."""
    made = draw(st.lists(maps, max_size=3))
    held = st.integers(-len(made), SHARDS - 1)
    return table_of(draw(st.lists(held, min_size=SIDE**2, max_size=SIDE**2)), made)


def table_of(cells: list[int], made: list[tuple[dict[int, int], list[int]]]) -> GridTable:
    known = [sorted(m.items()) for m, _ in made]
    return sealed(
        GridTable(
            np.array([0.0, 0.0, 1.0, 1.0]),
            np.array(cells, np.int32).reshape(SIDE, SIDE),
            np.cumsum([0, *map(len, known)], dtype=np.int64),
            np.array([w for m in known for w, _ in m], np.uint64),
            np.array([s for m in known for _, s in m], np.int32),
            np.cumsum([0, *(len(w) for _, w in made)], dtype=np.int64),
            np.array([s for _, w in made for s in w], np.int32),
            np.array([4, 8], np.uint64),
            np.array([1, 9], np.int64),
        )
    )


def decision(kind: str, origin: int, target: int, cells: list[int], words: list[int]) -> Decision:
    loads = np.zeros(SHARDS)
    at, some = np.array(cells, np.int64), np.array(words, np.uint64)
    return Decision(kind, origin, target, at, some, loads, loads, 0, 0, "a test")


decisions = st.builds(
    decision,
    st.sampled_from([SPLIT, MERGE, MIGRATE]),
    shards,
    shards,
    st.lists(st.integers(0, SIDE**2 - 1), max_size=5),
    st.lists(st.sampled_from(WORDS), max_size=4),
)


def owners(table: GridTable) -> dict[tuple[int, int], int]:
    return {
        (cell, word): int(owner_in(table, int(table.cells.flat[cell]), np.uint64(word)))
        for cell in range(SIDE**2)
        for word in [*WORDS, 16, 20, 24]  # and some that no map knows
    }


def check_form(table: GridTable) -> None:
    used = set((-1 - table.cells[table.cells < 0]).tolist())
    assert used == set(range(len(table.map_offsets) - 1))
    assert len(table.worker_offsets) == len(table.map_offsets)
    assert table.map_offsets[-1] == len(table.map_words) == len(table.map_shards)
    assert table.worker_offsets[-1] == len(table.workers)
    assert (np.diff(table.worker_offsets) > 0).all()
    for first, stop in zip(table.map_offsets[:-1], table.map_offsets[1:], strict=True):
        assert (np.diff(table.map_words[first:stop].astype(object)) > 0).all()
    for column in (table.cells, table.map_shards, table.workers):
        assert (column < SHARDS).all()
    assert (table.map_shards >= 0).all()
    assert (table.workers >= 0).all()


@quick
@given(tables())
def test_the_plain_owner_is_the_owner(table: GridTable) -> None:
    found = owners(table)
    assert found == {(cell, word): twins.owner(table, cell, word) for cell, word in found}


@quick
@given(tables(), st.lists(decisions, max_size=6))
def test_any_sequence_moves_what_it_says_and_nothing_else(
    table: GridTable, made: list[Decision]
) -> None:
    expected = owners(table)
    for d in made:
        before = [column.copy() for column in table]
        new = apply(d, table)
        for column, copy in zip(table, before, strict=True):
            assert (column == copy).all()  # the old table is still in use while things move
        words = set(d.words.tolist())
        expected = {
            (cell, word): d.target
            if shard == d.origin and cell in d.cells and (d.kind != SPLIT or word in words)
            else shard
            for (cell, word), shard in expected.items()
        }
        assert owners(new) == expected
        check_form(new)
        for name in ("bounds", "words", "counts"):  # what a subscription is posted under
            assert (getattr(new, name) == getattr(table, name)).all()
        table = unpack(pack(new))


@quick
@given(tables(), decisions)
def test_the_same_decision_twice_is_once(table: GridTable, d: Decision) -> None:
    once = apply(d, table)
    if d.origin != d.target:
        assert pack(apply(d, once)) == pack(once)


@quick
@given(tables(), st.integers(0, SIDE**2 - 1))
def test_a_window_has_the_owners_of_its_cell(table: GridTable, cell: int) -> None:
    small = window(table, cell)
    for word in [*WORDS, 16, 20]:
        assert twins.owner(small, 0, word) == twins.owner(table, cell, word)


def test_a_split_cell_and_its_merge() -> None:
    whole = table_of([0] * 9, [])
    split = apply(decision(SPLIT, 0, 1, [4], [8, 12]), whole)
    assert split.cells.ravel().tolist() == [0] * 4 + [-1] + [0] * 4
    assert split.map_words.tolist() == [8, 12]
    assert split.workers.tolist() == [0]
    assert owns(split, 4, 0)
    assert owns(split, 4, 1)
    assert not owns(split, 4, 2)
    assert not owns(split, 3, 1)
    merged = apply(decision(MERGE, 1, 0, [4], []), split)
    assert pack(merged) == pack(whole)


def test_cells_that_share_a_map_go_on_sharing_it() -> None:
    table = table_of([-1] * 9, [({4: 0, 8: 1}, [0, 1])])
    some = apply(decision(MIGRATE, 0, 2, [0, 1, 2], []), table)
    assert some.cells.ravel().tolist() == [-1] * 3 + [-2] * 6
    rest = apply(decision(MIGRATE, 0, 2, [3, 4, 5, 6, 7, 8], []), some)
    assert rest.cells.ravel().tolist() == [-1] * 9
    assert rest.map_shards.tolist() == [2, 1]
    assert rest.workers.tolist() == [2, 1]


def test_global_decisions_leave_tables_alone() -> None:
    table = table_of([0] * 9, [])
    assert apply(decision(REPARTITION, -1, -1, [], []), table) is table


@pytest.mark.parametrize("kind", [SPLIT, MERGE, MIGRATE])
def test_a_cell_that_is_not_the_origins_is_left_alone(kind: str) -> None:
    table = table_of([3] * 9, [])
    assert pack(apply(decision(kind, 0, 1, [4], [8]), table)) == pack(table)
