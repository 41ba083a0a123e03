"""Skype's subscriptions (section 8.1.1): a place, some words of a message, k, alpha at random.

Words of the subscription are words of the message at whose place it is (or, for figure 19, words
as frequent as a Zipf law says). The paper's space is a plane and the farthest distance there is
its `maxdist`; `farthest` says it in both spaces.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from nearcast.model.space import Space, distance
from nearcast.wire.idf import HashedTable
from nearcast.workload.corpus import Corpus, Objects
from nearcast.workload.powerlaw import PowerLaw
from nearcast.workload.ragged import (
    Ids,
    Longs,
    expand,
    make_distinct,
    offsets_of,
    rows_of,
)
from nearcast.workload.subscriptions import OR, Subscriptions
from nearcast.workload.tables import word_hashes

K = 20  # section 8.1.1
KEYWORDS = (1, 5)
Words = Literal["message", "zipf"]


def top_subscriptions(
    corpus: Corpus,
    n: int,
    rng: np.random.Generator,
    k: int = K,
    keywords: tuple[int, int] = KEYWORDS,
    words: Words = "message",
    pool: Objects | None = None,
) -> Subscriptions:
    """A random message's place, j of its words (j uniform in `keywords`), alpha uniform in [0, 1].

    A message with fewer words gives all it has. `zipf`: j words of the vocabulary, whose ranks
    follow a Zipf law of exponent 1. Messages are taken from `pool`, or drawn from the corpus.
    """
    messages = corpus.objects(n, rng) if pool is None else _sample(pool, n, rng)
    wanted = rng.integers(keywords[0], keywords[1], n, endpoint=True)
    if words == "zipf":
        law = PowerLaw(corpus.vocabulary, 1.0)
        offsets = offsets_of(np.minimum(wanted, corpus.vocabulary))
        chosen = law.draw(int(offsets[-1]), rng).astype(np.int32)
        make_distinct(chosen, offsets, lambda at: law.draw(len(at), rng).astype(np.int32))
    else:
        offsets, chosen = _some(messages.offsets, messages.keywords, wanted, rng)
    return Subscriptions(
        messages.lon,
        messages.lat,
        offsets,
        chosen,
        operator=np.full(n, OR, dtype=np.uint8),
        k=np.full(n, k, dtype=np.int64),
        alpha=np.round(rng.random(n), 6),
    )


def _sample(pool: Objects, n: int, rng: np.random.Generator) -> Objects:
    """n messages of a pool, at random, again and again if it has fewer."""
    rows = rng.integers(0, len(pool), n) if n > len(pool) else rng.permutation(len(pool))[:n]
    counts = np.diff(pool.offsets)[rows]
    words = pool.keywords[expand(pool.offsets[rows], counts)]
    return Objects(pool.lon[rows], pool.lat[rows], offsets_of(counts), words)


def _some(offsets: Longs, words: Ids, wanted: Longs, rng: np.random.Generator) -> tuple[Longs, Ids]:
    """Of row i at most `wanted[i]` words, uniformly at random, in a random order."""
    rows = rows_of(offsets)
    order = np.lexsort((rng.random(len(words)), rows))
    counts = np.minimum(np.diff(offsets), wanted)
    return offsets_of(counts), words[order[expand(offsets[:-1], counts)]]


def farthest(corpus: Corpus, space: Space = Space.GEOGRAPHIC) -> float:
    """The paper's MaxDist: the length of the diagonal of the corpus's bounds, rounded up."""
    minx, miny, maxx, maxy = corpus.bounds
    return float(math.ceil(distance(space.code, minx, miny, maxx, maxy)))


def fitted(corpus: Corpus, objects: Objects) -> HashedTable:
    """The idf table that `nearcast fit` would make of these objects, by hash of keyword."""
    df = np.bincount(objects.keywords, minlength=corpus.vocabulary)
    held = np.flatnonzero(df)
    return HashedTable(len(objects), word_hashes(corpus)[held], df[held])
