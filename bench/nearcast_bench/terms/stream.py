"""Posts like SSTD's TW14 (section 7.1), and standing queries at places of posts.

A query has the paper's default region, 0.01% of the space, around the place of a post. Subscribes
are spread over one `every`, so moments are spread as well. Posts come at an even rate; they are
drawn once, and come again moved by about a kilometre.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.kernels.ragged import places
from nearcast.kernels.slots import CONJUNCTION, REPORTS
from nearcast.kinds import KINDS
from nearcast.model.region import BBOX
from nearcast.wire.tables import OBJECTS, filled_up, list_column
from nearcast.workload.corpus import Corpus, Objects
from nearcast.workload.ragged import offsets_of, rows_of
from nearcast.workload.tables import numbered, word_hashes

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]

CORPUS = Corpus(
    name="tw14", vocabulary=800_000, mean_keywords=10.0, bounds=(-124.8, 24.5, -66.9, 49.4),
    cardinality=63_000_000, seed=107,
)  # fmt: skip
KIND = KINDS["terms"]
SECOND = 1000  # milliseconds
START = 1_700_000_000_000  # the first post; subscribes come before it
_POOL = 400_000  # posts that come again and again
_JITTER = 0.01  # degrees


@dataclass(frozen=True)
class Load:
    """What comes in."""

    subscriptions: int = 200_000
    objects: int = 1_000_000  # timed; as many as a window holds come before them
    rate: int = 50_000  # posts a second, by their times
    every: float = 300.0  # seconds
    window: float = 300.0  # seconds
    area: float = 1e-4  # of the space
    k: int = 10
    seed: int = 7

    @property
    def filling(self) -> int:
        """Posts until the window is full."""
        return int(self.rate * self.window)

    @property
    def every_ms(self) -> int:
        """In milliseconds."""
        return max(round(self.every * SECOND), 1)

    @property
    def window_ms(self) -> int:
        """In milliseconds."""
        return max(round(self.window * SECOND), 1)

    @cached_property
    def pool(self) -> Objects:
        """Posts."""
        most = self.filling + self.objects
        return CORPUS.objects(min(_POOL, most), np.random.default_rng([self.seed, 1]))

    @cached_property
    def boxes(self) -> Reals:
        """[n, 4], the regions."""
        rng = np.random.default_rng([self.seed, 2])
        rows = rng.integers(len(self.pool), size=self.subscriptions)
        west, south, east, north = CORPUS.bounds
        half = np.array([(east - west), (north - south)]) * self.area**0.5 / 2
        middle = np.stack([self.pool.lon[rows], self.pool.lat[rows]], axis=1)
        boxes: Reals = np.concatenate([middle - half, middle + half], axis=1)
        return boxes

    @cached_property
    def begun(self) -> Longs:
        """When each is subscribed, ascending."""
        n = self.subscriptions
        return START - self.every_ms + np.arange(n) * self.every_ms // max(n, 1)

    def posts(self, first: int, n: int) -> Posts:
        """Posts first, first + 1, …"""
        rows = np.arange(first, first + n) % len(self.pool)
        rng = np.random.default_rng([self.seed, 3, first])
        lengths = np.diff(self.pool.offsets)[rows]
        offsets, at = places(self.pool.offsets[rows], lengths)
        return Posts(
            first,
            self.pool.lon[rows] + rng.normal(0.0, _JITTER, n),
            self.pool.lat[rows] + rng.normal(0.0, _JITTER, n),
            START + np.arange(first, first + n) * SECOND // self.rate,
            offsets,
            self.pool.keywords[at],
        )

    def steps(self, step: int) -> Iterator[Posts]:
        """All posts, those that fill the window first; no step has both."""
        for begin, end in ((0, self.filling), (self.filling, self.filling + self.objects)):
            for first in range(begin, end, step):
                yield self.posts(first, min(step, end - first))


class Posts(NamedTuple):
    """Posts by row."""

    first: int
    x: Reals
    y: Reals
    time: Longs
    offsets: Longs
    keywords: NDArray[np.int32]  # numbers of the corpus

    def table(self) -> pa.RecordBatch:
        """OBJECTS."""
        number = np.arange(self.first, self.first + len(self.x))
        words = word_hashes(CORPUS)[self.keywords]
        words = words[np.lexsort((words, rows_of(self.offsets)))]
        columns = [
            pa.array(number), pa.array(self.time), pa.array(self.time), pa.array(self.x),
            pa.array(self.y), numbered("o", number),
            list_column(self.offsets, words, OBJECTS.field("words").type),
        ]  # fmt: skip
        return pa.RecordBatch.from_arrays(columns, schema=OBJECTS)


def controls(load: Load, which: Longs) -> pa.RecordBatch:
    """Some of the subscriptions, as an index takes them."""
    n = len(which)
    region = KIND.schema.field("region").type
    given = {
        "pos": pa.array(np.arange(n)),
        "time": pa.array(load.begun[which]),
        "flags": pa.array(np.full(n, BBOX | REPORTS | CONJUNCTION, np.int32)),
        "id": numbered("s", which),
        "region": list_column(offsets_of(np.full(n, 4)), load.boxes[which].ravel(), region),
        "k": pa.array(np.full(n, load.k)),
        "window": pa.array(np.full(n, load.window_ms)),
        "every": pa.array(np.full(n, load.every_ms)),
    }
    return filled_up(pa.RecordBatch.from_pydict(given), KIND.schema)
