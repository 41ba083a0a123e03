"""What `last` of a `terms` subscription finds: the words of objects that its moments will count."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.base import boxes_by
from nearcast.kernels.hashing import word_hash
from nearcast.kinds.answers import regions_of
from nearcast.kinds.firsts import First, FirstResults, Past, queries_of
from nearcast.kinds.terms.answers import keywords_of
from nearcast.objects.base import ObjectStore
from nearcast.wire.tables import NEVER, lists, numbers

__all__ = ["CountedLater"]

Longs = NDArray[np.int64]
Words = NDArray[np.uint64]


class CountedLater(FirstResults):
    """Nothing is reported at once: what is found counts in the moments that it is young enough for.

    A part has one entry for each word of each object.
    """

    def search(
        self, store: ObjectStore, lasts: pa.RecordBatch, before: Longs, /, shards: int
    ) -> list[Past]:
        """The words of objects inside the regions, but for those that do not count."""
        del shards  # what is found does not depend on others
        first_moment = numbers(lasts["time"]) + numbers(lasts["every"])
        young = first_moment - numbers(lasts["window"])
        queries = queries_of(lasts, before)
        queries = queries._replace(after=np.maximum(queries.after, young))
        found = store.within(queries, regions_of(lasts), np.zeros(lasts.num_rows, np.int64))
        objects = store.rows(found.handles)
        sizes = np.diff(objects.word_offsets)
        texts = _texts(store, found.handles, objects.word_offsets, objects.words)
        exclude = lists(lasts["exclude"], np.uint64)
        parts = []
        for n in range(lasts.num_rows):
            rows = slice(found.offsets[n], found.offsets[n + 1])
            some = slice(objects.word_offsets[rows.start], objects.word_offsets[rows.stop])
            words = objects.words[some]
            unwanted = exclude[1][exclude[0][n] : exclude[0][n + 1]]
            kept = ~np.isin(words, unwanted)
            time = np.repeat(objects.time[rows], sizes[rows])[kept]
            held = [texts[word] for word in words[kept].tolist()]
            parts.append(Past(time.tobytes(), b"", b"", [msgspec.msgpack.encode(held)]))
        return parts

    def places(self, lasts: pa.RecordBatch) -> NDArray[np.float64]:
        """The outer boxes of the regions."""
        return boxes_by(lasts)[1]

    def begin(self, row: dict[str, Any], parts: list[Past]) -> First:
        """All entries; no moment has passed."""
        times = np.frombuffer(b"".join(part.time for part in parts), np.int64)
        words = [w for p in parts for w in msgspec.msgpack.decode(p.ids[0], type=list[str])]
        result = {
            "due": row["time"] + row["every"],
            "passed": NEVER,
            "since": -1,
            "ranked": 0,
            "times": times.tolist(),
            "sizes": [1] * len(times),
            "words": words,
            "texts": [],
        }
        return First(result, [])


def _texts(store: ObjectStore, handles: Longs, offsets: Longs, words: Words) -> dict[int, str]:
    """The texts of all words that objects hold, read from one object for each."""
    distinct, first = np.unique(words, return_index=True)
    some = np.unique(np.searchsorted(offsets, first, side="right") - 1)
    wanted = set(distinct.tolist())
    texts = {}
    for held in keywords_of(store, handles[some]):
        for keyword in held:
            if (word := word_hash(keyword)) in wanted:
                texts[word] = keyword
    return texts
