"""SI (section VI-D): cells in descending order of their sizes, until their load is enough."""

from __future__ import annotations

import numpy as np

from nearcast.routing.ps2stream.adjust.selection import Numbers, Reals, Selection, along


def si(loads: Reals, sizes: Numbers, tau: float, seed: int = 0) -> Selection:
    """The largest cells; of equal ones the first."""
    del seed  # nothing is drawn by lot
    return along(np.argsort(-sizes, kind="stable"), loads, sizes, tau)
