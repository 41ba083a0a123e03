"""Settings of the balance, and loads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nearcast.model.errors import NearcastError
from nearcast.routing.balance import Balance, Counts, imbalance
from nearcast.routing.base import Sample
from nearcast.routing.sampling import thinned


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"mode": "on"}, "balance mode: 'on'; use one of off, auto, local, global"),
        ({"selection": "best"}, "balance selection: 'best'; use one of dp, gr, si, ra"),
        ({"threshold": 0.9}, "balance threshold: 0.9 is less than 1"),
        ({"threshold": float("nan")}, "balance threshold: nan is less than 1"),
        ({"threshold": "high"}, "balance: Expected `float`, got `str` - at `$.threshold`"),
        ({"side": 100}, "balance side: 100 is not a power of two"),
        ({"every": 0}, "balance every: 0 is less than 1"),
        ({"speed": 1}, "balance: no setting 'speed'; there are mode, threshold, least"),
    ],
)
def test_nonsense_is_refused_in_one_line(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(NearcastError) as caught:
        Balance.from_json(values)
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value)


def test_through_json_and_back() -> None:
    balance = Balance("local", threshold=1.5, selection="dp")
    assert Balance.from_json(balance.to_json()) == balance
    assert not Balance().on


def test_imbalance_is_the_largest_over_the_mean() -> None:
    assert imbalance([3.0, 1.0, 1.0, 1.0]) == 2.0
    assert imbalance([0.0, 0.0]) == 1.0


def test_a_load_is_the_sum_of_its_parts() -> None:
    counts = Counts(objects=2, controls=3, lookups=5, scanned=7, examined=11, reported=13)
    assert counts.load == counts.each + counts.checks + counts.updates
    assert Counts().load == 0.0


def test_every_nth_object_stands_for_n() -> None:
    offsets = np.array([0, 1, 3, 3, 4, 6])
    sample = Sample(np.arange(5.0), np.arange(5.0), offsets, np.arange(6, dtype=np.uint64))
    assert thinned(sample, 5) == (sample, 1)
    few, step = thinned(sample, 2)
    assert step == 3
    assert few.x.tolist() == [0.0, 3.0]
    assert few.words.tolist() == [0, 3]
    assert few.word_offsets.tolist() == [0, 1, 2]
