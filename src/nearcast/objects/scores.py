"""What decides between objects: their distance, or their score (SPEC section 4, `topk`).

Compared are *keys*, of which the least is the best: the distance, or the negative score.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.model.score import blend, near
from nearcast.objects.base import Centres, Wishes
from nearcast.objects.slices import Columns, count_at
from nearcast.objects.where import code_of, list_size, place_of

__all__ = ["Wish", "key_of", "least_key", "reach_of", "wish_of"]

_SLACK = 1e-9  # of a score, for what rounding does to a cosine


class Wish(NamedTuple):
    """What one query wants of the rows of one slice."""

    x: float
    y: float
    by_score: bool
    codes: NDArray[np.int64]  # of its keywords as listed; -1: the slice does not have the word
    weights: NDArray[np.float64]  # divided by their norm
    held: NDArray[np.int64]  # the codes that are there, the rarest first
    reach: NDArray[np.float64]  # by place in `held`: the cosine of a row with none of those before
    alpha: float
    maxdist: float


@njit
def wish_of(
    c: Columns, list_starts: NDArray[np.uint32], centres: Centres, w: Wishes, q: int
) -> Wish:
    """The wish of a query; without any, it is by distance. `list_starts`: how rare words are."""
    x, y = centres.x[q], centres.y[q]
    if len(w.alpha) == 0:
        none = np.empty(0, np.int64)
        return Wish(x, y, False, none, np.empty(0), none, np.empty(0), 0.0, 1.0)
    first, last = w.keyword_offsets[q], w.keyword_offsets[q + 1]
    codes = np.empty(last - first, np.int64)
    weights = w.weights[first:last].copy()
    squares = 0.0
    for j in range(last - first):
        codes[j] = code_of(c.words, w.keywords[first + j])
        squares += weights[j] * weights[j]
    norm = math.sqrt(squares)
    for j in range(last - first):
        weights[j] /= norm
    there = np.flatnonzero(codes >= 0)
    sizes = np.empty(len(there), np.int64)
    for j in range(len(there)):
        sizes[j] = list_size(list_starts, codes[there[j]])
    there = there[np.argsort(sizes)]
    reach = np.empty(len(there))
    # The weights of a row have the norm 1: its cosine is at most the norm of what it may share.
    squares = 0.0
    for j in range(len(there) - 1, -1, -1):
        squares += weights[there[j]] * weights[there[j]]
        reach[j] = math.sqrt(squares)
    return Wish(x, y, True, codes, weights, codes[there], reach, w.alpha[q], w.maxdist[q])


@njit(lean=True)
def reach_of(wish: Wish, j: int) -> float:
    """The highest cosine of rows that the list at place `j` is the first to have; -1: of any."""
    return wish.reach[max(j, 0)] if len(wish.reach) else 0.0


@njit(lean=True)
def least_key(wish: Wish, far: float, reach: float) -> float:
    """No row at least so far away, whose cosine is at most `reach`, has a lower key."""
    if not wish.by_score:
        return far
    return -blend(wish.alpha, near(far, wish.maxdist), reach) - _SLACK


@njit(lean=True)
def key_of(wish: Wish, c: Columns, row: int, far: float) -> float:
    """The key of a row at this distance; floats in the order that SPEC section 4 gives."""
    if not wish.by_score:
        return far
    squares = 0.0
    for j in range(np.int64(c.starts[row]), np.int64(c.starts[row + 1])):
        weight = _weight(c, j)
        squares += weight * weight
    norm = math.sqrt(squares)
    cosine = 0.0
    for j in range(len(wish.codes)):
        place = place_of(c, row, wish.codes[j]) if wish.codes[j] >= 0 else -1
        if place >= 0:
            cosine += wish.weights[j] * (_weight(c, place) / norm)
    return -blend(wish.alpha, near(far, wish.maxdist), cosine)


@njit(lean=True)
def _weight(c: Columns, place: int) -> float:
    """tf·idf of the word at a place."""
    idf = c.idf[c.codes[place]] if len(c.idf) else 1.0
    return count_at(c, place) * idf
