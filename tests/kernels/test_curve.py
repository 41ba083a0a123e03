"""The Z-curve."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.kernels.curve import along, z_code

numbers = st.floats(allow_nan=False, allow_infinity=False)


def test_the_z_curve() -> None:
    line, column = np.divmod(np.arange(16), 4)
    assert z_code(column, line).reshape(4, 4).tolist() == [
        [0, 1, 4, 5],
        [2, 3, 6, 7],
        [8, 9, 12, 13],
        [10, 11, 14, 15],
    ]


def test_all_32_bits_count() -> None:
    last = np.array([2**32 - 1])
    assert z_code(last, last).tolist() == [2**64 - 1]
    assert z_code(last, last - 1).tolist() == [2**64 - 3]


@given(st.lists(st.tuples(numbers, numbers)))
def test_each_point_comes_once(points: list[tuple[float, float]]) -> None:
    x, y = np.array(points, np.float64).reshape(-1, 2).T
    assert sorted(along(x, y).tolist()) == list(range(len(points)))


def test_quarters_come_one_after_the_other() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-180, 180, 1000), rng.uniform(-90, 90, 1000)
    x[:2], y[:2] = (-180, 180), (-90, 90)
    quarter = (2 * (y >= 0) + (x >= 0))[along(x, y)]
    assert quarter.tolist() == sorted(quarter.tolist())
