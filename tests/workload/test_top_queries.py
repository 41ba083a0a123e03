"""Skype's data sets and subscriptions (table 3, section 8.1.1)."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.model.space import Space, distance
from nearcast.workload import SKYPE_GN, SKYPE_TWEETS, SKYPE_YELP, Corpus, top_subscriptions
from nearcast.workload.top_queries import farthest

TABLE_3 = [
    (SKYPE_TWEETS, 12_700_000, 1_700_000, 9),
    (SKYPE_GN, 2_200_000, 208_000, 7),
    (SKYPE_YELP, 1_600_000, 85_000, 37),
]


@pytest.mark.parametrize(("corpus", "messages", "vocabulary", "keywords"), TABLE_3)
def test_statistics_of_table_3(
    corpus: Corpus, messages: int, vocabulary: int, keywords: int, rng: np.random.Generator
) -> None:
    assert (corpus.cardinality, corpus.vocabulary) == (messages, vocabulary)
    drawn = corpus.objects(5_000, rng)
    assert len(drawn.keywords) / len(drawn) == pytest.approx(keywords, rel=0.03)


def test_a_subscription_is_of_a_message(rng: np.random.Generator) -> None:
    pool = SKYPE_GN.objects(500, rng)
    subs = top_subscriptions(SKYPE_GN, 2_000, rng, pool=pool)
    places = {(x, y): n for n, (x, y) in enumerate(zip(pool.lon, pool.lat, strict=True))}
    assert subs.alpha is not None
    assert subs.k is not None
    assert set(subs.k.tolist()) == {20}
    assert 0 <= subs.alpha.min() < 0.01
    assert 0.99 < subs.alpha.max() <= 1
    lengths = np.zeros(6, int)
    for n in range(len(subs)):
        message = places[subs.lon[n], subs.lat[n]]
        own = pool.keywords[pool.offsets[message] : pool.offsets[message + 1]].tolist()
        words = subs.keywords[subs.offsets[n] : subs.offsets[n + 1]].tolist()
        assert set(words) <= set(own)
        assert len(set(words)) == len(words) <= len(own)
        lengths[len(words)] += 1
    assert lengths[0] == 0
    assert lengths[1:].min() > 250


def test_words_of_a_law(rng: np.random.Generator) -> None:
    subs = top_subscriptions(SKYPE_YELP, 5_000, rng, keywords=(3, 3), words="zipf")
    assert set(np.diff(subs.offsets).tolist()) == {3}
    rows = np.sort(subs.keywords.reshape(-1, 3), axis=1)
    assert np.all(np.diff(rows, axis=1) > 0)
    assert np.bincount(subs.keywords)[0] > 1_000  # the first rank, in most of them


def test_nothing_is_farther(rng: np.random.Generator) -> None:
    for corpus, *_ in TABLE_3:
        places = corpus.objects(500, rng)
        for space in Space:
            far = farthest(corpus, space)
            for n in range(1, 500):
                one = places.lon[n], places.lat[n], places.lon[n - 1], places.lat[n - 1]
                assert distance(space.code, *one) <= far
