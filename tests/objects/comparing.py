"""Every search of a store beside the scan's: equal to the bit, or the difference is shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.objects.making import (
    Query,
    centres_of,
    excluded_of,
    queries_of,
    regions_of,
    wishes_of,
)

from nearcast.objects import ObjectStore
from nearcast.objects.base import Found, WordCounts


def searches(store: ObjectStore, queries: Sequence[Query]) -> dict[str, Found | WordCounts]:
    """What all searches find; a query without region or keywords is left out where it needs one."""
    placed = [q for q in queries if q.region is not None]
    wishing = [q for q in queries if q.keywords]
    common = queries_of(placed)
    regions = regions_of(placed, store.space)
    return {
        "within": store.within(common, regions, np.array([q.limit for q in placed], np.int64)),
        "nearest": store.nearest(queries_of(queries), centres_of(queries)),
        "best": store.best(queries_of(wishing), centres_of(wishing), wishes_of(wishing)),
        "word_counts": store.word_counts(
            common, regions, np.array([q.k for q in placed], np.int64), *excluded_of(placed)
        ),
        "all words": store.word_counts(
            common, regions, np.zeros(len(placed), np.int64), *excluded_of(placed)
        ),
    }


def assert_equal(store: ObjectStore, scan: ObjectStore, queries: Sequence[Query]) -> None:
    """All searches of the two give the same. Handles may differ."""
    got, wanted = searches(store, queries), searches(scan, queries)
    for name, expected in wanted.items():
        found = got[name]
        for column, value in expected._asdict().items():
            if column not in ("handles", "examined"):
                np.testing.assert_array_equal(
                    getattr(found, column), value, err_msg=f"{name}: {column} of {queries}"
                )
        if isinstance(found, Found):
            rows = store.rows(found.handles)
            np.testing.assert_array_equal(rows.rank, found.rank, err_msg=f"{name}: rows")
