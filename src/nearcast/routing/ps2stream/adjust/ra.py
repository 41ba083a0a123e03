"""RA (section VI-D): cells at random, until their load is enough."""

from __future__ import annotations

import numpy as np

from nearcast.kernels.hashing import mix64_array
from nearcast.routing.ps2stream.adjust.selection import Numbers, Reals, Selection, along


def ra(loads: Reals, sizes: Numbers, tau: float, seed: int = 0) -> Selection:
    """Cells in an order that `seed` alone decides, the same on every machine."""
    start = mix64_array(np.array([seed], np.uint64))[0]
    lots = mix64_array(np.arange(len(loads), dtype=np.uint64) ^ start)
    return along(np.argsort(lots, kind="stable"), loads, sizes, tau)
