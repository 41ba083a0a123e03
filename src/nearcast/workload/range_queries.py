"""The workload that range indexes are compared on: boxes with one to three words on a unit square.

The same numbers as the reference generator of the benchmark (NumPy's default generator, one seed;
its text has nine decimals, so coordinates are rounded to them). Words are Zipf over a vocabulary
whose numbers say nothing of their rank; places are clusters of normal spread and some background,
the same for queries and objects. A smaller workload is a prefix of the usual one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.kernels.slots import CONJUNCTION, REPORTS, SUBSCRIBE, UNSUBSCRIBE
from nearcast.model.region import BBOX
from nearcast.wire.tables import OBJECTS, REGIONS, list_column
from nearcast.wire.words import hash_words
from nearcast.workload.tables import controls

QUERIES, OBJECT_COUNT = 1_000_000, 200_000  # usual
SIDE_MIN, SIDE_MAX = 0.001, 0.01
SEED = 7
_VOCABULARY, _CLUSTERS, _BACKGROUND = 50_000, 200, 0.1
_MOST_WORDS = 9
_NEAR_TIE = 1e-5


@dataclass(frozen=True, slots=True)
class Queries:
    """Boxes, and the words that an object must hold all of."""

    boxes: NDArray[np.float64]  # [n, 4]: minx, miny, maxx, maxy
    words: NDArray[np.int64]  # [n, 3]: numbers of words, ascending; -1 where there are fewer


@dataclass(frozen=True, slots=True)
class Places:
    """Objects: where they are, and their words."""

    at: NDArray[np.float64]  # [n, 2]
    words: NDArray[np.int64]  # [n, 9]: numbers of words, ascending; -1 where there are fewer


@dataclass(frozen=True, slots=True)
class RangeWorkload:
    """Queries, objects, and the hashes of the words."""

    queries: Queries
    objects: Places
    hashes: NDArray[np.uint64]


class _Source:
    """The distributions; everything is drawn from one generator, in order."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        weights = 1.0 / np.arange(1, _VOCABULARY + 1) ** 1.0
        self.cdf = np.cumsum(weights / weights.sum())
        self.cdf[-1] = 1.0
        self.token = self.rng.permutation(_VOCABULARY)
        shares = 1.0 / np.arange(1, _CLUSTERS + 1) ** 0.8
        self.shares = shares / shares.sum()
        self.centres = self.rng.uniform(0.03, 0.97, size=(_CLUSTERS, 2))
        self.spread = self.rng.uniform(0.005, 0.03, size=_CLUSTERS)

    def places(self, n: int) -> NDArray[np.float64]:
        """n positions."""
        cluster = self.rng.choice(_CLUSTERS, size=n, p=self.shares)
        at = self.centres[cluster] + self.rng.normal(size=(n, 2)) * self.spread[cluster][:, None]
        anywhere = self.rng.uniform(size=(n, 2))
        away = self.rng.uniform(size=n) < _BACKGROUND
        away |= (at < 0).any(1) | (at >= 1).any(1)
        at[away] = anywhere[away]
        return at

    def words(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Distinct words for each row, drawn again until they are distinct."""
        out = np.full((len(counts), counts.max()), -1, np.int64)
        for k in np.unique(counts):
            todo = np.flatnonzero(counts == k)
            while len(todo):
                drawn = self.rng.uniform(size=(len(todo), k))
                ranks = np.searchsorted(self.cdf, drawn, side="right")
                rows = np.sort(self.token[np.minimum(ranks, _VOCABULARY - 1)], axis=1)
                distinct = (np.diff(rows, axis=1) > 0).all(1)
                out[todo[distinct], :k] = rows[distinct]
                todo = todo[~distinct]
        return out


def _nine_decimals(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is read back after each value was written with nine decimals."""
    scaled = values * 1e9
    out = np.rint(scaled) / 1e9
    near = np.abs(scaled - np.floor(scaled) - 0.5) < _NEAR_TIE  # the product itself is rounded
    out[near] = [float(f"{v:.9f}") for v in values[near]]
    return out


def _queries(source: _Source, n: int, side_max: float) -> Queries:
    centres = source.places(n)
    side = source.rng.uniform(SIDE_MIN, side_max, size=n)
    low = np.clip(centres - side[:, None] / 2, 0.0, (1.0 - side)[:, None])
    boxes = _nine_decimals(np.hstack([low, low + side[:, None]]))
    return Queries(boxes, source.words(source.rng.integers(1, 4, size=n)))


def range_workload(
    queries: int = QUERIES,
    objects: int = OBJECT_COUNT,
    side_max: float = SIDE_MAX,
    seed: int = SEED,
) -> RangeWorkload:
    """The first `queries` and `objects` of the usual workload; more are a workload of that size."""
    source = _Source(seed)
    queried = _queries(source, max(queries, QUERIES), side_max)
    n = max(objects, OBJECT_COUNT)
    at = _nine_decimals(source.places(n))
    held = source.words(source.rng.integers(3, _MOST_WORDS + 1, size=n))
    return first_of(RangeWorkload(queried, Places(at, held), word_hashes()), queries, objects)


def first_of(work: RangeWorkload, queries: int, objects: int) -> RangeWorkload:
    """The first queries and objects of a workload."""
    return RangeWorkload(
        Queries(work.queries.boxes[:queries], work.queries.words[:queries]),
        Places(work.objects.at[:objects], work.objects.words[:objects]),
        work.hashes,
    )


def more_queries(n: int, side_max: float = SIDE_MAX, seed: int = SEED) -> Queries:
    """n further queries of the same kind; words have the same ranks."""
    source = _Source(seed)
    source.rng = np.random.default_rng([seed, 1])
    return _queries(source, n, side_max)


def more_objects(n: int, seed: int = SEED, number: int = 0) -> Places:
    """n further objects of the same kind, others for every `number`."""
    source = _Source(seed)
    source.rng = np.random.default_rng([seed, 3, number])
    at = _nine_decimals(source.places(n))
    return Places(at, source.words(source.rng.integers(3, _MOST_WORDS + 1, size=n)))


def word_hashes() -> NDArray[np.uint64]:
    """The hash of each word, by number."""
    return hash_words([word_of(i) for i in range(_VOCABULARY)])


def word_of(number: int) -> str:
    """A word by its number."""
    return f"w{number:05d}"


# -- as tables ---------------------------------------------------------------------------------


def _hashed(words: NDArray[np.int64], hashes: NDArray[np.uint64], ascending: bool) -> pa.Array:
    """A column of word lists, each from one row of numbers."""
    held = words >= 0
    offsets = np.concatenate([[0], np.cumsum(held.sum(1))])
    values = np.where(held, hashes[words], np.uint64(0xFFFFFFFFFFFFFFFF))
    if ascending:
        values = np.sort(values, axis=1)
        held = np.sort(~held, axis=1) == 0
    return list_column(offsets, values[held], OBJECTS.field("words").type)


def _ids(first: int, n: int) -> pa.Array:
    return pa.array([b"%d" % i for i in range(first, first + n)], pa.large_binary())


def subscribe_table(
    queries: Queries, hashes: NDArray[np.uint64], first: int, times: NDArray[np.int64]
) -> pa.RecordBatch:
    """REGIONS that subscribe the queries, whose ids count from `first` on."""
    n = len(queries.boxes)
    return controls(
        n,
        op=pa.array(np.full(n, SUBSCRIBE, np.uint8)),
        time=pa.array(times),
        flags=pa.array(np.full(n, BBOX | REPORTS | CONJUNCTION, np.int32)),
        id=_ids(first, n),
        program=_hashed(queries.words, hashes, False),
        region=list_column(
            np.arange(0, 4 * n + 1, 4), queries.boxes.ravel(), REGIONS.field("region").type
        ),
    )


def unsubscribe_table(numbers: NDArray[np.int64], times: NDArray[np.int64]) -> pa.RecordBatch:
    """REGIONS that unsubscribe the queries of these numbers."""
    n = len(numbers)
    return controls(
        n,
        op=pa.array(np.full(n, UNSUBSCRIBE, np.uint8)),
        time=pa.array(times),
        id=pa.array([b"%d" % i for i in numbers.tolist()], pa.large_binary()),
    )


def object_table(
    objects: Places, hashes: NDArray[np.uint64], times: NDArray[np.int64], first: int = 0
) -> pa.RecordBatch:
    """OBJECTS of the places; ids count from `first` on."""
    n = len(objects.at)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.arange(n)),
            pa.array(times),
            pa.array(times),
            pa.array(objects.at[:, 0].copy()),
            pa.array(objects.at[:, 1].copy()),
            _ids(first, n),
            _hashed(objects.words, hashes, True),
        ],
        schema=OBJECTS,
    )
