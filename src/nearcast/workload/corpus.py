"""A seeded model of a geo-tagged text stream: places, words, and how words depend on places."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from nearcast.workload.dialect import Dialects
from nearcast.workload.names import pseudo_words
from nearcast.workload.places import Bounds, Places, grid_cells, units_a_metre
from nearcast.workload.powerlaw import PowerLaw
from nearcast.workload.ragged import Flags, Floats, Ids, Longs, make_distinct, offsets_of, rows_of


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """Objects as a struct of arrays: n positions and a list of distinct keyword ids each."""

    lon: Floats
    lat: Floats
    offsets: Longs
    keywords: Ids

    def __len__(self) -> int:
        return len(self.lon)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The parameters of the model; equal corpora and equal generators give equal objects.

    Words follow a Zipf-Mandelbrot law over ``vocabulary`` ranks; an object holds 1 + Poisson
    distinct words, ``mean_keywords`` on average. Places are ``clusters`` Gaussians whose weights
    fall with ``cluster_exponent`` and whose widths vary around ``spread_m`` metres, plus a uniform
    ``background`` share. Each of ``tiles`` x ``tiles`` regions re-ranks a ``locality`` share of
    the vocabulary. With ``topics``, an object has one of them, and a ``topical`` share of its words
    are of that topic: words of about the same frequency belong to different topics, so that which
    words meet changes, but hardly how often each occurs. ``cardinality`` is the published size of
    the data set, for a workload of full size.
    """

    name: str
    vocabulary: int
    mean_keywords: float
    bounds: Bounds
    cardinality: int
    seed: int
    exponent: float = 1.0
    shift: float = 2.7
    clusters: int = 2000
    cluster_exponent: float = 0.7
    spread_m: float = 8_000.0
    background: float = 0.1
    tiles: int = 8
    locality: float = 0.3
    topics: int = 0
    topical: float = 0.0
    planar: bool = False
    names: tuple[str, ...] = ()
    centres: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        minx, miny, maxx, maxy = self.bounds
        if not (minx < maxx and miny < maxy):
            raise ValueError(f"{self.name}: bounds must be minx < maxx and miny < maxy")
        if not 1.0 <= self.mean_keywords <= self.vocabulary / 4:
            raise ValueError(f"{self.name}: mean_keywords must lie in 1..vocabulary/4")
        if self.names and len(self.names) != self.vocabulary:
            raise ValueError(f"{self.name}: names must hold one word for each of the vocabulary")
        if not (0.0 <= self.background <= 1.0 and 0.0 <= self.locality <= 1.0):
            raise ValueError(f"{self.name}: background and locality are shares in 0..1")

    def objects(self, n: int, rng: np.random.Generator) -> Objects:
        """``n`` objects. Draw long streams chunk by chunk: memory is that of one call."""
        lon, lat, tile = self.places(n, rng)
        # Capped far above any mean in use, so that short rows stay cheap to keep distinct.
        counts = 1 + np.minimum(rng.poisson(self.mean_keywords - 1.0, n), self.vocabulary // 2 - 1)
        topic = rng.integers(0, self.topics, n) if self.topics else None
        offsets, keywords = self.terms(counts.astype(np.int64), tile, rng, topic)
        return Objects(lon, lat, offsets, keywords)

    def places(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Longs]:
        """``n`` positions (6 decimals) and the tile whose word use holds there."""
        return _tables(self)[0].draw(n, rng)

    def tiles_at_random(self, n: int, rng: np.random.Generator) -> Longs:
        """``n`` tiles as frequent as among objects: for words independent of a place."""
        weights = _tables(self)[0].tile_weights()
        return rng.choice(len(weights), n, p=weights / weights.sum())

    def terms(
        self, counts: Longs, tile: Longs, rng: np.random.Generator, topic: Longs | None = None
    ) -> tuple[Longs, Ids]:
        """For each row ``counts`` distinct keywords as used in ``tile``: offsets and ids."""
        dialects = _tables(self)[1]
        offsets = offsets_of(counts)
        rows = rows_of(offsets)

        def draw(rows: Longs) -> Ids:
            ranks = dialects.law.draw(len(rows), rng)
            if topic is not None:
                ranks = self._on_topic(ranks, topic[rows], rng)
            return dialects.words(ranks, tile[rows])

        keywords = draw(rows)
        make_distinct(keywords, offsets, lambda indexes: draw(rows[indexes]))
        return offsets, keywords

    def _on_topic(self, ranks: Longs, topic: Longs, rng: np.random.Generator) -> Longs:
        """Some of the ranks moved to the one of their topic among as many neighbours as there are
        topics. The most frequent words, fewer than topics, belong to none."""
        own = ranks - ranks % self.topics + topic
        some = (rng.random(len(ranks)) < self.topical) & (ranks >= self.topics)
        return np.where(some & (own < self.vocabulary), own, ranks)

    def words(self, ids: Ids) -> pa.StringArray:
        """The keywords with these ids, as text."""
        if self.names:
            return pa.array(self.names, pa.string()).take(pa.array(ids))
        return pseudo_words(ids, self.vocabulary)

    def frequencies(self) -> Floats:
        """The share of every keyword among all keyword uses, float64[vocabulary]."""
        places, dialects = _tables(self)
        return dialects.frequencies(places.tile_weights())

    def frequent(self, ids: Ids, share: float = 0.01) -> Flags:
        """Which of ``ids`` are among the ``share`` most frequent keywords of the whole corpus."""
        return _top(self, share)[ids]

    def infrequent(self, share: float = 0.01) -> Ids:
        """All keywords but the ``share`` most frequent, ascending."""
        return np.flatnonzero(~_top(self, share)).astype(np.int32)


@lru_cache(maxsize=16)
def _tables(corpus: Corpus) -> tuple[Places, Dialects]:
    """What a corpus derives from its seed once: the clusters and the regions' rotations."""
    rng = np.random.default_rng(corpus.seed)
    minx, miny, maxx, maxy = corpus.bounds
    n = len(corpus.centres) or corpus.clusters
    if corpus.centres:
        x, y = (np.array(values, dtype=np.float64) for values in zip(*corpus.centres, strict=True))
    else:
        x, y = rng.uniform(minx, maxx, n), rng.uniform(miny, maxy, n)
    east, north = units_a_metre(corpus.planar, y)
    spread = corpus.spread_m * rng.lognormal(0.0, 0.6, n)
    weights = PowerLaw(n, corpus.cluster_exponent).probabilities()
    cumulative = np.cumsum(weights)
    cumulative[-1] = 1.0
    tile = grid_cells(corpus.bounds, corpus.tiles, x, y)
    places = Places(
        corpus.bounds, corpus.tiles, corpus.background, x, y, spread * east, spread * north,
        cumulative, tile,
    )  # fmt: skip
    law = PowerLaw(corpus.vocabulary, corpus.exponent, corpus.shift)
    per_mille = round(corpus.locality * 1000)
    local_words = max(1, corpus.vocabulary * per_mille // 1000)
    shifts = rng.integers(0, local_words, corpus.tiles * corpus.tiles)
    return places, Dialects(law, per_mille, shifts)


@lru_cache(maxsize=4)
def _top(corpus: Corpus, share: float) -> Flags:
    frequencies = corpus.frequencies()
    top = np.zeros(corpus.vocabulary, dtype=np.bool_)
    count = int(corpus.vocabulary * share)
    if count:
        top[np.argpartition(frequencies, -count)[-count:]] = True
    return top
