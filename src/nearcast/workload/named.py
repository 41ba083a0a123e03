"""The named workloads of ``nearcast generate``: what each is, and how its events are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.workload.calibration import calibrated_sides
from nearcast.workload.city import city
from nearcast.workload.corpora import (
    CITY,
    PLACE,
    RANGE6,
    SKYPE_GN,
    SKYPE_TWEETS,
    SKYPE_YELP,
    TWEETS_UK,
    TWEETS_US,
    TWITTER,
)
from nearcast.workload.corpus import Corpus
from nearcast.workload.events import (
    START_MS,
    Progress,
    publish_events,
    subscribe_events,
    write_jsonl,
    write_parquet,
)
from nearcast.workload.mix import mix
from nearcast.workload.subscriptions import (
    Group,
    Subscriptions,
    knn_subscriptions,
    range_and_subscriptions,
)
from nearcast.workload.top_queries import farthest, top_subscriptions

K_MAX = 10
_CHUNK = 100_000
# Below this many subscriptions, one match per object would need boxes of half a continent.
_FEWEST_TO_CALIBRATE = 10_000

Events = Callable[[int, int, np.random.Generator], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Generator:
    """A named workload: ``events(objects, subscriptions, rng)`` yields its event batches.

    ``objects`` and ``subscriptions`` are sizes to use when the user names none; ``corpus`` says
    the bounds and the vocabulary.
    """

    name: str
    description: str
    corpus: Corpus
    objects: int
    subscriptions: int
    events: Events


def generate(
    name: str,
    objects: int,
    subscriptions: int,
    seed: int,
    path: str | Path,
    progress: Progress | None = None,
) -> int:
    """Write the workload ``name`` to ``path`` and return the number of events.

    The suffix says the format: .jsonl, .jsonl.gz or .parquet. The same arguments always give the
    same bytes. ``progress`` receives the number of events written so far.
    """
    if name not in GENERATORS:
        raise ValueError(f"no workload {name!r}; choose one of: {', '.join(GENERATORS)}")
    if objects < 0 or subscriptions < 0 or seed < 0:
        raise ValueError("objects, subscriptions and seed must not be negative")
    text = str(path)
    if text.endswith((".jsonl", ".jsonl.gz")):
        write = write_jsonl
    elif text.endswith(".parquet"):
        write = write_parquet
    else:
        raise ValueError(f"{text}: the name must end in .jsonl, .jsonl.gz or .parquet")
    rng = np.random.default_rng(seed)
    return write(path, GENERATORS[name].events(objects, subscriptions, rng), progress)


def _standing(
    corpus: Corpus,
    make: Callable[[int, np.random.Generator], Subscriptions],
    objects: int,
    subscriptions: int,
    rng: np.random.Generator,
    maxdist: float | None = None,
) -> Iterator[pa.RecordBatch]:
    """All subscriptions at the start, then objects 1 ms apart."""
    # Two streams of random numbers: the objects stay the same when the subscriptions change.
    querying, posting = rng.spawn(2)
    for first in range(0, subscriptions, _CHUNK):
        n = min(_CHUNK, subscriptions - first)
        times = np.full(n, START_MS, dtype=np.int64)
        yield subscribe_events(corpus, make(n, querying), first, times, maxdist)
    for first in range(0, objects, _CHUNK):
        n = min(_CHUNK, objects - first)
        times = np.arange(START_MS + 1 + first, START_MS + 1 + first + n, dtype=np.int64)
        yield publish_events(corpus, corpus.objects(n, posting), first, times)


def _knn(
    corpus: Corpus, objects: int, subscriptions: int, rng: np.random.Generator
) -> Iterator[pa.RecordBatch]:
    def make(n: int, querying: np.random.Generator) -> Subscriptions:
        return knn_subscriptions(corpus, n, K_MAX, querying)

    return _standing(corpus, make, objects, subscriptions, rng)


def _top(
    corpus: Corpus, objects: int, subscriptions: int, rng: np.random.Generator
) -> Iterator[pa.RecordBatch]:
    def make(n: int, querying: np.random.Generator) -> Subscriptions:
        return top_subscriptions(corpus, n, querying)

    return _standing(corpus, make, objects, subscriptions, rng, farthest(corpus))


def _pipeline(
    objects: int, subscriptions: int, rng: np.random.Generator
) -> Iterator[pa.RecordBatch]:
    sampling, rest = rng.spawn(2)
    sides = calibrated_sides(RANGE6, max(subscriptions, _FEWEST_TO_CALIBRATE), sampling)

    def make(n: int, querying: np.random.Generator) -> Subscriptions:
        return range_and_subscriptions(RANGE6, n, querying, sides)

    return _standing(RANGE6, make, objects, subscriptions, rest)


def _mix(
    corpus: Corpus, group: Group, objects: int, subscriptions: int, rng: np.random.Generator
) -> Iterator[pa.RecordBatch]:
    return mix(corpus, objects, subscriptions, rng, group)


def _ps2stream(country: str, corpus: Corpus, group: Group, what: str) -> Generator:
    name = f"ps2stream-{country}-{group.lower()}"
    description = (
        f"PS2Stream STS-{country.upper()}-{group}: {what}; 5 objects an insertion or deletion"
    )
    return Generator(name, description, corpus, 100_000, 100_000, partial(_mix, corpus, group))


def _skype(corpus: Corpus, what: str) -> Generator:
    description = f"Skype {what}: topk subscriptions (k 20, 1-5 words of a message), then messages"
    return Generator(corpus.name, description, corpus, 100_000, 100_000, partial(_top, corpus))


_GROUPS: tuple[tuple[Group, str], ...] = (
    ("Q1", "squares of 1-50 km, keywords as frequent as in the tweets"),
    ("Q2", "squares of 1-100 km, at least one infrequent keyword"),
    ("Q3", "100 regions of kind Q1 or Q2"),
)

_ALL = (
    Generator(
        "place",
        "DkM-SKS Place: knn subscriptions (k 1-10, OR of at most 5 keywords), then places",
        PLACE,
        100_000,
        100_000,
        partial(_knn, PLACE),
    ),
    Generator(
        "twitter",
        "DkM-SKS Twitter: knn subscriptions (k 1-10, OR of at most 5 keywords), then tweets",
        TWITTER,
        100_000,
        100_000,
        partial(_knn, TWITTER),
    ),
    *(_ps2stream("us", TWEETS_US, group, what) for group, what in _GROUPS),
    *(_ps2stream("uk", TWEETS_UK, group, what) for group, what in _GROUPS),
    _skype(SKYPE_TWEETS, "TWEETS"),
    _skype(SKYPE_GN, "GN"),
    _skype(SKYPE_YELP, "YELP"),
    Generator(
        "pipeline",
        "range subscriptions (AND of 1-3 keywords, about one match an object), then objects",
        RANGE6,
        200_000,
        1_000_000,
        _pipeline,
    ),
    Generator(
        "city",
        "Tokyo in plain words: range and knn, all shapes of region, owners, some expire or leave",
        CITY,
        10_000,
        1_000,
        city,
    ),
)

GENERATORS: dict[str, Generator] = {g.name: g for g in _ALL}
