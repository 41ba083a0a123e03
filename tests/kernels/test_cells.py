"""Cells: a box touches few of them, and every point of it falls into one of those."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from nearcast.kernels.cells import LEVELS, ROOT, cell_at, cell_key, level_of

quick = settings(max_examples=30)

finite = st.floats(allow_nan=False, allow_infinity=False)
# Borders of cells of several levels, and their neighbours.
borders = st.builds(
    lambda n, level, towards: math.nextafter(n * 4.0**level, towards),
    st.integers(-9, 9),
    st.integers(-10, 20),
    st.sampled_from([-math.inf, 0.0, math.inf]),
)
places = st.one_of(finite, borders, st.floats(-180, 180))
widths = st.one_of(st.just(0.0), st.floats(0, 1e7), borders.map(abs))


def side(level: int) -> float:
    return 4.0 ** (level - 10)


@quick
@given(widths, widths)
def test_the_level_is_the_finest_that_is_wide_enough(width: float, height: float) -> None:
    level = level_of(width, height)
    need = 2 * max(width, height)
    assert level == ROOT or side(level) >= need
    if level > 0:
        assert side(level - 1) < need


@quick
@given(places, widths)
@example(1e300, 0.0)
@example(-1e300, 1e300)
@example(9.9e12, 0.0)
@example(-180.0, 360.0)
def test_a_box_touches_at_most_two_columns(first: float, width: float) -> None:
    last = first + width
    assume(math.isfinite(last))
    level = level_of(last - first, 0.0)
    assert 0 <= cell_at(level, last) - cell_at(level, first) <= 1


@quick
@given(places, widths, st.floats(0, 1))
def test_a_point_of_a_box_is_in_a_cell_of_the_box(first: float, width: float, part: float) -> None:
    last = first + width
    point = min(max(first + part * width, first), last)
    assume(math.isfinite(last))
    level = level_of(last - first, 0.0)
    assert cell_at(level, first) <= cell_at(level, point) <= cell_at(level, last)


@quick
@given(st.integers(0, ROOT), places, places)
@example(0, 1e300, -1e300)
@example(0, 8.7e12, 9.9e12)
@example(LEVELS - 1, 1.8e308, -1.8e308)
def test_columns_ascend(level: int, a: float, b: float) -> None:
    assume(math.isfinite(a) and math.isfinite(b))
    low, high = sorted((a, b))
    assert cell_at(level, low) <= cell_at(level, high)


@quick
@given(st.integers(0, LEVELS - 1), st.floats(-1e9, 1e9, allow_subnormal=False))
def test_a_column_is_one_side_wide(level: int, v: float) -> None:
    assume(v == 0 or abs(v) > 1e-290)  # less than that times a side is zero: still monotone
    column = cell_at(level, v)
    assert column * side(level) <= v
    if math.isclose(v, (column + 1) * side(level)):  # the sum below may round up to the border
        return
    assert v < (column + 1) * side(level)


def test_everything_is_in_one_cell_at_the_root() -> None:
    assert {cell_at(ROOT, v) for v in (-1e308, -1.0, 0.0, 1e308)} == {0}
    assert level_of(math.inf, 0.0) == ROOT
    assert level_of(1e300, 0.0) == ROOT


def test_cells_have_keys_of_their_own() -> None:
    words = [np.uint64(4), np.uint64(8)]
    keys = [
        int(cell_key(word, level, column, row))
        for word in words
        for level in (0, 5, ROOT)
        for column in range(-4, 5)
        for row in range(-4, 5)
    ]
    assert 0 not in keys
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("v", [4.0e18, -4.0e18])
def test_the_farthest_columns_have_keys(v: float) -> None:
    assert int(cell_key(np.uint64(4), 0, cell_at(0, v), cell_at(0, -v))) > 0
