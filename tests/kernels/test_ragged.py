"""Gathering runs of a flat array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.kernels.ragged import gather

quick = settings(max_examples=30)


@quick
@given(st.lists(st.integers(0, 255), min_size=1, max_size=20), st.data())
def test_gather(values: list[int], data: st.DataObject) -> None:
    place = st.integers(0, len(values)).flatmap(
        lambda a: st.tuples(st.just(a), st.integers(0, len(values) - a))
    )
    runs = data.draw(st.lists(place, max_size=6))
    starts = np.array([a for a, _ in runs], np.int64)
    lengths = np.array([n for _, n in runs], np.int64)
    offsets, out = gather(np.array(values, np.uint8), starts, lengths)
    assert out.dtype == np.uint8
    assert offsets.tolist() == np.cumsum([0, *lengths]).tolist()
    assert out.tolist() == [v for a, n in runs for v in values[a : a + n]]


@pytest.mark.parametrize("dtype", [np.float64, np.uint64, np.int64])
def test_any_kind_of_number(dtype: type) -> None:
    _, out = gather(np.arange(5).astype(dtype), np.array([3, 0]), np.array([2, 1]))
    assert out.dtype == dtype
    assert out.tolist() == [3, 4, 0]
