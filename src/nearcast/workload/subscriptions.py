"""Subscriptions made from a corpus exactly as the papers' experiments make them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from nearcast.workload.corpus import Corpus
from nearcast.workload.places import grid_cells, units_a_metre
from nearcast.workload.ragged import (
    Flags,
    Floats,
    Ids,
    Longs,
    expand,
    make_distinct,
    offsets_of,
    positions_of,
    rows_of,
)

AND, OR = 0, 1
Group = Literal["Q1", "Q2", "Q3"]
# PS2Stream gives a law of keywords for Q1 alone. Of Q2 it says that a query has at least one that
# is not among the 1% most frequent terms, and that its keywords are less frequent. By one reading
# words are drawn by frequency and one of them is made to be infrequent; by the other all are drawn
# uniformly from the infrequent 99% of the lexicon.
Rare = Literal["by-frequency", "uniform"]

_MAX_KNN_KEYWORDS = 5
_Q1_SIDE_M = (1_000.0, 50_000.0)
_Q2_SIDE_M = (1_000.0, 100_000.0)
_Q3_CELLS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Subscriptions:
    """n subscriptions as a struct of arrays.

    ``lon``, ``lat``: the centre. ``offsets``, ``keywords``: a list of distinct keyword ids each,
    joined by ``operator`` (AND or OR). A range subscription has a row of ``bbox`` float64[n, 4]
    (minx, miny, maxx, maxy), a nearest-neighbour subscription has ``k`` int64[n]; one for the
    objects of highest score has ``alpha`` float64[n] besides, and its words are what it scores by.
    """

    lon: Floats
    lat: Floats
    offsets: Longs
    keywords: Ids
    operator: npt.NDArray[np.uint8]
    bbox: Floats | None = None
    k: Longs | None = None
    alpha: Floats | None = None

    def __post_init__(self) -> None:
        if (self.bbox is None) == (self.k is None):
            raise ValueError("subscriptions have either bbox (range) or k (nearest neighbours)")
        if self.alpha is not None and self.k is None:
            raise ValueError("subscriptions with alpha have k")

    def __len__(self) -> int:
        return len(self.lon)


def knn_subscriptions(
    corpus: Corpus, n: int, k_max: int, rng: np.random.Generator
) -> Subscriptions:
    """DkM-SKS 5.1: a random object's place, at most five of its keywords, k uniform in 1..k_max.

    An object with up to five keywords gives all of them, a longer one five chosen uniformly.
    """
    objects = corpus.objects(n, rng)
    offsets, keywords = at_most(_MAX_KNN_KEYWORDS, objects.offsets, objects.keywords, rng)
    return Subscriptions(
        objects.lon,
        objects.lat,
        offsets,
        keywords,
        operator=np.full(n, OR, dtype=np.uint8),
        k=rng.integers(1, k_max, n, endpoint=True),
    )


def range_subscriptions(
    corpus: Corpus,
    n: int,
    rng: np.random.Generator,
    group: Group = "Q1",
    q2_regions: Flags | None = None,
    rare: Rare = "by-frequency",
) -> Subscriptions:
    """PS2Stream VI: a square around a random object's place, 1-3 keywords joined by AND or OR.

    Q1: side 1-50 km, keywords by the corpus's frequencies. Q2: side 1-100 km, at least one
    keyword outside the 1% most frequent, chosen as ``rare`` says. Q3: 100 equal regions, each of
    one of these kinds (``q2_regions``, by default `q3_regions`); VI-D changes some of them during
    the run.
    Keywords do not depend on the place: in the paper only Q3 has regional preferences.
    """
    lon, lat, _ = corpus.places(n, rng)
    if group == "Q3":
        flags = q3_regions(corpus) if q2_regions is None else q2_regions
        is_q2 = flags[grid_cells(corpus.bounds, _Q3_CELLS, lon, lat)]
    else:
        is_q2 = np.full(n, group == "Q2")
    counts = rng.integers(1, 3, n, endpoint=True)
    offsets, keywords = corpus.terms(counts, corpus.tiles_at_random(n, rng), rng)
    if rare == "uniform":
        _all_infrequent(corpus, offsets, keywords, is_q2, rng)
    else:
        _ensure_infrequent(corpus, offsets, keywords, is_q2, rng)
    low = np.where(is_q2, _Q2_SIDE_M[0], _Q1_SIDE_M[0])
    high = np.where(is_q2, _Q2_SIDE_M[1], _Q1_SIDE_M[1])
    return Subscriptions(
        lon,
        lat,
        offsets,
        keywords,
        operator=rng.integers(0, 2, n, dtype=np.uint8),
        bbox=squares(corpus, lon, lat, rng.uniform(low, high)),
    )


def range_and_subscriptions(
    corpus: Corpus, n: int, rng: np.random.Generator, side_m: tuple[float, float]
) -> Subscriptions:
    """Squares with sides uniform in ``side_m`` and an AND of 1-3 keywords in use at the place."""
    lon, lat, tile = corpus.places(n, rng)
    offsets, keywords = corpus.terms(rng.integers(1, 3, n, endpoint=True), tile, rng)
    sides = rng.uniform(side_m[0], side_m[1], n)
    return Subscriptions(
        lon,
        lat,
        offsets,
        keywords,
        operator=np.full(n, AND, dtype=np.uint8),
        bbox=squares(corpus, lon, lat, sides),
    )


@lru_cache(maxsize=16)
def q3_regions(corpus: Corpus) -> Flags:
    """Which of the 10 x 10 regions of Q3 are of kind Q2: a fair coin each, from the corpus seed.

    The order is row by row from the south-west corner of the bounds.
    """
    flags = np.random.default_rng([corpus.seed, 3]).random(_Q3_CELLS * _Q3_CELLS) < 0.5
    flags.setflags(write=False)
    return flags


def squares(corpus: Corpus, lon: Floats, lat: Floats, sides_m: Floats) -> Floats:
    """Boxes float64[n, 4] with these centres and side lengths in metres, to 6 decimals."""
    east, north = units_a_metre(corpus.planar, lat)
    half_x, half_y = 0.5 * sides_m * east, 0.5 * sides_m * north
    boxes = np.stack([lon - half_x, lat - half_y, lon + half_x, lat + half_y], axis=1)
    if not corpus.planar:
        np.clip(boxes, [-180.0, -90.0, -180.0, -90.0], [180.0, 90.0, 180.0, 90.0], out=boxes)
    rounded: Floats = np.round(boxes, 6)
    return rounded


def at_most(
    most: int, offsets: Longs, keywords: Ids, rng: np.random.Generator
) -> tuple[Longs, Ids]:
    """Of each row at most ``most`` values, uniformly at random, in their order in the row."""
    counts = np.diff(offsets)
    rows = rows_of(offsets)
    long = np.flatnonzero(counts[rows] > most)
    # Random keys order the values within each long row; the first ``most`` of that order stay.
    order = np.lexsort((rng.random(len(long)), rows[long]))
    places = positions_of(offsets_of(counts[counts > most]))
    keep = np.ones(len(keywords), dtype=np.bool_)
    keep[long[order[places >= most]]] = False
    return offsets_of(np.minimum(counts, most)), keywords[keep]


def _all_infrequent(
    corpus: Corpus, offsets: Longs, keywords: Ids, rows: Flags, rng: np.random.Generator
) -> None:
    """In the flagged rows, replace all keywords by infrequent ones, each of them as likely."""
    others = corpus.infrequent()
    mine = np.flatnonzero(rows)
    counts = np.diff(offsets)[mine]
    fresh = rng.choice(others, int(counts.sum()))
    make_distinct(fresh, offsets_of(counts), lambda indexes: rng.choice(others, len(indexes)))
    keywords[expand(offsets[mine], counts)] = fresh


def _ensure_infrequent(
    corpus: Corpus, offsets: Longs, keywords: Ids, rows: Flags, rng: np.random.Generator
) -> None:
    """In the flagged rows without an infrequent keyword, replace one by an infrequent one.

    The replacement is drawn by the corpus's frequencies among the infrequent words. It cannot
    repeat a word of its row: all of those are frequent.
    """
    if not rows.any():
        return
    infrequent = np.add.reduceat(~corpus.frequent(keywords), offsets[:-1], dtype=np.int64)
    wanting = np.flatnonzero(rows & (infrequent == 0))
    places = offsets[wanting] + rng.integers(0, np.diff(offsets)[wanting])
    while len(places):
        fresh = corpus.terms(
            np.ones(len(places), dtype=np.int64), corpus.tiles_at_random(len(places), rng), rng
        )[1]
        found = ~corpus.frequent(fresh)
        keywords[places[found]] = fresh[found]
        places = places[~found]
