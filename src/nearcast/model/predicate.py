"""Whether a position lies in a region: the one definition, in float64.

Scan, oracle and the tests of all kernels decide by this; code that works on rounded boxes may only
propose candidates.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nearcast.model.geometry import region_contains
from nearcast.model.shapes import Region, encode
from nearcast.model.space import Space

__all__ = ["contains"]


def contains(space: Space, region: Region, x: float, y: float) -> bool:
    """Whether the position lies in the region: `region_contains` for callers without arrays."""
    code, data = _encoded(region)
    return bool(region_contains(space.code, code, data, float(x), float(y)))


# Small, because a polygon may be large: callers check one region many times in a row.
@lru_cache(maxsize=256)
def _encoded(region: Region) -> tuple[int, NDArray[np.float64]]:
    code, data = encode(region)
    return code, np.array(data, dtype=np.float64)
