"""The streams of PS2Stream (VI-A) as tables, with their updates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.workload.corpora import TWEETS_UK, TWEETS_US, TWEETS_US_TOPICS
from nearcast.workload.corpus import Corpus, Objects
from nearcast.workload.mix import OBJECTS_AN_UPDATE, updates
from nearcast.workload.ragged import expand, offsets_of
from nearcast.workload.subscriptions import (
    Group,
    Rare,
    Subscriptions,
    q3_regions,
    range_subscriptions,
)
from nearcast.workload.tables import publish_rows, subscribe_rows, unsubscribe_rows
from nearcast_bench.common.cluster import Step, Stream, sample_of

CORPORA = {"us": TWEETS_US, "uk": TWEETS_UK, "us-topics": TWEETS_US_TOPICS}
SAMPLE = 20_000  # objects of the past that plans are made from
_CHUNK = 250_000  # subscriptions made at once
Numbers = NDArray[np.int64]
Querying = Callable[[int, np.random.Generator], Subscriptions]
Posting = Callable[[int, np.random.Generator], Objects]


class Tweets:
    """μ standing subscriptions, and steps with an update after every fifth object.

    A subscription lives for N(μ, (0.2 μ)²) arrivals; the standing ones have what is left of such
    lives, so that about μ stand at any time (`workload.mix`). What is queried and posted may be
    changed between steps.
    """

    def __init__(
        self, corpus: Corpus, mu: int, changes: int, seed: int, querying: Querying
    ) -> None:
        self.corpus = corpus
        self.mu = mu
        self.querying = querying
        self.posting: Posting = corpus.objects
        lives, *self._rngs = np.random.default_rng(seed).spawn(4)
        self._deletes, self._numbers = updates(changes, mu, lives)
        self._rows: list[pa.RecordBatch] = []  # of all subscriptions so far, chunk by chunk
        self._first: list[int] = []  # the number of the first of each chunk
        self._queried = self._posted = self._updated = 0

    def standing(self) -> list[pa.RecordBatch]:
        """The subscriptions of the beginning, as REGIONS."""
        for first in range(0, self.mu, _CHUNK):
            self._ask(np.zeros(min(_CHUNK, self.mu - first), np.int64), self._rngs[0])
        return list(self._rows)

    def sample(self, n: int = SAMPLE) -> pa.RecordBatch:
        """Objects of the past, as OBJECTS."""
        return publish_rows(self.corpus, self.posting(n, self._rngs[2]), 0, np.zeros(n, np.int64))

    def step(self, changes: int) -> Step:
        """The next updates, with five objects before each; times count objects."""
        chosen = slice(self._updated, self._updated + changes)
        deletes, numbers = self._deletes[chosen], self._numbers[chosen]
        if len(numbers) < changes:
            raise ValueError("there are no more updates")
        n = changes * OBJECTS_AN_UPDATE
        before = np.arange(1, changes + 1) * OBJECTS_AN_UPDATE
        times = self._posted + before + 1
        objects = self.posting(n, self._rngs[1])
        posted = publish_rows(
            self.corpus, objects, self._posted, np.arange(self._posted + 1, self._posted + n + 1)
        )
        came = self._ask(times[~deletes], self._rngs[0])
        went = unsubscribe_rows(self._subscribed(numbers[deletes]), times[deletes])
        both = pa.concat_batches([came, went])
        order = np.argsort(np.concatenate([times[~deletes], times[deletes]]), kind="stable")
        self._posted += n
        self._updated += changes
        return Step(both.take(pa.array(order)), before.astype(np.int32), posted)

    def _ask(self, times: Numbers, rng: np.random.Generator) -> pa.RecordBatch:
        made = subscribe_rows(self.corpus, self.querying(len(times), rng), self._queried, times)
        self._rows.append(made)
        self._first.append(self._queried)
        self._queried += len(times)
        return made

    def _subscribed(self, numbers: Numbers) -> pa.RecordBatch:
        """The rows that subscribed these numbers: looked up chunk by chunk, without a copy."""
        chunk = np.searchsorted(self._first, numbers, side="right") - 1
        parts, places = [], []
        for c in np.unique(chunk):
            mine = np.flatnonzero(chunk == c)
            parts.append(self._rows[c].take(pa.array(numbers[mine] - self._first[c])))
            places.append(mine)
        if not parts:
            return self._rows[0].slice(0, 0)
        order = np.argsort(np.concatenate(places), kind="stable")
        return pa.concat_batches(parts).take(pa.array(order))


def ps2stream_tweets(
    country: str, group: Group, mu: int, changes: int, seed: int, rare: Rare = "by-frequency"
) -> Tweets:
    """STS-US or STS-UK with queries of a group."""
    corpus = CORPORA[country]

    def querying(n: int, rng: np.random.Generator) -> Subscriptions:
        return range_subscriptions(corpus, n, rng, group, rare=rare)

    return Tweets(corpus, mu, changes, seed, querying)


def stream_of(tweets: Tweets, steps: int, changes: int, small: int, few: int) -> Stream:
    """`steps` of `changes` updates each, then `small` ones of `few`."""
    standing = tweets.standing()
    sample = sample_of(tweets.sample())
    return Stream(
        standing,
        [tweets.step(changes) for _ in range(steps)],
        sample,
        [tweets.step(few) for _ in range(small)],
    )


def by_hour(corpus: Corpus, hour: float) -> Posting:
    """Tweets at an hour of the day (UTC): few where it is five in the morning, many at five p.m.

    Stands for the time-stamps of real tweets, which the corpora do not have.
    """

    def posting(n: int, rng: np.random.Generator) -> Objects:
        parts, found = [], 0
        while found < n:
            made = corpus.objects(2 * n, rng)
            local = 2.0 * np.pi * (hour + made.lon / 15.0 - 17.0) / 24.0
            keep = np.flatnonzero(rng.random(len(made)) < 0.55 + 0.45 * np.cos(local))
            parts.append(_some(made, keep[: n - found]))
            found += len(parts[-1])
        offsets = np.concatenate([np.diff(p.offsets) for p in parts])
        return Objects(
            np.concatenate([p.lon for p in parts]),
            np.concatenate([p.lat for p in parts]),
            offsets_of(offsets),
            np.concatenate([p.keywords for p in parts]),
        )

    return posting


def _some(objects: Objects, rows: Numbers) -> Objects:
    counts = np.diff(objects.offsets)[rows]
    at = expand(objects.offsets[rows], counts)
    return Objects(objects.lon[rows], objects.lat[rows], offsets_of(counts), objects.keywords[at])


def q3_switching(tweets: Tweets, seed: int, share: float) -> Callable[[], None]:
    """What changes the kind of queries in a share of Q3's regions, each time it is called."""
    flags = q3_regions(tweets.corpus).copy()
    rng = np.random.default_rng([seed, 16])

    def querying(n: int, querying_rng: np.random.Generator) -> Subscriptions:
        return range_subscriptions(tweets.corpus, n, querying_rng, "Q3", flags)

    def switch() -> None:
        some = rng.choice(len(flags), round(share * len(flags)), replace=False)
        flags[some] = ~flags[some]

    tweets.querying = querying
    return switch
