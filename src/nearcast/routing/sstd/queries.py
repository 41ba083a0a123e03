"""The queries that statistics are made from: six types (SSTD, section 3.1), as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.routing.grid.survey import RegionSurvey

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]
Reals = NDArray[np.float64]

# Snapshot and continuous versions of range keyword, kNN and top-k frequent-term queries.
SRQ, SKQ, STQ, CRQ, CKQ, CTQ = range(6)
TYPES = 6


class Queries(NamedTuple):
    """Queries of any type. Those of kNN have the box around their search region."""

    type: NDArray[np.int8]  # [n]
    weight: Reals  # [n]: how many queries each stands for
    duration: Reals  # [n]: τ, in time units; of snapshot queries not used
    box_offsets: Numbers  # [n + 1]
    boxes: Reals  # [b, 4] minx, miny, maxx, maxy
    word_offsets: Numbers  # [n + 1]
    words: Words  # all of a conjunction, or the cover of an OR
    conjunction: NDArray[np.bool_]  # [n]


def queries_of(
    survey: RegionSurvey, weight: float = 1.0, asks: float = 0.0, duration: float = 1.0
) -> Queries:
    """Range subscriptions as CRQs, with SRQs of the same regions and words beside them.

    Each stands for `weight`; `asks` is the share of SRQs. The paper derives statistics from
    historical queries; asks are not surveyed, so a plan takes them to be like subscriptions.
    """
    parts = []
    for type_, share in ((CRQ, 1.0 - asks), (SRQ, asks)):
        if share > 0:
            n = len(survey.conjunction)
            parts.append(
                Queries(
                    np.full(n, type_, np.int8),
                    np.full(n, share * weight),
                    np.full(n, duration),
                    *survey[1:],
                )
            )
    return joined(parts)


def joined(parts: list[Queries]) -> Queries:
    """All of the queries, one part behind the other."""
    columns = [
        p._replace(box_offsets=np.diff(p.box_offsets), word_offsets=np.diff(p.word_offsets))
        for p in parts
    ]
    whole = Queries(*(np.concatenate(c) for c in zip(*columns)))
    return whole._replace(
        box_offsets=_offsets(whole.box_offsets), word_offsets=_offsets(whole.word_offsets)
    )


def _offsets(lengths: Numbers) -> Numbers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
