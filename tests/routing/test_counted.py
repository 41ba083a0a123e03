"""Counted keys, the H2 of a coarser grid, and what summaries let through."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.routing.grid.counted import Counted


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(1, 30), max_size=200)), max_size=8))
def test_keys_that_were_added_more_often_than_removed(
    steps: list[tuple[bool, list[int]]],
) -> None:
    counted, held = Counted(), Counter[int]()
    for adds, keys in steps:
        if adds:
            new = counted.add(np.array(keys, np.uint64))
            assert sorted(new.tolist()) == sorted(set(keys) - set(+held))
            held.update(keys)
        else:
            there = list((Counter(keys) & held).elements())
            gone = counted.remove(np.array(there, np.uint64))
            held.subtract(there)
            assert sorted(gone.tolist()) == sorted(k for k in set(there) if not held[k])
        assert len(counted) == len(+held)
        assert all((key in counted) == (held[key] > 0) for key in range(1, 31))


def test_what_was_never_added_cannot_end() -> None:
    with pytest.raises(ValueError, match="never added"):
        Counted().remove(np.array([5], np.uint64))


def test_many_equal_keys_take_little_room() -> None:
    counted = Counted()
    counted.add(np.repeat(np.arange(1, 1001, dtype=np.uint64), 500))
    assert len(counted) == 1000
    assert counted.bytes == 16 * counted.room <= 16 * 2**18
