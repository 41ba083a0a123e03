"""Messages and subscriptions of section 8.1.1, from a corpus or a Parquet file.

A subscription is at the place of a random message and has 1 to 5 of its words, alpha at random. The
space is a plane and the farthest distance is its diagonal, as in the paper.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.kernels.hashing import hash_ids
from nearcast.kernels.ragged import gather
from nearcast.kernels.slots import CONJUNCTION, REPORTS, SUBSCRIBE
from nearcast.model.errors import NearcastError
from nearcast.model.frame import Frame, Window
from nearcast.objects.base import Objects
from nearcast.routing.skype.words import rows_at
from nearcast.wire.idf import HashedTable
from nearcast.wire.tables import TOPS, filled_up, list_column, strings
from nearcast.wire.words import hash_words
from nearcast.workload import CORPORA
from nearcast.workload.tables import numbered, word_hashes
from nearcast_bench.dskype.setting import DATA

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]

START = 1_700_000_000_000  # the first message; one per millisecond


class Messages(NamedTuple):
    """Places and words; a message has each word once."""

    x: Reals
    y: Reals
    offsets: Longs
    words: NDArray[np.uint64]  # ascending within a message


class Load(NamedTuple):
    """What comes in: the window, the messages behind it, and the run's frame."""

    objects: Objects  # the window first
    window: int
    frame: Frame

    def part(self, first: int, n: int) -> Objects:
        """Messages first, first + 1, …"""
        o, rows = self.objects, slice(first, first + n)
        words = slice(o.word_offsets[first], o.word_offsets[first + n])
        ids = slice(o.id_offsets[first], o.id_offsets[first + n])
        return Objects(
            o.x[rows], o.y[rows], o.time[rows], o.rank[rows],
            o.word_offsets[first : first + n + 1] - o.word_offsets[first], o.words[words],
            o.counts[words], o.firsts[words],
            o.id_offsets[first : first + n + 1] - o.id_offsets[first], o.id_bytes[ids],
        )  # fmt: skip


@lru_cache(maxsize=2)
def messages(data: str, n: int, seed: int) -> Messages:
    """Of a corpus, or of a file, which begins again at its end."""
    if data in CORPORA:
        corpus = CORPORA[data]
        made = corpus.objects(n, np.random.default_rng([seed, 1]))
        words, offsets = word_hashes(corpus)[made.keywords], made.offsets
        x, y = made.lon, made.lat
    else:
        x, y, offsets, words = _file(data)
        rows = np.arange(n) % max(len(x), 1)
        lengths = np.diff(offsets)[rows]
        offsets, words = gather(words, offsets[rows], lengths)
        x, y = x[rows], y[rows]
    return Messages(x, y, offsets, words[np.lexsort((words, rows_at(offsets)))])


@lru_cache(maxsize=1)
def _file(path: str) -> Messages:
    """Messages of a Parquet file: `lon`, `lat`, `keywords`."""
    if not Path(path).exists():
        raise NearcastError(f"bench dskype: no data {path!r}; give {', '.join(DATA)} or a file")
    try:
        table = pq.read_table(path, columns=["lon", "lat", "keywords"]).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise NearcastError(f"{path}: needs columns lon, lat, keywords: {error}") from None
    if not len(table):
        raise NearcastError(f"{path}: there are no messages in it")
    held = pa.concat_arrays(table["keywords"].chunks).cast(pa.list_(pa.string()))
    offsets = np.asarray(held.offsets, np.int64)
    texts = held.flatten().dictionary_encode()
    words = hash_words(texts.dictionary)[np.asarray(texts.indices)]
    rows = rows_at(offsets - offsets[0])
    order = np.lexsort((words, rows))
    words, rows = words[order], rows[order]
    new = np.append(True, (rows[1:] != rows[:-1]) | (words[1:] != words[:-1]))[: len(words)]
    counts = np.bincount(rows[new], minlength=len(held))
    x, y = (np.ascontiguousarray(table[c].to_numpy(), np.float64) for c in ("lon", "lat"))
    return Messages(x, y, np.append(0, np.cumsum(counts)), words[new])


@lru_cache(maxsize=1)
def load_of(data: str, window: int, behind: int, seed: int) -> Load:
    """A window and messages behind it; idf as fitted to all of them."""
    n = window + behind
    m = messages(data, n, seed)
    ids = numbered("o", np.arange(n))
    place = np.arange(len(m.words)) - np.repeat(m.offsets[:-1], np.diff(m.offsets))
    objects = Objects(
        m.x, m.y, START + np.arange(n), np.arange(n), m.offsets, m.words,
        np.ones(len(m.words), np.int32), place.astype(np.int32), *strings(ids),
    )  # fmt: skip
    words, df = np.unique(m.words, return_counts=True)
    maxdist = math.ceil(math.hypot(np.ptp(m.x), np.ptp(m.y))) or 1
    frame = Frame(Window(count=window), float(maxdist), HashedTable(n, words, df))
    return Load(objects, window, frame)


def controls(load: Load, first: int, n: int, k: int, seed: int) -> pa.RecordBatch:
    """TOPS of subscriptions first, first + 1, …, which begin behind the window."""
    assert load.frame.maxdist is not None
    rng, o = np.random.default_rng([seed, 2, first]), load.objects
    held = np.flatnonzero(np.diff(o.word_offsets) > 0)
    rows = held[rng.integers(0, len(held), n)]
    offsets, words = gather(o.words, o.word_offsets[rows], np.diff(o.word_offsets)[rows])
    order = np.lexsort((rng.random(len(words)), rows_at(offsets)))
    lengths = np.minimum(np.diff(offsets), rng.integers(1, 5, n, endpoint=True))
    own, chosen = gather(words[order], offsets[:-1], lengths)
    given = {
        "pos": pa.array(np.arange(n)),
        "op": pa.array(np.full(n, SUBSCRIBE, np.uint8)),
        "time": pa.array(np.full(n, int(o.time[load.window]))),
        "flags": pa.array(np.full(n, REPORTS | CONJUNCTION, np.int32)),
        "id": numbered("s", np.arange(first, first + n)),
        "x": pa.array(o.x[rows]),
        "y": pa.array(o.y[rows]),
        "k": pa.array(np.full(n, k)),
        "keywords": list_column(own, chosen, TOPS.field("keywords").type),
        "alpha": pa.array(np.round(rng.random(n), 6)),
        "maxdist": pa.array(np.full(n, load.frame.maxdist)),
    }
    return filled_up(pa.RecordBatch.from_pydict(given), TOPS)


def id_hashes(table: pa.RecordBatch) -> NDArray[np.uint64]:
    """Hashes of ids."""
    offsets, data = strings(table["id"])
    return hash_ids(data, offsets)
