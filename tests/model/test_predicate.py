"""The one definition of a match."""

import pytest

from nearcast.model.expression import TRUE, parse
from nearcast.model.predicate import matches
from nearcast.model.query import KnnQuery, RangeQuery
from nearcast.model.region import Bbox, Circle, Polygon, Region
from nearcast.model.space import Space

REGIONS: list[Region] = [
    Bbox(139.0, 35.0, 140.0, 36.0),
    Circle(139.5, 35.5, 20_000.0),
    Polygon((((139.0, 35.0), (140.0, 35.0), (139.5, 36.0), (139.0, 35.0)),)),
]


@pytest.mark.parametrize("region", REGIONS, ids=lambda region: type(region).__name__)
def test_range_wants_both_place_and_words(region: Region) -> None:
    query = RangeQuery(region, parse("ramen AND (late OR night)"))
    assert matches(Space.GEOGRAPHIC, query, 139.5, 35.5, {"ramen", "late"})
    assert not matches(Space.GEOGRAPHIC, query, 139.5, 35.5, {"ramen"})
    assert not matches(Space.GEOGRAPHIC, query, 141.0, 35.5, {"ramen", "late"})


def test_the_space_decides_what_a_region_means() -> None:
    query = RangeQuery(Circle(0.0, 0.0, 2.0), TRUE)
    assert matches(Space.PLANAR, query, 1.0, 1.0, ())
    assert not matches(Space.GEOGRAPHIC, query, 1.0, 1.0, ())


def test_knn_looks_at_words_only() -> None:
    query = KnnQuery(0.0, 0.0, 3, parse("NOT closed"))
    assert matches(Space.PLANAR, query, 1e6, -1e6, {"open": 2})
    assert not matches(Space.PLANAR, query, 0.0, 0.0, {"closed": 1})
