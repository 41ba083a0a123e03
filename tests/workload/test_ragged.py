"""Lists as flat arrays."""

import numpy as np

from nearcast.workload.ragged import (
    Ids,
    Longs,
    expand,
    make_distinct,
    offsets_of,
    positions_of,
    rows_of,
)


def test_rows_and_positions() -> None:
    offsets = offsets_of(np.array([2, 0, 3]))
    assert offsets.tolist() == [0, 2, 2, 5]
    assert rows_of(offsets).tolist() == [0, 0, 2, 2, 2]
    assert positions_of(offsets).tolist() == [0, 1, 0, 1, 2]


def test_expand_lists_every_index_of_every_range() -> None:
    assert expand(np.array([7, 3, 0]), np.array([2, 0, 3])).tolist() == [7, 8, 0, 1, 2]


def test_repeats_are_drawn_again_and_nothing_else_changes() -> None:
    values = np.array([1, 1, 2, 5, 5, 5], dtype=np.int32)
    queried: list[list[int]] = []
    fresh = iter([9, 5, 6, 7])  # the first replacement for row 1 is a repeat once more

    def redraw(indexes: Longs) -> Ids:
        queried.append(indexes.tolist())
        return np.array([next(fresh) for _ in indexes], dtype=np.int32)

    make_distinct(values, offsets_of(np.array([3, 3])), redraw)
    assert values.tolist() == [1, 9, 2, 5, 7, 6]
    assert queried == [[1, 4, 5], [4]]


def test_rows_of_a_tight_vocabulary_become_distinct(rng: np.random.Generator) -> None:
    offsets = offsets_of(rng.integers(0, 7, 500))

    def draw(indexes: Longs) -> Ids:
        return rng.integers(0, 8, len(indexes), dtype=np.int32)

    values = draw(np.arange(offsets[-1]))
    make_distinct(values, offsets, draw)
    for row in np.split(values, offsets[1:-1]):
        assert len(set(row.tolist())) == len(row)
