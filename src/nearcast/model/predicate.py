"""Whether an object satisfies a query: the one definition, in float64.

Scan, oracle and the tests of all kernels decide by this; whatever works on rounded boxes or hashed
keywords may only propose.
"""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nearcast.model.expression import evaluate
from nearcast.model.geometry import region_contains
from nearcast.model.query import KnnQuery, RangeQuery
from nearcast.model.shapes import Region, encode
from nearcast.model.space import Space

__all__ = ["contains", "matches"]


def matches(
    space: Space, query: RangeQuery | KnnQuery, x: float, y: float, keywords: Container[str]
) -> bool:
    """Whether an object at x, y is a candidate for the query's result.

    For a range query that is all there is to it; of the candidates of a knn query the nearest k
    are kept. Time is not looked at.
    """
    if not evaluate(query.where, keywords):
        return False
    return isinstance(query, KnnQuery) or contains(space, query.region, x, y)


def contains(space: Space, region: Region, x: float, y: float) -> bool:
    """Whether the position lies in the region: `region_contains` for callers without arrays."""
    code, data = _encoded(region)
    return bool(region_contains(space.code, code, data, float(x), float(y)))


# Small, because a polygon may be large: callers ask about one region many times in a row.
@lru_cache(maxsize=256)
def _encoded(region: Region) -> tuple[int, NDArray[np.float64]]:
    code, data = encode(region)
    return code, np.array(data, dtype=np.float64)
