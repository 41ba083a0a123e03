"""The workload of `bench range-index` is the reference one, number for number."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.model.errors import NearcastError
from nearcast.workload.range_queries import RangeWorkload, more_queries, range_workload
from nearcast_bench.range_index.experiment import KNOWN, check, checksum, measure
from nearcast_bench.range_index.stream import Setting, make_stream


@pytest.fixture(scope="module")
def work() -> RangeWorkload:
    return range_workload(2_000, 1_000)


def test_the_first_rows(work: RangeWorkload) -> None:
    """As the reference generator writes them with its default options."""
    q, o = work.queries, work.objects
    assert [f"{v:.9f}" for v in q.boxes[0]] == [
        "0.133009972",
        "0.671964972",
        "0.135133106",
        "0.674088106",
    ]
    assert [f"w{w:05d}" for w in q.words[0] if w >= 0] == ["w07590", "w14208"]
    assert [f"{v:.9f}" for v in o.at[0]] == ["0.583600722", "0.745297323"]
    assert [f"w{w:05d}" for w in o.words[0] if w >= 0] == ["w37355", "w46081", "w48690"]


def test_shape(work: RangeWorkload) -> None:
    q, o = work.queries, work.objects
    sides = q.boxes[:, 2:] - q.boxes[:, :2]
    assert (sides > 0.000999).all()
    assert (sides < 0.010001).all()
    assert q.boxes.min() >= 0
    assert q.boxes.max() <= 1
    assert set((q.words >= 0).sum(1).tolist()) == {1, 2, 3}
    assert set((o.words >= 0).sum(1).tolist()) == set(range(3, 10))
    assert np.array_equal(q.boxes, np.vectorize(lambda v: float(f"{v:.9f}"))(q.boxes))


def test_more_queries_are_others() -> None:
    more = more_queries(100)
    assert len(more.boxes) == 100
    assert not np.isin(more.boxes[:, 0], range_workload(100, 1).queries.boxes[:, 0]).any()


def test_known_number_of_matches() -> None:
    setting = Setting(100_000, 10_000)
    stream = make_stream(setting)
    found = measure("pyramid", stream, 1).found
    assert len(found[0]) == KNOWN[100_000, 10_000][0] == 5_257
    assert check(found, stream, setting) == "known"
    less = (found[0][1:], found[1][1:])
    with pytest.raises(NearcastError, match="wrong"):
        check(less, stream, setting)


def test_checksum_is_the_published_one() -> None:
    assert checksum((np.array([0]), np.array([0]))) == 0
    assert checksum((np.array([0, 0]), np.array([1, 1]))) == 2 * 0xB456BCFC34C2CB2C % 2**64
