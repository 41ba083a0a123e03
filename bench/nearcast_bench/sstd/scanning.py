"""What a plain scan of all posts finds, while they pass: the oracle of stores of any size."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from nearcast.model.errors import NearcastError
from nearcast.model.space import GEOGRAPHIC_CODE, distance
from nearcast.objects import ObjectStore
from nearcast.objects.base import WordCounts
from nearcast_bench.sstd.asking import (
    HOUR_MS,
    NEAREST,
    RANGE,
    SEARCHES,
    TERMS,
    Answer,
    Asks,
)
from nearcast_bench.sstd.source import Longs, Posts

Rows = tuple[tuple[int, ...], ...]


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
        rows_of_word: dict[bytes, NDArray[np.bool_]] = {}
        owner = np.repeat(np.arange(len(posts.x)), np.diff(posts.offsets))
        for kind, settings in self._asks.items():
            for n, asks in enumerate(settings):
                begin = asks.now - round(asks.hours * HOUR_MS)
                period = (begin < times) & (times <= asks.now)
                for i in range(min(self._count, len(asks))):
                    held = period
                    if kind != TERMS:
                        key = asks.wanted(i).tobytes()
                        if key not in rows_of_word:
                            mask = np.ones(len(posts.x), bool)
                            for word in asks.wanted(i):
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

    def _nearer(self, n: int, i: int, asks: Asks, posts: Posts, rows: Longs, first: int) -> None:
        x, y = float(asks.x[i]), float(asks.y[i])
        best = self._near.setdefault((n, i), [])
        for row in rows.tolist():
            px, py = float(posts.x[row]), float(posts.y[row])
            best.append((distance(GEOGRAPHIC_CODE, x, y, px, py), first + row))
        best.sort()
        del best[asks.k :]

    def answer(self, kind: str, n: int, i: int) -> Rows:
        """What ask `i` of setting `n` finds: ranks in their order; or -count, word by count."""
        if kind == RANGE:
            return tuple((rank,) for rank in self._ranks.get((n, i), []))
        if kind == NEAREST:
            return tuple((rank,) for _, rank in self._near.get((n, i), []))
        counts = self._words.get((n, i), Counter())
        k = self._asks[kind][n].k
        least = min((c for _, c in counts.most_common(k)), default=0)
        return tuple(sorted((-c, w) for w, c in counts.items() if c >= least))

    def compare(self, store: ObjectStore) -> int:
        """Raise unless the store says the same; how many answers were compared."""
        compared = 0
        for kind, settings in self._asks.items():
            for n, asks in enumerate(settings):
                for i in range(min(self._count, len(asks))):
                    if rows_of(SEARCHES[kind](store, asks, i)) != self.answer(kind, n, i):
                        raise NearcastError(f"bench: {store.name}, {kind}: not what the scan finds")
                    compared += 1
        return compared


def rows_of(answer: Answer) -> Rows:
    """The answer of a store as `Scanned.answer` has it."""
    if isinstance(answer, WordCounts):
        return tuple(zip((-answer.counts).tolist(), answer.words.tolist(), strict=True))
    return tuple((rank,) for rank in answer.rank.tolist())
