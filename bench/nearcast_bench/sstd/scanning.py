"""What a plain scan of all posts finds, while they pass: the oracle of stores of any size."""

from __future__ import annotations

from collections import Counter

import numpy as np

from nearcast.model.errors import NearcastError
from nearcast.model.space import GEOGRAPHIC_CODE, distance
from nearcast.objects import ObjectStore
from nearcast_bench.sstd.asking import (
    HOUR_MS,
    NEAREST,
    RANGE,
    TERMS,
    Asks,
    nearest,
    terms,
    within,
)
from nearcast_bench.sstd.source import Longs, Posts


class Scanned:
    """The answers of some asks, from posts one chunk after the other, in plain NumPy."""

    def __init__(self, asks: dict[str, list[Asks]], count: int) -> None:
        """The first `count` asks of each kind and setting."""
        self._asks = asks
        self._count = count
        self._ranks: dict[tuple[int, int], list[int]] = {}
        self._near: dict[tuple[int, int], list[tuple[float, int]]] = {}
        self._words: dict[tuple[int, int], Counter[int]] = {}

    def look_at(self, posts: Posts, times: Longs, first: int) -> None:
        """Some more posts; `first`: the rank of the first."""
        rows_of_word: dict[bytes, Longs] = {}
        owner = np.repeat(np.arange(len(posts.x)), np.diff(posts.offsets))
        for kind, settings in self._asks.items():
            for n, asks in enumerate(settings):
                begin = asks.now - round(asks.hours * HOUR_MS)
                period = (begin < times) & (times <= asks.now)
                for i in range(min(self._count, len(asks))):
                    held = period
                    if kind != TERMS:
                        key = asks.words[i].tobytes()
                        if key not in rows_of_word:
                            mask = np.ones(len(posts.x), bool)
                            for word in asks.words[i]:
                                has = np.zeros(len(posts.x), bool)
                                has[owner[posts.words == word]] = True
                                mask &= has
                            rows_of_word[key] = mask
                        held = period & rows_of_word[key]
                    if kind == NEAREST:
                        self._nearer(n, i, asks, posts, np.flatnonzero(held), first)
                        continue
                    west, south, east, north = asks.box(i)
                    held = held & (west <= posts.x) & (posts.x <= east)
                    held &= (south <= posts.y) & (posts.y <= north)
                    rows = np.flatnonzero(held)
                    if kind == RANGE:
                        self._ranks.setdefault((n, i), []).extend((rows + first).tolist())
                    else:
                        words, counts = np.unique(posts.some(rows).words, return_counts=True)
                        counted = dict(zip(words.tolist(), counts.tolist(), strict=True))
                        self._words.setdefault((n, i), Counter()).update(counted)

    def _nearer(
        self, n: int, i: int, asks: Asks, posts: Posts, rows: Longs, first: int
    ) -> None:
        x, y = float(asks.x[i]), float(asks.y[i])
        best = self._near.setdefault((n, i), [])
        for row in rows.tolist():
            px, py = float(posts.x[row]), float(posts.y[row])
            best.append((distance(GEOGRAPHIC_CODE, x, y, px, py), first + row))
        best.sort()
        del best[asks.k :]

    def compare(self, store: ObjectStore) -> int:
        """Raise unless the store says the same; how many answers were compared."""
        compared = 0
        for kind, settings in self._asks.items():
            for n, asks in enumerate(settings):
                for i in range(min(self._count, len(asks))):
                    if kind == RANGE:
                        same = within(store, asks, i).rank.tolist() == self._ranks.get((n, i), [])
                    elif kind == NEAREST:
                        ranks = [rank for _, rank in self._near.get((n, i), [])]
                        same = nearest(store, asks, i).rank.tolist() == ranks
                    else:
                        same = self._same_terms(n, i, asks, store)
                    if not same:
                        raise NearcastError(f"bench: {store.name}, {kind}: not what the scan finds")
                    compared += 1
        return compared

    def _same_terms(self, n: int, i: int, asks: Asks, store: ObjectStore) -> bool:
        counts = self._words.get((n, i), Counter())
        least = min((c for _, c in counts.most_common(asks.k)), default=0)
        right = sorted(((w, c) for w, c in counts.items() if c >= least), key=lambda p: (-p[1], p[0]))
        got = terms(store, asks, i)
        return right == list(zip(got.words.tolist(), got.counts.tolist(), strict=True))
