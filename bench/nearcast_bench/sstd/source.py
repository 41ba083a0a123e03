"""Posts like those of SSTD's experiments (section 7.1, 7.2): TW14-like, Uni, Gau, or from a file.

A chunk of posts follows from the seed and its number alone, so that any of them can be made again:
queries are made from posts before the store is loaded, and nothing has to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.model.errors import NearcastError
from nearcast.objects.base import Objects
from nearcast.routing import Sample
from nearcast.wire.tables import OBJECTS, list_column
from nearcast.wire.words import hash_words
from nearcast.workload.corpus import Corpus
from nearcast.workload.ragged import expand, offsets_of, rows_of
from nearcast.workload.tables import numbered, word_hashes

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]
Words = NDArray[np.uint64]

CHUNK = 100_000  # posts made at once
TW14, UNI, GAU, FILE = "tw14", "uni", "gau", "file"
DATA = (TW14, UNI, GAU)
CORPUS = Corpus(
    name=TW14, vocabulary=800_000, mean_keywords=10.0, bounds=(-124.8, 24.5, -66.9, 49.4),
    cardinality=63_000_000, seed=107,
)  # fmt: skip
_ID = 11  # bytes of an id in JSON: a letter, eight digits, and quotes
_JITTER = 0.01  # degrees by which a post of the pool is moved when it comes again
SIGMA = 1.0  # of Gau, along both axes (section 7.2)


class Posts(NamedTuple):
    """Posts by row; words of a row ascend."""

    x: Reals
    y: Reals
    offsets: Longs
    words: Words

    def some(self, rows: Longs) -> Posts:
        """Some of them, in this order."""
        counts = np.diff(self.offsets)[rows]
        words = self.words[expand(self.offsets[rows], counts)]
        return Posts(self.x[rows], self.y[rows], offsets_of(counts), words)

    def objects(self, first: int, times: Longs) -> Objects:
        """As a store takes them, with ranks from `first` on; each word once."""
        n = len(self.x)
        place = np.arange(len(self.words)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return Objects(
            self.x, self.y, times, np.arange(first, first + n), self.offsets, self.words,
            np.ones(len(self.words), np.int32), place.astype(np.int32),
            np.arange(0, _ID * n + 1, _ID), _ids(first, n),
        )  # fmt: skip

    def table(self, first: int, times: Longs) -> pa.RecordBatch:
        """As a router and an index take them: OBJECTS."""
        number = np.arange(first, first + len(self.x))
        columns = [
            pa.array(number), pa.array(times), pa.array(times), pa.array(self.x), pa.array(self.y),
            numbered("o", number),
            list_column(self.offsets, self.words, OBJECTS.field("words").type),
        ]  # fmt: skip
        return pa.RecordBatch.from_arrays(columns, schema=OBJECTS)

    def sample(self) -> Sample:
        """As a plan takes them."""
        return Sample(self.x, self.y, self.offsets, self.words)


def _ids(first: int, n: int) -> NDArray[np.uint8]:
    """Ids in JSON form."""
    out = np.full((n, _ID), ord('"'), np.uint8)
    out[:, 1] = ord("o")
    rest = np.arange(first, first + n)
    for column in range(_ID - 2, 1, -1):
        rest, digit = np.divmod(rest, 10)
        out[:, column] = ord("0") + digit
    return out.ravel()


def joined(parts: list[Posts]) -> Posts:
    """All posts, one part behind the other."""
    return Posts(
        np.concatenate([p.x for p in parts]),
        np.concatenate([p.y for p in parts]),
        offsets_of(np.concatenate([np.diff(p.offsets) for p in parts])),
        np.concatenate([p.words for p in parts]),
    )


@dataclass(frozen=True, slots=True)
class Source:
    """Where posts come from."""

    name: str
    seed: int
    path: str = ""  # of a Parquet file, for FILE
    pool: int = 0  # chunks that come again and again, moved a little; 0: all are new

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The global space, of which regions of queries are a share."""
        if self.name != FILE:
            return CORPUS.bounds
        whole = _file(self.path)
        return tuple(float(f(a)) for f in (np.min, np.max) for a in (whole.x, whole.y))  # type: ignore[return-value]

    def chunk(self, number: int, n: int = CHUNK) -> Posts:
        """The first `n` posts of a chunk; a file begins again at its end."""
        if self.name == FILE:
            whole = _file(self.path)
            return whole.some(np.arange(number * CHUNK, number * CHUNK + n) % len(whole.x))
        rng = np.random.default_rng([self.seed, number])
        if self.pool:
            some = _pooled(self.name, self.seed, number % self.pool)
            x, y = (v[:n] + rng.normal(0.0, _JITTER, n) for v in (some.x, some.y))
            end = some.offsets[n]
            return Posts(x, y, some.offsets[: n + 1], some.words[:end])
        made = CORPUS.objects(n, rng)
        x, y = _placed(self.name, made.lon, made.lat, rng)
        words = word_hashes(CORPUS)[made.keywords]
        words = words[np.lexsort((words, rows_of(made.offsets)))]
        return Posts(x, y, made.offsets, words)

    def posts(self, first_chunk: int, n: int) -> Posts:
        """`n` posts from the beginning of a chunk on."""
        whole = [self.chunk(first_chunk + i) for i in range(n // CHUNK)]
        rest = [self.chunk(first_chunk + n // CHUNK, n % CHUNK)] if n % CHUNK or not n else []
        return joined([*whole, *rest])


@lru_cache(maxsize=64)
def _pooled(name: str, seed: int, number: int) -> Posts:
    return Source(name, seed).chunk(number)


def source_of(name: str, seed: int) -> Source:
    """TW14, UNI, GAU, or the path of a Parquet file of posts."""
    if name in DATA:
        return Source(name, seed)
    if not Path(name).exists():
        raise NearcastError(f"bench sstd: no data {name!r}; give {', '.join(DATA)} or a file")
    return Source(FILE, seed, name)


def _placed(name: str, x: Reals, y: Reals, rng: np.random.Generator) -> tuple[Reals, Reals]:
    """Positions as section 7.2 changes them; words stay as they are."""
    west, south, east, north = CORPUS.bounds
    if name == UNI:
        return rng.uniform(west, east, len(x)), rng.uniform(south, north, len(x))
    if name == GAU:
        made = rng.normal(0.0, SIGMA, (2, len(x)))
        return made[0] + (west + east) / 2, made[1] + (south + north) / 2
    return x, y


@lru_cache(maxsize=1)
def _file(path: str) -> Posts:
    """Posts of a Parquet file: `lon`, `lat`, `keywords`."""
    try:
        table = pq.read_table(path, columns=["lon", "lat", "keywords"]).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise NearcastError(f"{path}: needs columns lon, lat, keywords: {error}") from None
    held = pa.concat_arrays(table["keywords"].chunks).cast(pa.list_(pa.string()))
    offsets = np.asarray(held.offsets, np.int64)
    texts = held.flatten().dictionary_encode()
    words = hash_words(texts.dictionary)[np.asarray(texts.indices)]
    rows = rows_of(offsets - offsets[0])
    order = np.lexsort((words, rows))
    words, rows = words[order], rows[order]
    new = np.append(True, (rows[1:] != rows[:-1]) | (words[1:] != words[:-1]))[: len(words)]
    counts = np.bincount(rows[new], minlength=len(held))
    x, y = (np.ascontiguousarray(table[c].to_numpy(), np.float64) for c in ("lon", "lat"))
    return Posts(x, y, offsets_of(counts), words[new])
