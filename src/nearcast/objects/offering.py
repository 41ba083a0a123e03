"""Nodes that wait for a visit, the best first; and the offer of one row to a result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.heap import push
from nearcast.model.jit import njit
from nearcast.model.space import distance
from nearcast.objects.base import Queries
from nearcast.objects.results import Best, offer, worst
from nearcast.objects.scores import Wish, key_of, least_key, reach_of
from nearcast.objects.slices import Columns
from nearcast.objects.where import Plan, found_before, in_period, true_of

__all__ = ["Waiting", "enter", "more_room", "offer_row", "waiting_nodes"]


class Waiting(NamedTuple):
    """Nodes to visit; `order` and `numbers` are a heap of their numbers (`kernels.heap`)."""

    order: NDArray[np.float64]
    numbers: NDArray[np.int64]
    places: NDArray[np.int64]  # [n, 4]: level, node, and its part of a list


@njit
def waiting_nodes() -> Waiting:
    """Room for a few nodes."""
    return Waiting(np.empty(256), np.empty(256, np.int64), np.empty((256, 4), np.int64))


@njit(lean=True)
def enter(
    w: Waiting, waiting: int, made: int, bound: float, level: int, node: int, lo: int, hi: int
) -> None:
    """Add node number `made` to the `waiting` ones."""
    w.places[made, 0] = level
    w.places[made, 1] = node
    w.places[made, 2] = lo
    w.places[made, 3] = hi
    push(w.order, w.numbers, waiting, bound, made)


@njit
def more_room(w: Waiting, made: int) -> Waiting:
    """The same nodes with room for three times as many more."""
    size = 4 * made
    order, numbers, places = np.empty(size), np.empty(size, np.int64), np.empty((size, 4), np.int64)
    order[:made] = w.order[:made]
    numbers[:made] = w.numbers[:made]
    places[:made] = w.places[:made]
    return Waiting(order, numbers, places)


@njit(lean=True)
def offer_row(
    space: int,
    c: Columns,
    handle: int,
    q: Queries,
    i: int,
    plan: Plan,
    wish: Wish,
    j: int,
    best: Best,
    row: int,
) -> None:
    """Offer a row, found on the list at place `j` of the plan (-1: on none), to query `i`.

    The distance is looked at first: most rows end there.
    """
    far = distance(space, wish.x, wish.y, c.at[row, 0], c.at[row, 1])
    if least_key(wish, far, reach_of(wish, j)) > worst(best, i):
        return
    if not (plan.covered or in_period(c, q, i, row)):
        return
    if not (plan.proved or len(plan.tokens) == 0 or true_of(plan, c, row)):
        return
    if j > 0 and found_before(plan, c, row, j):
        return
    rank = c.when[row, 1]
    tie = -rank if wish.by_score else rank
    offer(best, i, key_of(wish, c, row, far), tie, handle + row, c.when[row, 0])
