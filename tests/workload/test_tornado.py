"""Tornado's query data sets."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.workload.corpora import TWEETS_UK as UK
from nearcast.workload.subscriptions import AND
from nearcast.workload.tornado import condensed_tweets, tweet_subscriptions


def test_normal_tweets_ask_for_all_words_in_a_share_of_the_space(rng: np.random.Generator) -> None:
    queried = tweet_subscriptions(UK, 500, rng, keywords=5, side=0.01)
    assert queried.bbox is not None
    assert set(np.diff(queried.offsets).tolist()) == {5}
    assert set(queried.operator.tolist()) == {AND}
    width, height = UK.bounds[2] - UK.bounds[0], UK.bounds[3] - UK.bounds[1]
    assert np.allclose(queried.bbox[:, 2] - queried.bbox[:, 0], 0.01 * width, atol=3e-6)
    assert np.allclose(queried.bbox[:, 3] - queried.bbox[:, 1], 0.01 * height, atol=3e-6)


def test_a_query_asks_for_words_of_the_tweet_at_its_place(rng: np.random.Generator) -> None:
    pool = UK.objects(300, rng)
    queried = tweet_subscriptions(UK, 400, rng, keywords=3, pool=pool)
    at = {(x, y): i for i, (x, y) in enumerate(zip(pool.lon, pool.lat, strict=True))}
    used = set()
    for i in range(400):
        row = at[queried.lon[i], queried.lat[i]]
        words = set(queried.keywords[queried.offsets[i] : queried.offsets[i + 1]].tolist())
        held = pool.keywords[pool.offsets[row] : pool.offsets[row + 1]].tolist()
        assert len(words) == 3
        assert words <= set(held)
        used |= {held.index(w) for w in words}
    assert {0, 1, 2, 3} <= used  # not only the first ones
    with pytest.raises(ValueError, match="no tweet has 99 words"):
        tweet_subscriptions(UK, 1, rng, keywords=99, pool=pool)


def test_condensed_lies_about_the_middle(rng: np.random.Generator) -> None:
    minx, miny, maxx, maxy = UK.bounds
    for made in (
        tweet_subscriptions(UK, 500, rng, scale=0.4),
        condensed_tweets(UK, UK.objects(500, rng), 0.4),
    ):
        assert np.abs(made.lon - (minx + maxx) / 2).max() <= 0.2 * (maxx - minx) + 1e-5
        assert np.abs(made.lat - (miny + maxy) / 2).max() <= 0.2 * (maxy - miny) + 1e-5


def test_selective_leaves_out_the_most_frequent_words(rng: np.random.Generator) -> None:
    frequencies = UK.frequencies()
    limit = np.sort(frequencies)[int(0.9 * UK.vocabulary)]
    queried = tweet_subscriptions(UK, 500, rng, percentile=0.9)
    assert frequencies[queried.keywords].max() <= limit
    rows = np.repeat(np.arange(500), 3)
    assert len(np.unique(np.stack([rows, queried.keywords]), axis=1).T) == 1500
