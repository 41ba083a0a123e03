"""`range` queries in their plainest form: which are, and which are left to the other reader."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nearcast.kinds.range.plain_query import read_queries
from nearcast.wire.tables import strings


def read(text: str) -> bool:
    offsets, data = strings(pa.array([text], pa.large_string()))
    return bool(read_queries(data, offsets).plain[0])


QUERY = '{"kind":"range","region":{"bbox":[1,-2.5,3,4]},"where":"a OR b"}'


def test_what_is_plain() -> None:
    assert read(QUERY)
    assert read(' { "where" : "a" , "region" : { "bbox" : [ 1 , 2 , 3 , 4 ] } , "kind":"range" } ')
    assert read(QUERY.replace("a OR b", "a AND b AND c"))
    assert read(QUERY.replace("a OR b", " OR ".join("abcdefgh" * 8)))
    assert read(QUERY.replace("-2.5", "-12345678.1234567"))


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("a OR b", "a OR b AND c"),
        ("a OR b", "a OR OR"),
        ("a OR b", "NOT"),
        ("a OR b", "a  OR b"),
        ("a OR b", "a OR "),
        ("a OR b", " a"),
        ("a OR b", ""),
        ("a OR b", "caf\u00e9"),
        ("a OR b", "a\\u0062"),
        ("a OR b", " OR ".join("abcdefgh" * 9)),
        ('"a OR b"', "null"),
        ("-2.5", "-2.50000000000000000001"),
        ("-2.5", "-02.5"),
        ("-2.5", "2e1"),
        ("-2.5", "-.5"),
        ("-2.5", "2."),
        ("-2.5", "--2"),
        ("-2.5", "null"),
        ("[1,", "[1,1,"),
        ("[1,", "["),
        ("bbox", "circle"),
        ("range", "knn"),
        ("kind", "where"),
        ("region", "where"),
        ("}", ""),
        ('"kind":"range",', ""),
        ('"kind":"range",', '"kind":"range","k":5,'),
        ('"kind":"range",', '"kind":"range","kind":"range",'),
    ],
)
def test_what_is_not(what: str, other: str) -> None:
    assert what in QUERY
    assert not read(QUERY.replace(what, other))


def test_anything_cut_short_is_not() -> None:
    for n in range(len(QUERY)):
        assert not read(QUERY[:n])
    assert not read(QUERY + "}")
