"""The streams of Tornado (section 5) as tables: standing queries, and tweets that begin anew.

Queries are made from the tweets that are streamed, so that each has something to match.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nearcast.routing import Sample
from nearcast.workload.corpora import TWEETS_US as CORPUS
from nearcast.workload.corpus import Objects
from nearcast.workload.ragged import expand, offsets_of
from nearcast.workload.tables import controls, publish_rows, subscribe_rows
from nearcast.workload.tornado import condensed_tweets, tweet_subscriptions
from nearcast_bench.common.cluster import Step, Stream, sample_of

POOL = 1_000_000  # tweets that are streamed again and again; fewer for few queries
SAMPLE = 20_000  # of them, for plans
_CHUNK = 250_000  # subscriptions made at once
_LEAST, _A_QUERY = 20_000, 10  # tweets at least, and for each query


def tornado_stream(
    queries: int,
    objects: int,
    steps: int,
    seed: int,
    scale: float = 1.0,
    tweets: int = 0,
    **queried: float,
) -> Stream:
    """Standing queries of a data set (`tweet_subscriptions`), and steps of so many tweets.

    `scale` condenses both. `tweets`: in the pool, as `pool_size` says if 0. The sample for plans is
    of tweets as they usually are.
    """
    size = tweets or pool_size(queries)
    querying = np.random.default_rng([seed, 1])
    standing = []
    for first in range(0, queries, _CHUNK):
        n = min(_CHUNK, queries - first)
        made = tweet_subscriptions(
            CORPUS, n, querying, scale=scale, pool=_pool(size, seed), **queried
        )
        standing.append(subscribe_rows(CORPUS, made, first, np.zeros(n, np.int64)))
    return Stream(standing, list(_steps(size, objects, steps, seed, scale)), _sample(size, seed))


def pool_size(queries: int) -> int:
    """Tweets in the pool of a run."""
    return min(max(_LEAST, _A_QUERY * queries), POOL)


@lru_cache(maxsize=2)
def _pool(size: int, seed: int) -> Objects:
    return CORPUS.objects(size, np.random.default_rng([seed, 2]))


@lru_cache(maxsize=2)
def _sample(size: int, seed: int) -> Sample:
    some = np.random.default_rng([seed, 3]).choice(size, min(SAMPLE, size), replace=False)
    rows = publish_rows(CORPUS, _some(_pool(size, seed), some), 0, np.zeros(len(some), np.int64))
    return sample_of(rows)


@lru_cache(maxsize=2)
def _steps(size: int, objects: int, steps: int, seed: int, scale: float) -> tuple[Step, ...]:
    """The tweets in order, from the beginning again after the last one."""
    tweets = condensed_tweets(CORPUS, _pool(size, seed), scale)
    none = controls(0)
    made = []
    for first in range(0, objects * steps, objects):
        some = _some(tweets, np.arange(first, first + objects) % size)
        times = np.arange(first + 1, first + objects + 1)
        rows = publish_rows(CORPUS, some, first, times)
        made.append(Step(none, np.empty(0, np.int32), rows))
    return tuple(made)


def _some(tweets: Objects, rows: NDArray[np.int64]) -> Objects:
    counts = np.diff(tweets.offsets)[rows]
    at = expand(tweets.offsets[rows], counts)
    return Objects(tweets.lon[rows], tweets.lat[rows], offsets_of(counts), tweets.keywords[at])
