"""Object stores by themselves: bytes per object, loading, and the time of each kind of search.

    python -m nearcast_bench.sstd.store --objects 2000000 --store curve

Objects are like TW14's (SSTD 7.1): 10 keywords on average, a vocabulary of 800,000, 72 hours.
Queries are made from objects: their place, and one of their words. One thread; every search is a
call for one query, and the first queries of each kind are compared with the scan of `--check`
objects in a store of their own, so a wrong answer is no time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nearcast.index.arena import Memory
from nearcast.model.region import BBOX
from nearcast.model.space import Space
from nearcast.objects import STORES, ObjectStore
from nearcast.objects.base import Centres, Found, Objects, Queries, Regions, Slicing, WordCounts
from nearcast.wire.tables import lists, numbers, strings
from nearcast.workload.corpus import Corpus
from nearcast.workload.tables import publish_rows

HOURS = 72
HOUR_MS = 3_600_000
TW14 = Corpus(
    name="tw14", vocabulary=800_000, mean_keywords=10.0, bounds=(-124.8, 24.5, -66.9, 49.4),
    cardinality=63_000_000, seed=107,
)  # fmt: skip
AREAS = (1e-6, 1e-4, 1e-2)  # shares of the whole area: 0.0001%, 0.01%, 1%
_CHUNK = 100_000


def objects(count: int, seed: int) -> Iterator[Objects]:
    """Objects like TW14's in the order of time, in batches."""
    rng = np.random.default_rng(seed)
    for first in range(0, count, _CHUNK):
        n = min(_CHUNK, count - first)
        times = (np.arange(first, first + n) * (HOURS * HOUR_MS / count)).astype(np.int64)
        rows = publish_rows(TW14, TW14.objects(n, rng), first, times)
        offsets, words = lists(rows["words"], np.uint64)
        place = np.arange(len(words)) - np.repeat(offsets[:-1], np.diff(offsets))
        yield Objects(
            numbers(rows["x"]),
            numbers(rows["y"]),
            times,
            np.arange(first, first + n),
            offsets,
            words,
            np.ones(len(words), np.int32),
            place.astype(np.int32),
            *strings(rows["id"]),
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """Queries made from objects: a place and a word each."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    word: NDArray[np.uint64]

    def common(self, i: int, with_word: bool) -> Queries:
        """One query over all times."""
        words = self.word[i : i + with_word]
        ends = np.array([0, len(words)])
        none = np.zeros(2, np.int64)
        return Queries(
            np.array([-1]), np.array([HOURS * HOUR_MS]), np.array([2**60]), ends, words, none,
            np.empty(0, np.uint64), np.array([True]),
        )  # fmt: skip

    def region(self, i: int, share: float) -> Regions:
        """A box of a share of the whole area around the place."""
        west, south, east, north = TW14.bounds
        w, h = (east - west) * share**0.5 / 2, (north - south) * share**0.5 / 2
        box = np.array([self.x[i] - w, self.y[i] - h, self.x[i] + w, self.y[i] + h])
        none = np.zeros(2, np.int64)
        return Regions(np.array([BBOX]), np.array([0, 4]), box, none, np.empty(0))


class Sample:
    """Objects that queries are made from, chosen while a store is loaded."""

    def __init__(self, chosen: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._chosen = chosen  # of each batch
        self._rows: list[tuple[float, float, int]] = []

    def look_at(self, o: Objects) -> None:
        """Choose some objects of a batch, and a word of each."""
        for i in self._rng.integers(len(o.time), size=self._chosen).tolist():
            words = o.words[o.word_offsets[i] : o.word_offsets[i + 1]]
            word = int(words[self._rng.integers(len(words))])
            self._rows.append((float(o.x[i]), float(o.y[i]), word))

    def asked(self, count: int) -> Asked:
        """So many queries."""
        order = self._rng.permutation(len(self._rows))[:count].tolist()
        x, y, word = zip(*(self._rows[i] for i in order), strict=True)
        return Asked(np.array(x), np.array(y), np.array(word, np.uint64))


Search = Callable[[ObjectStore, Asked, int], Found | WordCounts]
_TEN = np.array([10])


def _within(share: float, s: ObjectStore, a: Asked, i: int) -> Found:
    return s.within(a.common(i, True), a.region(i, share), np.zeros(1, np.int64))


def _words(share: float, s: ObjectStore, a: Asked, i: int) -> WordCounts:
    unwanted = np.zeros(2, np.int64), np.empty(0, np.uint64)
    return s.word_counts(a.common(i, False), a.region(i, share), _TEN, *unwanted)


def _nearest(with_word: bool, s: ObjectStore, a: Asked, i: int) -> Found:
    centres = Centres(a.x[i : i + 1], a.y[i : i + 1], _TEN)
    return s.nearest(a.common(i, with_word), centres)


def searches() -> dict[str, Search]:
    """What is measured."""
    return {
        **{f"within {share:.4%}": partial(_within, share) for share in AREAS},
        **{f"words of {share:.4%}": partial(_words, share) for share in AREAS},
        "nearest 10 with a word": partial(_nearest, True),
        "nearest 10": partial(_nearest, False),
    }


def load(store: ObjectStore, batches: Iterable[Objects], sample: Sample) -> float:
    """Add and seal all objects; seconds of the processor (others may use the machine)."""
    took = 0.0
    for batch in batches:
        sample.look_at(batch)
        start = time.process_time()
        store.add(batch)
        store.seal(int(batch.time[-1]))
        took += time.process_time() - start
    start = time.process_time()
    store.seal((HOURS + 24) * HOUR_MS)
    return took + time.process_time() - start


def checked(name: str, slicing: Slicing, count: int) -> None:
    """Compare a small store with the scan; this also compiles what is measured later."""
    both = [STORES[n](Space.GEOGRAPHIC, Memory(), slicing) for n in (name, "scan")]
    for store in both:
        sample = Sample(3, 2)
        load(store, objects(count, 1), sample)
    a = sample.asked(3)
    for what, search in searches().items():
        for i in range(len(a.x)):
            got, wanted = (search(store, a, i) for store in both)
            for column, value in wanted._asdict().items():
                if column not in ("handles", "examined"):
                    same = np.array_equal(getattr(got, column), value)
                    if not same:
                        raise AssertionError(f"{name}, {what}: {column} differs from the scan's")


def main() -> None:
    """Measure one store and print JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=2_000_000)
    parser.add_argument("--store", choices=list(STORES), default="curve")
    parser.add_argument("--slices", type=int, default=12)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--check", type=int, default=3000)
    o = parser.parse_args()
    slicing = Slicing(delta_ms=HOURS * HOUR_MS // o.slices)
    checked(o.store, slicing, o.check)
    store = STORES[o.store](Space.GEOGRAPHIC, Memory(), slicing)
    sample = Sample(-(-o.queries * _CHUNK // o.objects) + 1, o.seed + 1)
    seconds = load(store, objects(o.objects, o.seed), sample)
    report = {"store": o.store, "objects": o.objects, "slices": len(store.slices())}
    print(json.dumps({**report, "bytes": round(store.bytes / len(store), 1),
                      "objects_per_second": round(o.objects / seconds)}))  # fmt: skip
    a = sample.asked(o.queries)
    for what, search in searches().items():
        took, sizes, examined = [], [], 0
        for i in range(len(a.x)):
            start = time.perf_counter_ns()
            found = search(store, a, i)
            took.append(time.perf_counter_ns() - start)
            sizes.append(int(found.offsets[-1]))
            examined += found.examined
        median, p99 = (round(float(np.percentile(took, p)) / 1e6, 3) for p in (50, 99))
        print(json.dumps({**report, "search": what, "median_ms": median, "p99_ms": p99,
                          "found": float(np.median(sizes)), "examined": examined // len(a.x)}),
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
