"""Continuous kNN by parts (SSTD, sections 4.2 and 6.3): queries at all workers, one merger.

Any leaf may have a nearer object, so a CKQ is at every worker. A worker sends an object to the
merger if it may enter the result. By `RADII` it knows the radius that the merger sent it last: the
merger keeps the k nearest of all, leaves out an object that is farther, and then sends that
worker its radius. By `OWN` a worker keeps the k nearest of its part, and nobody sends it anything:
what one round without an answer can do. Both are exact in object order: whatever enters the
result of all is within any radius sent before, and among the k nearest of its part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.program import satisfied
from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit
from nearcast.model.space import Space, distance
from nearcast.objects.base import Centres, Objects, Queries
from nearcast.objects.results import Best, new_best, offer, worst

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]
Words = NDArray[np.uint64]

RADII, OWN = "radii", "own"
_UNBOUNDED = 1 << 40  # objects: results have room for all k


class Offers(NamedTuple):
    """Objects that a worker sends to the merger."""

    query: Longs
    rank: Longs
    distance: Reals
    time: Longs
    looked: int  # pairs of a query and an object that were looked at


class Changes(NamedTuple):
    """What changed in results, in object order: ranks of what entered, and of what it drove out."""

    query: Longs
    entered: Longs
    left: Longs  # -1: nothing


class _Lists(NamedTuple):
    """Which queries are found by which word; those without words come last."""

    words: Words  # ascending
    offsets: Longs
    queries: Longs


class Part:
    """The CKQs at one worker."""

    def __init__(self, space: Space, queries: Queries, centres: Centres, way: str = RADII) -> None:
        self._space = space
        self._queries = Queries(*(frozen(a) for a in queries))
        self._centres = Centres(*(frozen(a) for a in centres))
        self._lists = _lists_of(self._queries)
        self._own = way == OWN
        n = len(centres.k)
        self._radius = np.full(n, np.inf)
        self._best = new_best(centres.k if self._own else np.zeros(n, np.int64), _UNBOUNDED)

    def offers(self, objects: Objects) -> Offers:
        """Which of some objects, in object order, may enter results."""
        o = objects
        query, row, far, looked = _offers(
            self._space.code, frozen(o.x), frozen(o.y), frozen(o.time), frozen(o.rank),
            frozen(o.word_offsets), frozen(o.words), self._queries, self._centres, self._lists,
            self._radius, self._best, self._own,
        )  # fmt: skip
        return Offers(query, o.rank[row], far, o.time[row], looked)

    def within(self, query: Longs, radius: Reals) -> None:
        """Radii that the merger sent: beyond them nothing of these queries is wanted."""
        self._radius[query] = radius


class Merger:
    """The results of CKQs: the k nearest of what workers offer."""

    def __init__(self, k: Longs) -> None:
        self._best = new_best(k, _UNBOUNDED)

    def take(self, offers: list[Offers]) -> tuple[Changes, list[tuple[Longs, Reals]]]:
        """Take in what workers offer of the same objects: (changes, the radii for each worker)."""
        source = np.repeat(np.arange(len(offers)), [len(o.query) for o in offers])
        query, rank, time = (
            np.concatenate([getattr(o, name) for o in offers]) for name in ("query", "rank", "time")
        )
        far = np.concatenate([o.distance for o in offers])
        order = np.lexsort((query, rank))
        taken, left = _take(self._best, query[order], far[order], rank[order], time[order])
        out = order[~taken]  # left out: their workers get the radius
        back = []
        for worker in range(len(offers)):
            who = np.unique(query[out[source[out] == worker]])
            back.append((who, self.radius(who)))
        kept = order[taken]
        return Changes(query[kept], rank[kept], left[taken]), back

    def radius(self, query: Longs) -> Reals:
        """The distance of the k-th object; infinite: there are fewer."""
        return np.array([worst(self._best, q) for q in query.tolist()], np.float64)

    def result(self, query: int) -> list[tuple[float, int]]:
        """(distance, rank) of the present result, nearest first."""
        first, size = int(self._best.offsets[query]), int(self._best.sizes[query])
        some = slice(first, first + size)
        return sorted(zip(self._best.keys[some].tolist(), self._best.ties[some].tolist()))


def _lists_of(q: Queries) -> _Lists:
    """A conjunction is found by its first word, an OR by each of its cover."""
    words, owners = [], []
    for i in range(len(q.conjunction)):
        first, last = q.program_offsets[i], q.program_offsets[i + 1]
        some = q.program[first : min(first + 1, last)]
        if not q.conjunction[i]:
            some = q.cover[q.cover_offsets[i] : q.cover_offsets[i + 1]]
        words.append(some)
        owners.append(np.full(len(some), i))
    word = np.concatenate([*words, np.empty(0, np.uint64)])
    owner = np.concatenate([*owners, np.empty(0, np.int64)]).astype(np.int64)
    order = np.argsort(word, kind="stable")
    distinct, counts = np.unique(word, return_counts=True)
    rest = np.setdiff1d(np.arange(len(q.conjunction)), owner)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return _Lists(distinct, offsets, np.concatenate([owner[order], rest]))


@njit
def _offers(
    space: int,
    x: Reals,
    y: Reals,
    time: Longs,
    rank: Longs,
    word_offsets: Longs,
    words: Words,
    q: Queries,
    c: Centres,
    lists: _Lists,
    radius: Reals,
    best: Best,
    own: bool,
) -> tuple[Longs, Longs, Reals, int]:
    """(queries, rows, distances) of what may enter results, and how many pairs were looked at."""
    found = 0
    out, rows, far = np.empty(256, np.int64), np.empty(256, np.int64), np.empty(256)
    seen = np.full(len(c.k), -1, np.int64)
    stack = np.empty(len(q.program) + 1, np.uint8)
    looked = 0
    for row in range(len(x)):
        start, stop = word_offsets[row], word_offsets[row + 1]
        for w in range(start, stop + 1):  # once more for queries without words
            if w == stop:
                lo, hi = lists.offsets[-1], len(lists.queries)
            else:
                at = np.searchsorted(lists.words, words[w])
                if at == len(lists.words) or lists.words[at] != words[w]:
                    continue
                lo, hi = lists.offsets[at], lists.offsets[at + 1]
            for j in range(lo, hi):
                i = lists.queries[j]
                if seen[i] == row:
                    continue
                seen[i] = row
                looked += 1
                d = distance(space, c.x[i], c.y[i], x[row], y[row])
                if d > radius[i] or (own and d > worst(best, i)):
                    continue
                if not (q.after[i] < time[row] and time[row] <= q.until[i]):
                    continue
                first = q.program_offsets[i]
                length = q.program_offsets[i + 1] - first
                if length and not satisfied(q.program, first, length, words, start, stop, stack):
                    continue
                if own:
                    full = best.sizes[i] == best.offsets[i + 1] - best.offsets[i]
                    if full and d == worst(best, i):
                        continue  # who was there first stays
                    offer(best, i, d, rank[row], rank[row], time[row])
                if found == len(out):
                    out, rows, far = _longer(out), _longer(rows), _farther(far)
                out[found], rows[found], far[found] = i, row, d
                found += 1
    return out[:found].copy(), rows[:found].copy(), far[:found].copy(), looked


@njit
def _longer(array: Longs) -> Longs:
    more = np.empty(2 * len(array), np.int64)
    more[: len(array)] = array
    return more


@njit
def _farther(array: Reals) -> Reals:
    more = np.empty(2 * len(array))
    more[: len(array)] = array
    return more


@njit
def _take(
    best: Best, query: Longs, far: Reals, rank: Longs, time: Longs
) -> tuple[NDArray[np.bool_], Longs]:
    """Offer each to its result: whether it entered, and whose place it took."""
    taken = np.zeros(len(query), np.bool_)
    left = np.full(len(query), -1, np.int64)
    for n in range(len(query)):
        i = query[n]
        first = best.offsets[i]
        full = best.sizes[i] == best.offsets[i + 1] - first
        if full and not far[n] < best.keys[first]:
            continue
        if full:
            left[n] = best.ties[first]
        offer(best, i, far[n], rank[n], rank[n], time[n])
        taken[n] = True
    return taken, left
