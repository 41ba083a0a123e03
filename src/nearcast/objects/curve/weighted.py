"""The best by score for many queries at once: what words weigh in each row, worked out first.

`nearest` is for few queries: it looks at no more of a slice than it must, but works out each row's
weights again. For hundreds of queries it is worth a pass over the slice to write down what each
word weighs in each row, and bounds for each run of 64 rows of a word's list. A list has rows of
about one weight together, along the curve: so such a run has a small box, and tight bounds.

A row found on the list of a word, and on no list of a rarer word of the query, has at most the
cosine ws·wo + rest·√(1 - wo²): ws and wo are the weights of the word on both sides, rest is the
norm of the query's words on later lists. Bounds are float32, rounded outwards; a row that may be
good enough is scored exactly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.model.score import blend, near
from nearcast.model.space import EARTH_RADIUS_M, GEOGRAPHIC_CODE, distance
from nearcast.objects.base import Centres, Queries, Wishes
from nearcast.objects.curve.index import CurveIndex
from nearcast.objects.results import Best, offer, worst
from nearcast.objects.scores import Wish, wish_of
from nearcast.objects.slices import Columns, count_at
from nearcast.objects.where import (
    LISTS,
    NONE,
    Plan,
    found_before,
    in_period,
    place_of,
    plan_of,
    true_of,
)

__all__ = ["Weighted", "offer_weighted", "weighted_rows"]

_RUN = 64  # rows that share a bound
_CLASSES = 32  # of weight
_STEPS = 4.0  # classes from a weight to half of it
_SLACK = 2e-6  # of a score: what float32 may lose
_TINY = 1.2e-7  # what it may lose of a coordinate
_METRES = 3.0  # the same on the globe
_LARGEST = 1e36
_UP = 1.0 + 1e-6
_RADIANS = math.pi / 180.0

Floats = NDArray[np.float32]
Longs = NDArray[np.int64]


class Weighted(NamedTuple):
    """What rows of a slice weigh."""

    at: Floats  # [rows, 3]: points that are no further apart than the places
    norms: NDArray[np.float64]  # by row
    rows: NDArray[np.uint32]  # the lists, heavy words first; equally heavy ones along the curve
    weights: Floats  # parallel to them
    runs: Longs  # [words + 1]: the first run of each list
    bounds: Floats  # [runs, 7]: a box, and the highest weight


@njit(lean=True, forceinline=True)
def _point(space: int, x: float, y: float) -> tuple[float, float, float]:
    """On the globe, the end of a vector from its centre: chords are shorter than ways."""
    if space == GEOGRAPHIC_CODE:
        phi, lam = y * _RADIANS, x * _RADIANS
        across = EARTH_RADIUS_M * math.cos(phi)
        return across * math.cos(lam), across * math.sin(lam), EARTH_RADIUS_M * math.sin(phi)
    return x, y, 0.0


@njit(lean=True, forceinline=True)
def _weight(c: Columns, place: int) -> float:
    """tf·idf of the word at a place."""
    idf = c.idf[c.codes[place]] if len(c.idf) else 1.0
    return count_at(c, place) * idf


@njit
def weighted_rows(space: int, c: Columns, ix: CurveIndex) -> Weighted:
    """Weigh all rows of a slice."""
    rows, words = len(c.at), len(ix.list_starts) - 1
    at = np.empty((rows, 3), np.float32)
    norms = np.empty(rows)
    weights = np.empty(len(ix.lists), np.float32)
    next_at = ix.list_starts[:-1].astype(np.int64)
    for row in range(rows):
        x, y, z = _point(space, c.at[row, 0], c.at[row, 1])
        at[row, 0], at[row, 1], at[row, 2] = np.float32(x), np.float32(y), np.float32(z)
        squares = 0.0
        first, last = np.int64(c.starts[row]), np.int64(c.starts[row + 1])
        for j in range(first, last):
            weight = _weight(c, j)
            squares += weight * weight
        norms[row] = math.sqrt(squares)
        for j in range(first, last):  # lists have their rows in this order
            code = c.codes[j]
            weights[next_at[code]] = np.float32(min(_weight(c, j) / norms[row], 1.0) * _UP)
            next_at[code] += 1
    runs = np.zeros(words + 1, np.int64)
    for word in range(words):
        held = np.int64(ix.list_starts[word + 1]) - np.int64(ix.list_starts[word])
        runs[word + 1] = runs[word] + (held + _RUN - 1) // _RUN if held > _RUN else runs[word]
    rows_of = _by_weight(ix, weights)
    bounds = np.empty((runs[words], 7), np.float32)
    for word in range(words):
        start, stop = np.int64(ix.list_starts[word]), np.int64(ix.list_starts[word + 1])
        for run in range(runs[word], runs[word + 1]):
            b = bounds[run]
            for side in range(3):
                b[side], b[3 + side] = np.float32(np.inf), -np.float32(np.inf)
            b[6] = 0.0
            for place in range(start, min(start + _RUN, stop)):
                row = rows_of[place]
                for side in range(3):
                    b[side] = min(b[side], at[row, side])
                    b[3 + side] = max(b[3 + side], at[row, side])
                b[6] = max(b[6], weights[place])
            start += _RUN
    return Weighted(at, norms, rows_of, weights, runs, bounds)


@njit
def _by_weight(ix: CurveIndex, weights: Floats) -> NDArray[np.uint32]:
    """The rows of long lists by class of weight, and by row in each; `weights` in the same order.

    So the rows of a run are alike in weight as well as near each other.
    """
    rows = ix.lists.copy()
    starts = np.empty(_CLASSES + 1, np.int64)
    for word in range(len(ix.list_starts) - 1):
        start, stop = np.int64(ix.list_starts[word]), np.int64(ix.list_starts[word + 1])
        if stop - start <= _RUN:
            continue
        own = weights[start:stop].copy()
        classes = np.empty(stop - start, np.uint8)
        starts[:] = 0
        for j in range(stop - start):
            part = -_STEPS * math.log2(max(np.float64(own[j]), 1e-9))
            classes[j] = np.uint8(min(max(part, 0.0), _CLASSES - 1.0))
            starts[classes[j] + 1] += 1
        for n in range(_CLASSES):
            starts[n + 1] += starts[n]
        for j in range(stop - start):
            place = start + starts[classes[j]]
            starts[classes[j]] += 1
            rows[place] = ix.lists[start + j]
            weights[place] = own[j]
    return rows


@njit(lean=True, forceinline=True)
def _most_near(alpha: float, slope: float, lost: float, square: float) -> float:
    """The most that nearness adds to a score, by the square of a distance in float32."""
    if not square < _LARGEST:
        return alpha  # it may have overflowed, or be no number
    far = slope * (math.sqrt(square) * (1.0 - 1e-6) - lost)
    if far >= alpha:
        return 0.0
    return alpha - far if far > 0.0 else alpha


@njit(lean=True, forceinline=True)
def _farthest(alpha: float, slope: float, lost: float, more: float) -> np.float32:
    """The square of the distance up to which `more` and what nearness adds are not below 0."""
    if alpha + more < 0.0:
        return np.float32(-1.0)
    if not more < 0.0 or slope == 0.0:
        return np.float32(np.inf)
    far = ((alpha + more) / slope + lost) * (1.0 + 1e-6)
    return np.float32(np.inf) if not far * far < _LARGEST else np.float32(far * far * _UP)


@njit(lean=True, forceinline=True)
def _most_cosine(own: float, rest: float, weight: float) -> float:
    """The highest cosine of rows in which the word weighs at most `weight`."""
    norm = math.sqrt(own * own + rest * rest)
    if weight * norm >= own:
        return norm
    return own * weight + rest * math.sqrt(max(1.0 - weight * weight, 0.0))


@njit
def offer_weighted(
    space: int,
    c: Columns,
    ix: CurveIndex,
    wr: Weighted,
    handle: int,
    q: Queries,
    centres: Centres,
    wishes: Wishes,
    which: Longs,
    limits: Longs,
    best: Best,
) -> int:
    """Offer rows of a slice to the results of queries by score; how many were examined."""
    examined = 0
    longest = 1
    for word in range(len(wr.runs) - 1):
        longest = max(longest, wr.runs[word + 1] - wr.runs[word])
    tops = np.empty(longest)
    for i in which:
        plan = plan_of(c, ix.list_starts, q, i, limits)
        if plan.sort == NONE:
            continue
        wish = wish_of(c, ix.list_starts, centres, wishes, i)
        plan = Plan(LISTS, wish.held, False, plan.tokens, plan.stack, plan.covered)
        for j in range(len(wish.held)):
            examined += _offer_list(space, c, ix, wr, handle, q, i, plan, wish, j, best, tops)
    return examined


@njit(lean=True)
def _offer_list(
    space: int,
    c: Columns,
    ix: CurveIndex,
    wr: Weighted,
    handle: int,
    q: Queries,
    i: int,
    plan: Plan,
    wish: Wish,
    j: int,
    best: Best,
    tops: NDArray[np.float64],
) -> int:
    """Offer the rows of the list at place `j`: runs of rows whose bound is high come first."""
    code = wish.held[j]
    own = 0.0
    for n in range(len(wish.codes)):
        if wish.codes[n] == code:
            own = wish.weights[n]
    rest = wish.reach[j + 1] if j + 1 < len(wish.reach) else 0.0
    alpha, slope = wish.alpha, wish.alpha / wish.maxdist
    lost = _METRES if space == GEOGRAPHIC_CODE else 4.0 * _TINY * (abs(wish.x) + abs(wish.y))
    px, py, pz = _point(space, wish.x, wish.y)
    x, y, z = np.float32(px), np.float32(py), np.float32(pz)
    start, stop = np.int64(ix.list_starts[code]), np.int64(ix.list_starts[code + 1])
    first, last = wr.runs[code], wr.runs[code + 1]
    most = math.sqrt(own * own + rest * rest)
    if first == last:
        return _offer_run(
            space, c, wr, handle, q, i, plan, wish, j, best, start, stop, most, own, rest,
            slope, lost,
        )  # fmt: skip
    highest = -np.inf
    for run in range(first, last):
        b = wr.bounds[run]
        zero = np.float32(0.0)
        dx = max(max(b[0] - x, x - b[3]), zero)
        dy = max(max(b[1] - y, y - b[4]), zero)
        dz = max(max(b[2] - z, z - b[5]), zero)
        square = dx * dx + dy * dy + dz * dz
        bound = _most_near(alpha, slope, lost, np.float64(square))
        bound += (1.0 - alpha) * _most_cosine(own, rest, np.float64(b[6])) + _SLACK
        tops[run - first] = bound
        highest = max(highest, bound)
    examined = 0
    floor = -worst(best, i)
    middle = max(floor, highest - 0.1 * abs(highest)) if floor > -np.inf else highest * 0.9
    for turn in range(2):
        for run in range(first, last):
            bound = tops[run - first]
            if (turn == 0 and not bound >= middle) or (turn == 1 and bound >= middle):
                continue
            if bound < -worst(best, i):
                continue
            at = start + (run - first) * _RUN
            most = _most_cosine(own, rest, np.float64(wr.bounds[run, 6]))
            examined += _offer_run(
                space, c, wr, handle, q, i, plan, wish, j, best, at, min(at + _RUN, stop),
                most, own, rest, slope, lost,
            )  # fmt: skip
    return examined


@njit(lean=True)
def _offer_run(
    space: int,
    c: Columns,
    wr: Weighted,
    handle: int,
    q: Queries,
    i: int,
    plan: Plan,
    wish: Wish,
    j: int,
    best: Best,
    start: int,
    stop: int,
    most: float,
    own: float,
    rest: float,
    slope: float,
    lost: float,
) -> int:
    """Offer the rows at some places of a list; how many were scored.

    `most` bounds their cosine. What is left to nearness bounds how far they may be.
    """
    examined = 0
    alpha = wish.alpha
    px, py, pz = _point(space, wish.x, wish.y)
    x, y, z = np.float32(px), np.float32(py), np.float32(pz)
    farthest, floor = np.float32(np.inf), np.inf
    for place in range(start, stop):
        if -worst(best, i) != floor:
            floor = -worst(best, i)
            farthest = _farthest(alpha, slope, lost, (1.0 - alpha) * most + _SLACK - floor)
            if farthest < np.float32(0.0):
                break
        row = np.int64(wr.rows[place])
        dx, dy, dz = wr.at[row, 0] - x, wr.at[row, 1] - y, wr.at[row, 2] - z
        square = dx * dx + dy * dy + dz * dz
        if square > farthest:
            continue
        bound = _most_near(alpha, slope, lost, np.float64(square)) + _SLACK
        bound += (1.0 - alpha) * _most_cosine(own, rest, np.float64(wr.weights[place]))
        if bound < floor:
            continue
        examined += 1
        if not (plan.covered or in_period(c, q, i, row)):
            continue
        if j > 0 and found_before(plan, c, row, j):
            continue
        if len(plan.tokens) > 0 and not true_of(plan, c, row):
            continue
        cosine = 0.0
        for n in range(len(wish.codes)):
            held = place_of(c, row, wish.codes[n]) if wish.codes[n] >= 0 else -1
            if held >= 0:
                cosine += wish.weights[n] * (_weight(c, held) / wr.norms[row])
        far = distance(space, wish.x, wish.y, c.at[row, 0], c.at[row, 1])
        key = -blend(alpha, near(far, wish.maxdist), cosine)
        offer(best, i, key, -c.when[row, 1], handle + row, c.when[row, 0])
    return examined
