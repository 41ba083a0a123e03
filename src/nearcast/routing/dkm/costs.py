"""What a subscription costs: the cost models of DkM-SKS, equations (1) to (6).

The paper's costs are sums of |O_...| / |O_init|. Here they are counted in objects, without the
division: whole numbers add up exactly in any order, so that equal costs are equal. Plans
divide by |O_init| once, at their end (`per_object`).

A subscription costs at least one object. The paper's sum is 0 where O_init has none of the words,
and then every such subscription would go to one and the same worker.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.model.jit import njit
from nearcast.routing.dkm.counting import count_inside
from nearcast.routing.dkm.places import Box, Places
from nearcast.routing.dkm.vocabulary import Vocabulary, WantedWords

LEAST = 1.0  # objects


class Subscriptions(NamedTuple):
    """S as the algorithms read it: place, rectangle around B(s), words."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    boxes: NDArray[np.float64]  # [n, 4]
    wanted: WantedWords


class Memo(NamedTuple):
    """|O_{R,lambda}| of the words met since the rectangle changed."""

    known: NDArray[np.int64]  # [v + 1, 2]: the rectangle's number, the count
    clock: NDArray[np.int64]  # [1]: number of the rectangle


def new_memo(words: int) -> Memo:
    """A memo for word numbers below `words`."""
    return Memo(np.zeros((words, 2), np.int64), np.zeros(1, np.int64))


def per_object(costs: NDArray[np.float64], v: Vocabulary) -> NDArray[np.float64]:
    """Costs in objects to the paper's: expected updates for one new object."""
    return costs / max(int(v.frequency[-1]), 1)


@njit
def keyword_costs(v: Vocabulary, wanted: WantedWords) -> NDArray[np.float64]:
    """Equation (1): C(s) = sum of P(lambda) over the words of s, P(lambda) = |O_lambda| / |O_init|.

    Where any object may match, P is 1.
    """
    n = len(wanted.offsets) - 1
    costs = np.empty(n)
    for s in range(n):
        cost = 0.0
        for t in range(wanted.offsets[s], wanted.offsets[s + 1]):
            cost += v.frequency[wanted.words[t]]
        costs[s] = max(cost, LEAST)
    return costs


@njit
def young_costs(v: Vocabulary, wanted: WantedWords, k: NDArray[np.int64]) -> NDArray[np.float64]:
    """What subscriptions without results change in as many objects as O_init has; not the paper's.

    Each takes the first k objects with its words. The n-th is among the k nearest of n with
    probability k / n: of f in all it takes about k + k / (k + 1) + ... + k / f = k (1 + ln(f / k)).
    """
    costs = keyword_costs(v, wanted)
    for s in range(len(costs)):
        if costs[s] > k[s]:
            costs[s] = k[s] * (1.0 + np.log(costs[s] / k[s]))
    return costs


@njit
def grown_costs(v: Vocabulary, wanted: WantedWords, k: NDArray[np.int64]) -> NDArray[np.float64]:
    """What subscriptions that have seen O_init change in as many objects more; not the paper's.

    B(s) holds k objects with its words, so k more are to come: equation (5) with R = B(s).
    """
    return np.minimum(keyword_costs(v, wanted), k)


@njit
def space_cost(p: Places, box: Box) -> float:
    """Equation (2): P(R) = |O_R| / |O_init|, which is the cost of a new subscription in SOP."""
    return max(float(count_inside(p, len(p.offsets) - 2, box)), LEAST)


@njit
def space_subset_cost(p: Places, box: Box, size: int) -> float:
    """Equation (3): C(S_r) = P(R) · |S_r|."""
    return space_cost(p, box) * size


@njit(inline="always")
def _count_once(p: Places, memo: Memo, word: int, box: Box) -> int:
    """Equation (4): P(R, lambda) = |O_{R,lambda}| / |O_init|; once per word and rectangle."""
    if memo.known[word, 0] != memo.clock[0]:
        memo.known[word, 0] = memo.clock[0]
        memo.known[word, 1] = count_inside(p, word, box)
    return memo.known[word, 1]


@njit
def begin_box(memo: Memo) -> None:
    """Forget the counts: another rectangle follows."""
    memo.clock[0] += 1


@njit(inline="always")
def hybrid_cost(p: Places, memo: Memo, wanted: WantedWords, s: int, box: Box) -> float:
    """Equation (5): C(s) = sum of P(R, lambda) over the words of s."""
    cost = 0.0
    for t in range(wanted.offsets[s], wanted.offsets[s + 1]):
        cost += _count_once(p, memo, wanted.words[t], box)
    return max(cost, LEAST)


@njit
def hybrid_subset_cost(
    p: Places,
    memo: Memo,
    wanted: WantedWords,
    members: NDArray[np.int64],
    box: Box,
    each: NDArray[np.float64],
) -> float:
    """Equation (6): C(S_r) = sum of C(s) over S_r; writes each C(s) to `each[s]`."""
    begin_box(memo)
    cost = 0.0
    for s in members:
        each[s] = hybrid_cost(p, memo, wanted, s, box)
        cost += each[s]
    return cost


@njit
def enclose(boxes: NDArray[np.float64], members: NDArray[np.int64], box: Box) -> None:
    """Write the rectangle R around the balls of `members` to `box`."""
    box[0], box[1], box[2], box[3] = np.inf, np.inf, -np.inf, -np.inf
    for s in members:
        box[0], box[1] = min(box[0], boxes[s, 0]), min(box[1], boxes[s, 1])
        box[2], box[3] = max(box[2], boxes[s, 2]), max(box[3], boxes[s, 3])
