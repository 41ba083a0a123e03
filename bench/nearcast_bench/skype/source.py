"""Messages and subscriptions of the experiments: TWEETS-, GN-, YELP-like, or those of a file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.model.errors import NearcastError
from nearcast.workload import CORPORA, Corpus, Objects, Subscriptions
from nearcast.workload.ragged import expand, offsets_of, rows_of
from nearcast.workload.top_queries import Words, top_subscriptions

__all__ = ["Source", "source_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Where messages come from: drawn from a corpus, or taken from a pool in its order."""

    name: str
    corpus: Corpus
    pool: Objects | None = None

    def messages(self, n: int, rng: np.random.Generator) -> Objects:
        """So many; a pool begins again at its end."""
        if self.pool is None:
            return self.corpus.objects(n, rng)
        rows = (int(rng.integers(len(self.pool))) + np.arange(n)) % len(self.pool)
        return taken(self.pool, rows)

    def subscriptions(
        self,
        n: int,
        rng: np.random.Generator,
        k: int,
        keywords: tuple[int, int],
        words: Words = "message",
    ) -> Subscriptions:
        """So many, of random messages (section 8.1.1)."""
        return top_subscriptions(self.corpus, n, rng, k, keywords, words, self.pool)


def taken(pool: Objects, rows: np.ndarray) -> Objects:
    """Some messages of a pool, in this order."""
    counts = np.diff(pool.offsets)[rows]
    words = pool.keywords[expand(pool.offsets[rows], counts)]
    return Objects(pool.lon[rows], pool.lat[rows], offsets_of(counts), words)


def source_of(name: str) -> Source:
    """A corpus by its name, or the path of a Parquet file of messages."""
    if name in CORPORA:
        return Source(name, CORPORA[name])
    if not Path(name).exists():
        known = ", ".join(n for n in CORPORA if n.startswith("skype"))
        raise NearcastError(f"bench skype: no data {name!r}; give {known} or a file")
    return _file(name)


@lru_cache(maxsize=1)
def _file(path: str) -> Source:
    """Messages of a Parquet file: `lon`, `lat`, `keywords`; those without a keyword are left out.

    A keyword counts once in a message, at its first place.
    """
    try:
        table = pq.read_table(path, columns=["lon", "lat", "keywords"]).combine_chunks()
        held = pa.concat_arrays(table["keywords"].chunks).cast(pa.list_(pa.string()))
        lon, lat = (np.ascontiguousarray(table[c].to_numpy(), np.float64) for c in ("lon", "lat"))
    except (pa.ArrowException, OSError) as error:
        raise NearcastError(f"{path}: needs columns lon, lat, keywords: {error}") from None
    texts = held.flatten().dictionary_encode()
    words = np.asarray(texts.indices, np.int32)
    offsets = np.asarray(held.offsets, np.int64)
    rows = rows_of(offsets - offsets[0])
    first = np.unique(rows.astype(np.int64) << 32 | words, return_index=True)[1]
    kept = np.sort(first)
    counts = np.bincount(rows[kept], minlength=len(held))
    some = np.flatnonzero(counts)
    if not len(some):
        raise NearcastError(f"{path}: no message in it has a keyword")
    lon, lat = lon[some], lat[some]
    names = tuple(texts.dictionary.to_pylist())
    pool = Objects(lon, lat, offsets_of(counts[some].astype(np.int64)), words[kept])
    edge = 1e-6  # bounds of one place, too, have a width
    corpus = Corpus(
        name=Path(path).name, vocabulary=len(names), mean_keywords=1.0,
        bounds=(lon.min() - edge, lat.min() - edge, lon.max() + edge, lat.max() + edge),
        cardinality=len(pool), seed=0, names=names,
    )  # fmt: skip
    return Source(path, corpus, pool)
