"""Objects and knn subscriptions of DkM-SKS section 5.1: generated, or from a file of places."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.kinds import KINDS
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.wire.columns import decode_columns
from nearcast.wire.decode import no_collector
from nearcast.wire.tables import ObjectColumns, object_columns
from nearcast.workload.corpora import PLACE, TWITTER
from nearcast.workload.events import (
    START_MS,
    batch,
    points,
    publish_events,
    subscribe_events,
    unsubscribe_events,
)
from nearcast.workload.subscriptions import at_most, knn_subscriptions

_CHUNK = 250_000
_MOST_WORDS = 5
Part = Callable[[pa.Array], NDArray[np.bool_]]  # which ids belong to it


def everything(ids: pa.Array) -> NDArray[np.bool_]:
    """The whole."""
    return np.ones(len(ids), bool)


_CORPORA = {"place": PLACE, "twitter": TWITTER}


class Source:
    """A stream of objects, and subscriptions at places and with words of such objects."""

    def __init__(self, workload: str, seed: int, data: str | None = None) -> None:
        self._querying, self._posting, self._rest = np.random.default_rng(seed).spawn(3)
        self._corpus = _CORPORA[workload]
        self._file = _Places(Path(data)) if data else None
        self.name = Path(data).stem if data else workload
        self._objects = 0  # so far
        self._subscriptions = 0
        self._deleted: set[int] = set()

    def objects(self, n: int) -> ObjectColumns:
        """The next n objects, a millisecond apart."""
        times = np.arange(START_MS + 1 + self._objects, START_MS + 1 + self._objects + n)
        if self._file:
            events = self._file.publishes(self._objects, n, times)
        else:
            objects = self._corpus.objects(n, self._posting)
            events = publish_events(self._corpus, objects, self._objects, times)
        self._objects += n
        return object_columns(decode_columns(events, Space.GEOGRAPHIC, KINDS).objects)

    def subscriptions(
        self, n: int, k_max: int, part: Part = everything
    ) -> Iterator[pa.RecordBatch]:
        """n subscriptions before all objects, as BALLS; those of one part of them."""
        for first in range(0, n, _CHUNK):
            yield self.insertions(min(_CHUNK, n - first), k_max, START_MS, part)

    def insertions(self, n: int, k_max: int, now: int, part: Part = everything) -> pa.RecordBatch:
        """n more subscriptions, as BALLS; those of one part of them."""
        times = np.full(n, now)
        if self._file:
            events = self._file.subscribes(n, k_max, self._subscriptions, times, self._querying)
        else:
            queried = knn_subscriptions(self._corpus, n, k_max, self._querying)
            events = subscribe_events(self._corpus, queried, self._subscriptions, times)
        self._subscriptions += n
        if part is not everything:
            events = events.filter(pa.array(part(events["id"])))
        with no_collector():
            return decode_columns(events, Space.GEOGRAPHIC, KINDS).of(KINDS["knn"])

    def deletions(self, n: int, among: int, now: int) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        """(BALLS, numbers) of n of the first `among` subscriptions, each deleted once."""
        left = [i for i in self._rest.integers(0, among, 4 * n).tolist() if i not in self._deleted]
        chosen = np.array(sorted(set(left))[:n], np.int64)
        self._deleted.update(chosen.tolist())
        events = unsubscribe_events(chosen, np.full(len(chosen), now))
        return decode_columns(events, Space.GEOGRAPHIC, KINDS).of(KINDS["knn"]), chosen


def _as_text(word: str) -> str:
    """A keyword as it stands in the `where` of a query's JSON; quoted only if it has to be."""
    if word.isascii() and word.isalnum() and not word.isupper():  # AND, OR, NOT are operators
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return json.dumps(f'"{escaped}"')[1:-1]


def _offsets(words: pa.ListArray) -> pa.Array:
    """Offsets into `words.flatten()`, which begins at the first list."""
    return pc.subtract(words.offsets, words.offsets[0])


class _Places:
    """A Parquet file of places: `lon`, `lat`, `keywords`."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise NearcastError(f"{path}: there is no such file")
        table = pq.read_table(path, columns=["lon", "lat", "keywords"]).combine_chunks()
        self._x = table["lon"].to_numpy().astype(np.float64)
        self._y = table["lat"].to_numpy().astype(np.float64)
        words = table["keywords"].combine_chunks()
        if isinstance(words, pa.ChunkedArray):
            words = words.chunk(0)
        coded = words.flatten().cast(pa.string()).dictionary_encode()
        self._words = pa.ListArray.from_arrays(_offsets(words), coded)
        # Each word of the file is written once as it stands in the JSON of a query.
        self._quoted = pa.array([_as_text(word) for word in coded.dictionary.to_pylist()])

    def publishes(self, first: int, n: int, times: NDArray[np.int64]) -> pa.RecordBatch:
        """The next rows of the file as publishes, from the beginning again at its end."""
        rows = np.arange(first, first + n) % len(self._x)
        return batch(
            n,
            op=pa.array(["publish"] * n),
            id=pa.array([f"o{i}" for i in range(first, first + n)]),
            time=pa.array(times),
            at=points(self._x[rows], self._y[rows]),
            keywords=self._words.take(pa.array(rows)).cast(pa.list_(pa.string())),
        )

    def subscribes(
        self,
        n: int,
        k_max: int,
        first: int,
        times: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> pa.RecordBatch:
        """Subscriptions at random rows, with at most five of their words."""
        rows = rng.integers(0, len(self._x), n)
        held = self._words.take(pa.array(rows))
        every = np.arange(len(held.flatten()), dtype=np.int32)
        offsets, kept = at_most(_MOST_WORDS, np.asarray(held.offsets, np.int64), every, rng)
        quoted = pa.ListArray.from_arrays(
            pa.array(offsets.astype(np.int32)), self._quoted.take(held.flatten().indices.take(kept))
        )
        at = points(self._x[rows], self._y[rows]).cast(pa.list_(pa.string()))
        k = pa.array(rng.integers(1, k_max, n, endpoint=True)).cast(pa.string())
        queries = pc.binary_join_element_wise(
            '{"kind":"knn","at":[', pc.binary_join(at, ","), '],"k":', k,
            ',"where":"', pc.binary_join(quoted, " OR "), '"}', "",
        )  # fmt: skip
        return batch(
            n,
            op=pa.array(["subscribe"] * n),
            id=pa.array([f"s{i}" for i in range(first, first + n)]),
            time=pa.array(times),
            query=queries,
        )
