"""Results of queries while slice after slice is searched: the k best, the latest, the counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.objects.base import Found, WordCounts

__all__ = ["Best", "found_by", "latest", "most_held", "new_best", "offer", "worst"]

_NONE = np.empty(0, np.int64)


class Best(NamedTuple):
    """The k least (key, tie) of each query so far: a heap each, the worst first.

    Key and tie are distance and rank; or the score and the rank, both negative.
    """

    offsets: NDArray[np.int64]  # [q + 1]
    sizes: NDArray[np.int64]  # [q]
    keys: NDArray[np.float64]
    ties: NDArray[np.int64]
    handles: NDArray[np.int64]
    times: NDArray[np.int64]


def new_best(k: NDArray[np.int64], objects: int) -> Best:
    """Empty results with room for k objects each; there are so many objects in all."""
    offsets = np.concatenate([[0], np.cumsum(np.minimum(k, objects))]).astype(np.int64)
    room = int(offsets[-1])
    return Best(
        offsets,
        np.zeros(len(k), np.int64),
        np.empty(room),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )


@njit(lean=True)
def worst(b: Best, q: int) -> float:
    """What a key must not exceed to enter the result of a query."""
    first = b.offsets[q]
    if b.sizes[q] < b.offsets[q + 1] - first:
        return np.inf
    return b.keys[first] if b.sizes[q] else -np.inf


@njit(lean=True)
def _swap(b: Best, i: int, j: int) -> None:
    b.keys[i], b.keys[j] = b.keys[j], b.keys[i]
    b.ties[i], b.ties[j] = b.ties[j], b.ties[i]
    b.handles[i], b.handles[j] = b.handles[j], b.handles[i]
    b.times[i], b.times[j] = b.times[j], b.times[i]


@njit(lean=True)
def _worse(b: Best, i: int, j: int) -> bool:
    return b.keys[i] > b.keys[j] or (b.keys[i] == b.keys[j] and b.ties[i] > b.ties[j])


@njit(lean=True)
def offer(b: Best, q: int, key: float, tie: int, handle: int, time: int) -> None:
    """Put an object into the result of a query if it is among the k best."""
    first = b.offsets[q]
    size = b.sizes[q]
    if size < b.offsets[q + 1] - first:
        at = size
        b.sizes[q] = size + 1
        _put(b, first + at, key, tie, handle, time)
        while at > 0 and _worse(b, first + at, first + (at - 1) // 2):
            _swap(b, first + at, first + (at - 1) // 2)
            at = (at - 1) // 2
        return
    if size == 0 or key > b.keys[first] or (key == b.keys[first] and tie >= b.ties[first]):
        return
    _put(b, first, key, tie, handle, time)
    at = 0
    while True:
        most = at
        for child in range(2 * at + 1, min(2 * at + 3, size)):
            if _worse(b, first + child, first + most):
                most = child
        if most == at:
            return
        _swap(b, first + at, first + most)
        at = most


@njit(lean=True)
def _put(b: Best, i: int, key: float, tie: int, handle: int, time: int) -> None:
    b.keys[i] = key
    b.ties[i] = tie
    b.handles[i] = handle
    b.times[i] = time


def found_by(b: Best, sign: int, examined: int) -> Found:
    """Results in order; `sign` is what keys and ties were multiplied with."""
    owner = np.repeat(np.arange(len(b.sizes)), b.sizes)
    at = (
        b.offsets[:-1][owner]
        + np.arange(len(owner))
        - np.repeat(np.cumsum(b.sizes) - b.sizes, b.sizes)
    )
    at = at[np.lexsort((b.ties[at], b.keys[at], owner))]
    offsets = np.concatenate([[0], np.cumsum(b.sizes)])
    # Adding 0 makes the negative of a zero the zero that it was.
    values = sign * b.keys[at] + 0.0
    return Found(offsets, b.handles[at], b.times[at], sign * b.ties[at], values, examined)


def latest(
    owner: NDArray[np.int64],
    time: NDArray[np.int64],
    rank: NDArray[np.int64],
    limit: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Places of results by owner, time and rank; of each owner only the last `limit` (0: all)."""
    order = _by_three(owner, time, rank)
    owner = owner[order]
    if len(order) and limit[owner].any():
        ends = np.searchsorted(owner, owner, side="right")
        kept = limit[owner]
        order = order[(kept == 0) | (ends - np.arange(len(owner)) <= kept)]
    return order


def _by_three(
    owner: NDArray[np.int64], time: NDArray[np.int64], rank: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The order by three keys; as one number if they fit, which sorts several times faster."""
    if len(owner) == 0:
        return _NONE
    keys = [column - column.min() for column in (owner, time, rank)]
    bits = [int(key.max()).bit_length() for key in keys]
    if sum(bits) > 63 or any(int(k.min()) < 0 for k in keys):  # negative: overflow
        return np.lexsort((rank, time, owner))
    return np.argsort((keys[0] << bits[1] | keys[1]) << bits[2] | keys[2])


def most_held(
    queries: int,
    owner: NDArray[np.int64],
    words: NDArray[np.uint64],
    counts: NDArray[np.int64],
    k: NDArray[np.int64],
    examined: int,
) -> WordCounts:
    """Counts of words of several slices, added up and cut after the ties of the k-th."""
    order = np.lexsort((words, owner))
    owner, words, counts = owner[order], words[order], counts[order]
    if len(owner):
        new = np.append(True, (owner[1:] != owner[:-1]) | (words[1:] != words[:-1]))
        first = np.flatnonzero(new)
        owner, words, counts = owner[first], words[first], np.add.reduceat(counts, first)
        order = np.lexsort((words, -counts, owner))
        owner, words, counts = owner[order], words[order], counts[order]
        starts = np.searchsorted(owner, np.arange(queries))
        sizes = np.bincount(owner, minlength=queries)
        last = starts + np.minimum(np.where(k > 0, k, sizes), sizes) - 1  # the k-th of each
        kept = counts >= counts[np.maximum(last, 0)][owner]
        owner, words, counts = owner[kept], words[kept], counts[kept]
    offsets = np.searchsorted(owner, np.arange(queries + 1))
    return WordCounts(offsets, words, counts, examined)
