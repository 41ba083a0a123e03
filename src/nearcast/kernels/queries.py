"""What a search of kept objects is given, as columns: when, which words, where, how to score.

Object stores search by it (`nearcast.objects`), and so may an index that looks at the past.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["NO_RANKS", "Centres", "Queries", "Wishes"]

NO_RANKS = np.empty(0, np.int64)


class Queries(NamedTuple):
    """What all queries of a search have: when, and which words (see `kernels.program`)."""

    after: NDArray[np.int64]  # objects with after < time <= until
    until: NDArray[np.int64]
    before_rank: NDArray[np.int64]  # and rank < before_rank: handled before the query
    program_offsets: NDArray[np.int64]  # [q + 1]
    program: NDArray[np.uint64]
    cover_offsets: NDArray[np.int64]  # [q + 1]
    cover: NDArray[np.uint64]
    conjunction: NDArray[np.bool_]  # the program is words only, all of which must be there
    from_rank: NDArray[np.int64] = NO_RANKS  # of objects with lower ranks, only those
    early: NDArray[np.int64] = NO_RANKS  # with a time after this; none are given: as all others


class Centres(NamedTuple):
    """A place per query, and how many objects it wants."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    k: NDArray[np.int64]


class Wishes(NamedTuple):
    """What a query by score wants besides its centre (SPEC section 4)."""

    keyword_offsets: NDArray[np.int64]  # [q + 1]
    keywords: NDArray[np.uint64]  # as listed, each once
    weights: NDArray[np.float64]  # their idf, not yet divided by their norm
    alpha: NDArray[np.float64]
    maxdist: NDArray[np.float64]
