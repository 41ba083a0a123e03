"""Asks made from posts (SSTD 7.1): a place, words of the same post, a region, a period, k.

An ask is one query. Searches take asks and a store; `Checked` says what a plain scan finds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from nearcast.model.region import BBOX
from nearcast.objects import ObjectStore
from nearcast.objects.base import Centres, Found, Queries, Regions, WordCounts
from nearcast_bench.sstd.source import CHUNK, Longs, Posts, Reals, Source, Words, joined

HOUR_MS = 3_600_000
SPAN_HOURS = 168  # that posts stand for: the longest period of the paper
AREA, AREAS = 1e-4, (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # of the global space: 0.0001% to 1%
KEYWORDS = (1, 2, 3)
K, KS = 10, (10, 20, 30, 40)
HOURS, PERIODS = 72, (24, 72, 120, 168)
RANGE, NEAREST, TERMS = "range", "knn", "terms"
_ALL = 2**60
_CHUNKS = 20  # that asks are made from
_NOT_EXCLUDED = np.zeros(2, np.int64), np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Asks:
    """Places with words each, and what is asked there."""

    x: Reals
    y: Reals
    words: Words  # [n, most]: of one post each
    bounds: tuple[float, float, float, float]
    now: int  # asks see the period up to it
    area: float = AREA
    k: int = K
    hours: float = HOURS
    keywords: int = 1  # of the words, so many are asked for

    def __len__(self) -> int:
        return len(self.x)

    def but(self, **values: Any) -> Asks:
        """The same with other parameters."""
        return replace(self, **values)

    def first(self, n: int) -> Asks:
        """The first n of them."""
        return replace(self, x=self.x[:n], y=self.y[:n], words=self.words[:n])

    def wanted(self, i: int) -> Words:
        """The words that an ask has."""
        return self.words[i, : self.keywords]

    def queries(self, i: int, with_words: bool = True) -> Queries:
        """When, and which words."""
        words = self.wanted(i)[: self.keywords * with_words]
        return Queries(
            np.array([self.now - round(self.hours * HOUR_MS)]), np.array([self.now]),
            np.array([_ALL]), np.array([0, len(words)]), np.ascontiguousarray(words),
            np.zeros(2, np.int64), np.empty(0, np.uint64), np.array([True]),
        )  # fmt: skip

    def box(self, i: int) -> Reals:
        """A box of a share of the whole area around the place."""
        west, south, east, north = self.bounds
        w, h = (east - west) * self.area**0.5 / 2, (north - south) * self.area**0.5 / 2
        return np.array([self.x[i] - w, self.y[i] - h, self.x[i] + w, self.y[i] + h])

    def region(self, i: int) -> Regions:
        """The box as a region."""
        none = np.zeros(2, np.int64)
        return Regions(np.array([BBOX]), np.array([0, 4]), self.box(i), none, np.empty(0))

    def centre(self, i: int) -> Centres:
        """The place as a centre."""
        return Centres(self.x[i : i + 1], self.y[i : i + 1], np.array([self.k]))


def asks_from(source: Source, posts: int, count: int, now: int, seed: int, most: int = 3) -> Asks:
    """Asks at the places of posts that are stored (the first `posts` of the source)."""
    rng = np.random.default_rng([seed, 77])
    chunks = -(-posts // CHUNK)
    chosen = np.sort(rng.choice(chunks, min(chunks, _CHUNKS), replace=False)).tolist()
    some = joined([source.chunk(c, min(CHUNK, posts - c * CHUNK)) for c in chosen])
    fit = np.flatnonzero(np.diff(some.offsets) >= most)
    rows = fit[rng.integers(len(fit), size=count)]
    words = np.empty((count, most), np.uint64)
    for i, row in enumerate(rows.tolist()):
        words[i] = rng.permutation(some.words[some.offsets[row] : some.offsets[row + 1]])[:most]
    return Asks(some.x[rows], some.y[rows], words, source.bounds, now)


Answer = Found | WordCounts
Search = Callable[[ObjectStore, Asks, int], Answer]


def within(s: ObjectStore, a: Asks, i: int) -> Found:
    """SRQ."""
    return s.within(a.queries(i), a.region(i), np.zeros(1, np.int64))


def nearest(s: ObjectStore, a: Asks, i: int) -> Found:
    """SKQ."""
    return s.nearest(a.queries(i), a.centre(i))


def terms(s: ObjectStore, a: Asks, i: int) -> WordCounts:
    """STQ: all words of the period and region, no `where`."""
    return s.word_counts(a.queries(i, False), a.region(i), np.array([a.k]), *_NOT_EXCLUDED)


SEARCHES: dict[str, Search] = {RANGE: within, NEAREST: nearest, TERMS: terms}


class Times(NamedTuple):
    """What asks took one by one, and what they said."""

    wall: Reals  # [passes, asks], milliseconds
    cpu: Reals
    found: Longs
    examined: Longs
    checksum: int

    def figures(self) -> dict[str, float | int | str]:
        """Medians and 99th percentiles: of the least of each ask's passes, and of the first."""
        out: dict[str, float | int | str] = {}
        for name, took in (
            ("", self.wall.min(axis=0)),
            ("first_", self.wall[0]),
            ("cpu_", self.cpu.min(axis=0)),
        ):
            out[f"{name}median_ms"] = round(float(np.percentile(took, 50)), 3)
            out[f"{name}p99_ms"] = round(float(np.percentile(took, 99)), 3)
        return out | {
            "mean_ms": round(float(self.cpu.min(axis=0).mean()), 3),
            "found": round(float(self.found.mean()), 1),
            "examined": round(float(self.examined.mean()), 1),
            "asks": len(self.found),
            "checksum": f"{self.checksum:016x}",
        }


def timed_asks(store: ObjectStore, what: str, asks: Asks, passes: int = 3) -> Times:
    """Each ask by itself, all of them `passes` times in turn: between two passes of one ask
    lie all others, so caches are as they are between asks."""
    search = SEARCHES[what]
    wall, cpu = np.empty((passes, len(asks))), np.empty((passes, len(asks)))
    found, examined = np.empty(len(asks), np.int64), np.empty(len(asks), np.int64)
    total = 0
    for n in range(passes):
        for i in range(len(asks)):
            started, busy = time.perf_counter_ns(), time.thread_time_ns()
            answer = search(store, asks, i)
            cpu[n, i] = (time.thread_time_ns() - busy) / 1e6
            wall[n, i] = (time.perf_counter_ns() - started) / 1e6
            if n == 0:
                found[i], examined[i] = answer.offsets[-1], answer.examined
                total = (total * 31 + checksum(answer)) % 2**64
    return Times(wall, cpu, found, examined, total)


def checksum(answer: Answer) -> int:
    """The same for the same answer: ranks in their order, or words with their counts."""
    columns = (answer.words, answer.counts) if isinstance(answer, WordCounts) else (answer.rank,)
    total = 0
    for column in columns:
        place = np.arange(1, len(column) + 1, dtype=np.uint64)
        with np.errstate(over="ignore"):
            total = total * 1_000_003 + int((column.astype(np.uint64) * place).sum())
    return total % 2**64


def batches(source: Source, posts: int, hours: float) -> Iterator[tuple[Posts, Longs]]:
    """Posts with times that spread evenly over the hours, chunk by chunk."""
    for first in range(0, posts, CHUNK):
        n = min(CHUNK, posts - first)
        times = ((np.arange(first, first + n) + 1) * (hours * HOUR_MS / posts)).astype(np.int64)
        yield source.chunk(first // CHUNK, n), times
