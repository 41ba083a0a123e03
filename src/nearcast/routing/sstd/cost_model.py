"""The six cost models and equation 2 of SSTD (section 4.1.1).

Each is linear in the number of objects, so a cell has a price per object: one part that depends on
the keywords that a partition holds (SRQ, SKQ), one that does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.sstd.cells import Cell
from nearcast.routing.sstd.queries import CKQ, CRQ, CTQ, SKQ, SRQ, STQ
from nearcast.routing.sstd.statistics import QueryStatistics

Reals = NDArray[np.float64]


class Prices(NamedTuple):
    """What an object in a cell costs under a random query, its probability included."""

    srq: float  # Pr(srq)·p_srq; times `covered` for the partition's H_srq
    skq: float
    rest: float  # of STQ, CRQ, CKQ and CTQ together


def prices(j: QueryStatistics, cell: Cell, period: float = 1.0) -> Prices:
    """The prices of a cell; `period`: time units in which the counted objects arrived.

    E_{P,O} = Σ_T Pr(q.τ = T)·T·E_P, with E_P the objects per time unit.
    """
    p = j.share * j.probabilities(cell)
    arriving = j.duration / period
    return Prices(p[SRQ], p[SKQ], p[STQ] + arriving * (p[CRQ] + p[CKQ] + p[CTQ]))


@njit(lean=True)
def covered(h: float, lengths: Reals) -> float:
    """Equation 1: Σ_l Pr(|q.φ| = l)·Hˡ, the probability that a partition covers q.φ."""
    out = 0.0
    for length in range(len(lengths) - 1, -1, -1):
        out = out * h + lengths[length]
    return out


def workload(price: Prices, lengths: Reals, objects: float, h_srq: float, h_skq: float) -> float:
    """Equation 2 for a partition with so many objects; `lengths` [2, l] of SRQ and of SKQ."""
    by_words = price.srq * covered(h_srq, lengths[0]) + price.skq * covered(h_skq, lengths[1])
    return objects * (by_words + price.rest)
