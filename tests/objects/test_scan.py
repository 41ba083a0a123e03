"""The scan, on cases small enough to be right by looking at them: it is the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.objects.making import (
    Post,
    Query,
    centres_of,
    excluded_of,
    objects_of,
    queries_of,
    regions_of,
    wishes_of,
)

from nearcast.index.arena import Memory
from nearcast.kernels.hashing import word_hash
from nearcast.model.region import Bbox
from nearcast.model.space import Space
from nearcast.objects.base import NO_IDF, Idf
from nearcast.objects.scan import Scan

ALL = Bbox(-9, -9, 9, 9)
POSTS = [
    Post(0, 0, 5, {"a": 1}),
    Post(3, 4, 2, {"a": 2, "b": 1}),
    Post(0, 5, 5, {"b": 1}),
    Post(8, 8, 9, {}),
    Post(-3, -4, 7, {"c": 1, "a": 1}),
]


def store(idf: Idf = NO_IDF) -> Scan:
    made = Scan(Space.PLANAR, Memory(), idf=idf)
    made.add(*objects_of(POSTS))
    return made


def within(query: Query) -> list[int]:
    found = store().within(
        queries_of([query]), regions_of([query], Space.PLANAR), np.array([query.limit])
    )
    return [int(rank) for rank in found.rank]


def test_objects_inside_come_by_time_then_rank() -> None:
    assert within(Query(region=ALL)) == [1, 0, 2, 4, 3]
    assert within(Query(region=ALL, limit=2)) == [4, 3]
    assert within(Query(region=ALL, limit=99)) == [1, 0, 2, 4, 3]
    assert within(Query(region=Bbox(0, 0, 3, 4))) == [1, 0]


def test_the_period_leaves_its_beginning_out() -> None:
    assert within(Query(region=ALL, after=2, until=7)) == [0, 2, 4]
    assert within(Query(region=ALL, after=5, until=5)) == []
    assert within(Query(region=ALL, before_rank=2)) == [1, 0]


def test_words_decide() -> None:
    assert within(Query(region=ALL, where="a b")) == [1]
    assert within(Query(region=ALL, where="a OR b")) == [1, 0, 2, 4]
    assert within(Query(region=ALL, where="NOT a")) == [2, 3]
    assert within(Query(region=ALL, where="a AND NOT (b OR c)")) == [0]
    assert within(Query(region=ALL, where="nowhere")) == []


def test_of_equally_near_objects_the_earlier_is_first() -> None:
    query = Query(k=4)
    found = store().nearest(queries_of([query]), centres_of([query]))
    assert found.rank.tolist() == [0, 1, 2, 4]
    assert found.value.tolist() == [0.0, 5.0, 5.0, 5.0]


def test_of_equal_scores_the_newer_is_first() -> None:
    query = Query(k=9, keywords={"b": 1.0}, alpha=1.0, maxdist=10.0)
    found = store().best(queries_of([query]), centres_of([query]), wishes_of([query]))
    assert found.rank.tolist() == [2, 1]
    assert found.value.tolist() == [0.5, 0.5]


def test_the_score_is_that_of_the_spec() -> None:
    idf = Idf(np.array([word_hash("b")], np.uint64), np.array([3.0]), 2.0)
    query = Query(k=1, keywords={"b": 3.0, "z": 2.0}, alpha=0.25, maxdist=20.0, before_rank=2)
    found = store(idf).best(queries_of([query]), centres_of([query]), wishes_of([query]))
    # Object 1: tf·idf of a is 2·2, of b 1·3; the norm of the keywords is that of 3 and 2.
    cosine = 3 / math.sqrt(13) * (3 / 5)
    assert found.rank.tolist() == [1]
    assert found.value[0] == pytest.approx(0.25 * 0.75 + 0.75 * cosine)


@pytest.mark.parametrize(
    ("k", "exclude", "expected"),
    [
        (1, (), {"a": 3}),
        (2, (), {"a": 3, "b": 2}),
        (3, (), {"a": 3, "b": 2, "c": 1}),
        (0, (), {"a": 3, "b": 2, "c": 1}),
        (1, ("a",), {"b": 2}),
        (9, ("a", "b", "c"), {}),
    ],
)
def test_words_are_counted_once_per_object(
    k: int, exclude: tuple[str, ...], expected: dict[str, int]
) -> None:
    query = Query(region=ALL, exclude=exclude)
    counted = store().word_counts(
        queries_of([query]), regions_of([query], Space.PLANAR), np.array([k]), *excluded_of([query])
    )
    found = dict(zip(counted.words.tolist(), counted.counts.tolist(), strict=True))
    assert found == {word_hash(w): n for w, n in expected.items()}
    assert counted.counts.tolist() == sorted(counted.counts.tolist(), reverse=True)


def test_ties_of_the_last_count_all_come() -> None:
    query = Query(region=Bbox(-3, -4, 0, 5), k=1)  # objects 0, 2, 4: a twice, b and c once
    counted = store().word_counts(
        queries_of([query]), regions_of([query], Space.PLANAR), np.array([2]), *excluded_of([query])
    )
    assert counted.counts.tolist() == [2, 1, 1]
