"""Tornado's query data sets (section 5): normal tweets, spatially condensed, textually selective.

A query's place and words are those of one tweet (section 5); it wants all of its words inside a
rectangle. The stream restarts when all tweets were streamed: tweets and queries may share a pool.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nearcast.workload.corpus import Corpus, Objects
from nearcast.workload.places import Bounds
from nearcast.workload.ragged import (
    Floats,
    Ids,
    Longs,
    expand,
    make_distinct,
    offsets_of,
    rows_of,
)
from nearcast.workload.subscriptions import AND, Subscriptions

KEYWORDS = 3  # Table 1
SIDE = 0.005  # of the spatial range, along each axis
_LEAST_SHARE = 0.001  # of the vocabulary that keywords are drawn from, however rare they are to be


def tweet_subscriptions(
    corpus: Corpus,
    n: int,
    rng: np.random.Generator,
    keywords: float = KEYWORDS,
    side: float = SIDE,
    scale: float = 1.0,
    percentile: float = 1.0,
    pool: Objects | None = None,
) -> Subscriptions:
    """n queries at the places of tweets, with some of the words of the same tweet.

    `pool`: the tweets; others are drawn where none are given. Only tweets with enough words can be
    chosen. `side`: of a rectangle, as a share of the spatial range. `scale`: that
    range shrunk about its middle (*spatially condensed*). `percentile`: words only from that share
    of the vocabulary, the less frequent end, by their frequencies there (*textually selective*).
    """
    tweets = pool if pool is not None else corpus.objects(max(4 * n, 1000), rng)
    k = int(keywords)
    fit = np.flatnonzero(np.diff(tweets.offsets) >= k)
    if len(fit) == 0:
        raise ValueError(f"no tweet has {k} words")
    rows = fit[rng.integers(len(fit), size=n)]
    if percentile < 1.0:
        offsets, words = _rare_words(corpus, np.full(n, k), percentile, rng)
    else:
        offsets, words = _some_words(tweets, rows, k, rng)
    x, y = condensed(corpus.bounds, tweets.lon[rows], tweets.lat[rows], scale)
    return Subscriptions(
        x, y, offsets, words, operator=np.full(n, AND, np.uint8), bbox=_boxes(corpus, x, y, side)
    )


def _some_words(
    tweets: Objects, rows: Longs, k: int, rng: np.random.Generator
) -> tuple[Longs, Ids]:
    """k words of each of these tweets, any of them equally likely."""
    counts = np.diff(tweets.offsets)[rows]
    at = expand(tweets.offsets[rows], counts)
    offsets = offsets_of(counts)
    order = np.lexsort((rng.random(len(at)), rows_of(offsets)))
    first = expand(offsets[:-1], np.full(len(rows), k))
    return offsets_of(np.full(len(rows), k)), tweets.keywords[at[order[first]]]


def condensed_tweets(corpus: Corpus, tweets: Objects, scale: float) -> Objects:
    """Tweets as in the spatially condensed data set."""
    x, y = condensed(corpus.bounds, tweets.lon, tweets.lat, scale)
    return Objects(x, y, tweets.offsets, tweets.keywords)


def condensed(bounds: Bounds, x: Floats, y: Floats, scale: float) -> tuple[Floats, Floats]:
    """Positions moved towards the middle of the bounds, to `scale` of their distance from it."""
    if scale == 1.0:
        return x, y
    mid_x, mid_y = (bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2
    return np.round(mid_x + scale * (x - mid_x), 6), np.round(mid_y + scale * (y - mid_y), 6)


def _boxes(corpus: Corpus, x: Floats, y: Floats, side: float) -> Floats:
    minx, miny, maxx, maxy = corpus.bounds
    half_x, half_y = 0.5 * side * (maxx - minx), 0.5 * side * (maxy - miny)
    boxes = np.stack([x - half_x, y - half_y, x + half_x, y + half_y], axis=1)
    return np.asarray(np.round(boxes, 6), np.float64)


@lru_cache(maxsize=8)
def _rare(corpus: Corpus, percentile: float) -> tuple[Ids, Floats]:
    """(the less frequent words, their cumulative shares)."""
    frequencies = corpus.frequencies()
    count = int(corpus.vocabulary * max(percentile, _LEAST_SHARE))
    ids = np.argsort(frequencies, kind="stable")[:count].astype(np.int32)
    cumulative = np.cumsum(frequencies[ids])
    return ids, cumulative / cumulative[-1]


def _rare_words(
    corpus: Corpus, counts: Longs, percentile: float, rng: np.random.Generator
) -> tuple[Longs, Ids]:
    ids, cumulative = _rare(corpus, percentile)

    def draw(n: int) -> Ids:
        at = np.searchsorted(cumulative, rng.random(n), side="right")
        return ids[np.minimum(at, len(ids) - 1)]

    offsets = offsets_of(counts)
    words = draw(int(offsets[-1]))
    make_distinct(words, offsets, lambda indexes: draw(len(indexes)))
    return offsets, words
