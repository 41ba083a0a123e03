"""Results of subscriptions whose copies each see a part of the messages.

Each part keeps the k best of its messages, in its own buffer, and reports what changes. What is
among the k best of all is among the k best of every part that sees it: so the k best of the parts'
results together are the result. A group is what happens to one subscription at one moment: its
first result, what the window lets go at a message (or at a time), or the message itself. Only the
difference of the result before and after a group is reported.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.model.jit import njit

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

BEGIN, WINDOW, ARRIVAL = 0, 1, 2  # phases at a message


class Events(NamedTuple):
    """What parts report; those of one part and subscription are in their order."""

    at: Longs  # number of the message in the batch
    phase: Longs
    time: Longs
    query: Longs  # number of the subscription
    part: Longs
    rank: Longs
    score: Reals
    enters: Flags

    def take(self, rows: Longs | Flags) -> Events:
        """Some of them."""
        return Events._make([column[rows] for column in self])

    @staticmethod
    def joined(some: list[Events]) -> Events:
        """All of them."""
        return Events._make([np.concatenate(columns) for columns in zip(*some, strict=True)])

    def sorted(self) -> Events:
        """By moment and subscription, so that groups are runs."""
        keys = (self.part, self.query, self.time, self.phase, self.at)
        return self.take(np.lexsort(keys))

    def before(self, at: Longs, phase: Longs, time: Longs) -> Flags:
        """Which are earlier than these moments."""
        same_at, same_phase = self.at == at, self.phase == phase
        later = same_at & ((self.phase < phase) | (same_phase & (self.time < time)))
        return np.asarray((self.at < at) | later)


class Merged(NamedTuple):
    """Changes of whole results: in the order of the log, by subscription within a moment."""

    at: Longs
    phase: Longs
    time: Longs
    query: Longs
    rank: Longs
    score: Reals
    enters: Flags


class _Held(NamedTuple):
    """What parts hold, best first per subscription, of equals the newer one; a bit per part."""

    offsets: Longs
    sizes: Longs
    rank: Longs
    score: Reals
    parts: NDArray[np.uint64]


class Merger:
    """The results of all subscriptions, whose numbers are given in turn."""

    def __init__(self) -> None:
        self._k = np.empty(0, np.int64)
        self._copies = np.empty(0, np.int64)
        self._held = _Held(
            np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0),
            np.empty(0, np.uint64),
        )  # fmt: skip

    def add(self, k: Longs, copies: Longs) -> None:
        """More subscriptions, each with so many copies."""
        self._k = np.append(self._k, k)
        self._lay(np.append(self._copies, copies))

    def grow(self, queries: Longs, copies: Longs) -> None:
        """Subscriptions have more copies."""
        wider = self._copies.copy()
        np.add.at(wider, queries, copies)
        self._lay(wider)

    def _lay(self, copies: Longs) -> None:
        """Room for k entries per part, and one more while a part reports what takes its place."""
        old, before = self._held, len(self._copies)
        offsets = np.append(0, np.cumsum((self._k + 1) * copies)).astype(np.int64)
        rank, score = np.empty(offsets[-1], np.int64), np.empty(offsets[-1])
        parts = np.empty(offsets[-1], np.uint64)
        sizes = np.append(old.sizes, np.zeros(len(copies) - before, np.int64))
        within = np.arange(old.sizes.sum()) - np.repeat(np.cumsum(old.sizes) - old.sizes, old.sizes)
        source = np.repeat(old.offsets[:-1], old.sizes) + within
        target = np.repeat(offsets[:before], old.sizes) + within
        for new, values in ((rank, old.rank), (score, old.score), (parts, old.parts)):
            new[target] = values[source]
        self._held = _Held(offsets, sizes, rank, score, parts)
        self._copies = copies

    def take(self, events: Events, quiet: Flags, bound: Reals) -> tuple[Merged, Longs, Reals]:
        """Take in sorted events: (changes, rows where a subscription came to its bound, scores).

        Nothing of `quiet` groups is reported. A subscription whose k-th score is not above its
        `bound` may be missing messages that none of its copies saw: that group and what follows of
        it has to come again, with more copies. Minus infinity: all messages come to its copies.
        """
        e = Events._make([frozen(column) for column in events])
        changes, marked, fell = _take(self._held, self._k, e, frozen(quiet), frozen(bound))
        at, phase, time, query, rank, enters = (np.ascontiguousarray(c) for c in changes[0].T)
        return Merged(at, phase, time, query, rank, changes[1], enters != 0), marked, fell

    def kscores(self) -> Reals:
        """The k-th score of each; minus infinity: there are fewer than k."""
        full = self._held.sizes >= self._k
        out = np.full(len(self._k), -np.inf)
        out[full] = self._held.score[(self._held.offsets[:-1] + self._k - 1)[full]]
        return out

    def result(self, query: int) -> list[tuple[float, int]]:
        """(score, rank) of the present result, best first."""
        first = int(self._held.offsets[query])
        some = slice(first, first + int(min(self._held.sizes[query], self._k[query])))
        return list(zip(self._held.score[some].tolist(), self._held.rank[some].tolist()))


@njit
def _enter(h: _Held, q: int, part: int, rank: int, score: float) -> None:
    """A part has it in its result."""
    first, n = h.offsets[q], h.sizes[q]
    at = n
    while at > 0 and (
        h.score[first + at - 1] < score
        or (h.score[first + at - 1] == score and h.rank[first + at - 1] < rank)
    ):
        at -= 1
    bit = np.uint64(1) << np.uint64(part)
    if at > 0 and h.rank[first + at - 1] == rank:
        h.parts[first + at - 1] |= bit
        return
    for j in range(first + n, first + at, -1):
        h.rank[j], h.score[j], h.parts[j] = h.rank[j - 1], h.score[j - 1], h.parts[j - 1]
    h.rank[first + at], h.score[first + at], h.parts[first + at] = rank, score, bit
    h.sizes[q] = n + 1


@njit
def _leave(h: _Held, q: int, part: int, rank: int) -> None:
    """A part has it no more."""
    first, n = h.offsets[q], h.sizes[q]
    bit = np.uint64(1) << np.uint64(part)
    for j in range(first, first + n):
        if h.rank[j] == rank:
            h.parts[j] &= ~bit
            if h.parts[j] == np.uint64(0):
                for i in range(j, first + n - 1):
                    h.rank[i], h.score[i], h.parts[i] = (
                        h.rank[i + 1], h.score[i + 1], h.parts[i + 1],
                    )  # fmt: skip
                h.sizes[q] = n - 1
            return


@njit
def _holds(ranks: Longs, n: int, rank: int) -> bool:
    for j in range(n):
        if ranks[j] == rank:
            return True
    return False


@njit
def _take(
    h: _Held, k: Longs, e: Events, quiet: Flags, bound: Reals
) -> tuple[tuple[NDArray[np.int64], Reals], Longs, Reals]:
    at, phase, time, query = e.at, e.phase, e.time, e.query
    n, found = len(at), 0
    out, scores = np.empty((64, 6), np.int64), np.empty(64)
    marked, fell = np.empty(0, np.int64), np.empty(0)
    stopped = np.zeros(len(k), np.bool_)
    widest = 1
    for q in range(len(k)):
        widest = max(widest, h.offsets[q + 1] - h.offsets[q])
    ranks, old_scores = np.empty(widest, np.int64), np.empty(widest)
    old_parts = np.empty(widest, np.uint64)
    stop = 0
    while stop < n:
        first_row, q = stop, query[stop]
        stop += 1
        while (
            stop < n
            and query[stop] == q
            and at[stop] == at[first_row]
            and phase[stop] == phase[first_row]
            and time[stop] == time[first_row]
        ):
            stop += 1
        if stopped[q]:
            continue
        first, size = h.offsets[q], h.sizes[q]
        for j in range(size):
            ranks[j], old_scores[j] = h.rank[first + j], h.score[first + j]
            old_parts[j] = h.parts[first + j]
        for row in range(first_row, stop):
            if e.enters[row]:
                _enter(h, q, e.part[row], e.rank[row], e.score[row])
            else:
                _leave(h, q, e.part[row], e.rank[row])
        if quiet[first_row]:
            continue
        if bound[q] > -np.inf:
            kth = h.score[first + k[q] - 1] if h.sizes[q] >= k[q] else -np.inf
            if not kth > bound[q]:
                stopped[q] = True
                for j in range(size):
                    h.rank[first + j], h.score[first + j] = ranks[j], old_scores[j]
                    h.parts[first + j] = old_parts[j]
                h.sizes[q] = size
                marked, fell = np.append(marked, first_row), np.append(fell, kth)
                continue
        before, after = min(size, k[q]), min(h.sizes[q], k[q])
        while found + before + after > len(out):
            wider, more = np.empty((2 * len(out), 6), np.int64), np.empty(2 * len(out))
            wider[:found], more[:found] = out[:found], scores[:found]
            out, scores = wider, more
        came = phase[first_row] == ARRIVAL
        for turn in range(2):
            entering = (turn == 0) == came
            for j in range(after if entering else before):
                one = h.rank[first + j] if entering else ranks[j]
                if entering and _holds(ranks, before, one):
                    continue
                if not entering and _holds(h.rank[first:], after, one):
                    continue
                out[found, 0], out[found, 1] = at[first_row], phase[first_row]
                out[found, 2], out[found, 3] = time[first_row], q
                out[found, 4], out[found, 5] = one, entering
                scores[found] = h.score[first + j] if entering else 0.0
                found += 1
    return (out[:found], scores[:found]), marked, fell
