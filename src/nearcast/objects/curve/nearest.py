"""The k best rows, by distance or by score: nodes in the order of what they can have at best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.boxes import at_least
from nearcast.kernels.heap import pop
from nearcast.model.jit import njit
from nearcast.objects.base import Centres, Queries, Wishes
from nearcast.objects.curve.index import CurveIndex
from nearcast.objects.curve.within import first_from
from nearcast.objects.offering import enter, more_room, offer_row, waiting_nodes
from nearcast.objects.results import Best, worst
from nearcast.objects.scores import Wish, least_key, reach_of, wish_of
from nearcast.objects.slices import Columns
from nearcast.objects.tree import FAN, node_rows
from nearcast.objects.where import LISTS, NONE, Plan, plan_of

__all__ = ["offer_rows"]

_FEW = 32  # rows of a node that are looked at without looking at its children

Longs = NDArray[np.int64]


@njit
def offer_rows(
    space: int,
    c: Columns,
    ix: CurveIndex,
    handle: int,
    q: Queries,
    centres: Centres,
    wishes: Wishes,
    which: Longs,
    limits: Longs,
    best: Best,
) -> int:
    """Offer the rows of a slice to the results of queries; how many were examined."""
    examined = 0
    for i in which:
        plan = plan_of(c, ix.list_starts, q, i, limits)
        if plan.sort == NONE:
            continue
        wish = wish_of(c, ix.list_starts, centres, wishes, i)
        if wish.by_score:
            # Who shares a keyword is on one of its lists; `where` is looked at besides.
            plan = Plan(LISTS, wish.held, False, plan.tokens, plan.stack, plan.covered)
        if plan.sort != LISTS:
            examined += _visit(space, c, ix, handle, q, i, plan, wish, -1, best)
            continue
        for j in range(len(plan.lists)):
            examined += _visit(space, c, ix, handle, q, i, plan, wish, j, best)
    return examined


@njit
def _visit(
    space: int,
    c: Columns,
    ix: CurveIndex,
    handle: int,
    q: Queries,
    i: int,
    plan: Plan,
    wish: Wish,
    j: int,
    best: Best,
) -> int:
    """Offer the rows of the list at place `j` of the plan; -1: all rows."""
    lo, hi = 0, len(c.at)
    if j >= 0:
        lo = np.int64(ix.list_starts[plan.lists[j]])
        hi = np.int64(ix.list_starts[plan.lists[j] + 1])
    nodes = waiting_nodes()
    top = len(ix.tree.firsts) - 2
    reach = reach_of(wish, j)
    enter(nodes, 0, 0, least_key(wish, 0.0, reach), top, 0, lo, hi)
    waiting, made = 1, 1
    examined = 0
    while waiting and nodes.order[0] <= worst(best, i):
        waiting = pop(nodes.order, nodes.numbers, waiting)
        level, node, lo, hi = nodes.places[nodes.numbers[waiting]]
        if level == 0 or hi - lo <= _FEW:
            for at in range(lo, hi):
                row = np.int64(ix.lists[at]) if j >= 0 else at
                offer_row(space, c, handle, q, i, plan, wish, j, best, row)
            examined += hi - lo
            continue
        if made + FAN > len(nodes.order):
            nodes = more_room(nodes, made)
        last = min((node + 1) * FAN, ix.tree.firsts[level] - ix.tree.firsts[level - 1])
        for child in range(node * FAN, last):
            end = node_rows(level - 1, child, len(c.at))[1]
            middle = first_from(ix.lists, lo, hi, end) if j >= 0 else end
            if middle > lo:
                box = ix.tree.boxes[ix.tree.firsts[level - 1] + child]
                bound = least_key(wish, at_least(space, wish.x, wish.y, box), reach)
                if bound <= worst(best, i):
                    enter(nodes, waiting, made, bound, level - 1, child, lo, middle)
                    waiting += 1
                    made += 1
            lo = middle
    return examined
