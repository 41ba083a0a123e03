"""Searches of an R-tree with inverted lists: a node is visited if its box and its words allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.boxes import at_least
from nearcast.kernels.heap import pop
from nearcast.kernels.program import TAG_MASK, TAG_WORD
from nearcast.model.geometry import region_contains
from nearcast.model.jit import njit
from nearcast.objects.base import Centres, Queries, Regions, Wishes
from nearcast.objects.bounds import INSIDE, OUTSIDE, relation
from nearcast.objects.offering import enter, more_room, offer_row, waiting_nodes
from nearcast.objects.results import Best, worst
from nearcast.objects.rtree.index import RTreeIndex, entry_of
from nearcast.objects.scores import Wish, least_key, reach_of, wish_of
from nearcast.objects.slices import Columns
from nearcast.objects.tree import FAN, LEAF, node_rows, outer_boxes_of
from nearcast.objects.where import (
    LISTS,
    NONE,
    Plan,
    found_before,
    in_period,
    plan_of,
    true_of,
)

__all__ = ["count_words", "offer_rows", "rows_within"]

Longs = NDArray[np.int64]


@njit
def _may_match(ix: RTreeIndex, plan: Plan, node: int) -> bool:
    """Whether the words of a node allow a match: all of a conjunction, or one of the cover."""
    if plan.sort != LISTS:
        return True
    together = len(plan.tokens) > 0
    for token in plan.tokens:
        together &= token & TAG_MASK == TAG_WORD
    if together:
        for token in plan.tokens:
            if entry_of(ix, node, np.int64(token >> np.uint64(2))) < 0:
                return False
    return _shares_word(ix, plan, node)


@njit
def _leaf_rows(c: Columns, ix: RTreeIndex, plan: Plan, leaf: int, rows: Longs) -> int:
    """Put the rows of a leaf to look at into `rows`, each once; how many there are."""
    n = 0
    first, last = node_rows(0, leaf, len(c.at))
    if plan.sort != LISTS:
        for row in range(first, last):
            rows[n] = row
            n += 1
        return n
    for j in range(len(plan.lists)):
        entry = entry_of(ix, leaf, plan.lists[j])
        if entry < 0:
            continue
        for at in range(ix.list_starts[entry], ix.list_starts[entry + 1]):
            row = first + np.int64(ix.lists[at])
            if not found_before(plan, c, row, j):
                rows[n] = row
                n += 1
    return n


@njit
def _visit_region(
    space: int, c: Columns, ix: RTreeIndex, q: Queries, r: Regions, i: int, plan: Plan, whole: bool
) -> tuple[Longs, Longs, int]:
    """(rows that match, nodes all of whose rows match, how many rows were examined).

    With `whole`, a node inside the region of a query without words is given as it is.
    """
    data = r.numbers[r.offsets[i] : r.offsets[i + 1]]
    outer = outer_boxes_of(r, i)
    found = np.empty(256, np.int64)
    nodes = np.empty(64, np.int64)
    n = m = examined = 0
    rows = np.empty(LEAF, np.int64)
    top = len(ix.tree.firsts) - 2
    stack = np.empty((FAN * (top + 2), 3), np.int64)  # level, node, whether it is inside
    stack[0] = top, 0, 0
    size = 1
    while size:
        size -= 1
        level, node, inside = stack[size]
        number = ix.tree.firsts[level] + node
        if not inside:
            related = relation(space, r.code[i], data, outer, ix.tree.boxes[number])
            if related == OUTSIDE:
                continue
            inside = np.int64(related == INSIDE)
        if not _may_match(ix, plan, number):
            continue
        if inside and whole:
            nodes = _with_room(nodes, m + 1)
            nodes[m] = number
            m += 1
        elif level > 0:
            last = min((node + 1) * FAN, ix.tree.firsts[level] - ix.tree.firsts[level - 1])
            for child in range(node * FAN, last):
                stack[size] = level - 1, child, inside
                size += 1
        else:
            candidates = _leaf_rows(c, ix, plan, node, rows)
            examined += candidates
            found = _with_room(found, n + candidates)
            for row in rows[:candidates]:
                if not inside and not region_contains(
                    space, r.code[i], data, c.at[row, 0], c.at[row, 1]
                ):
                    continue
                if (plan.covered or in_period(c, q, i, row)) and (
                    plan.proved or len(plan.tokens) == 0 or true_of(plan, c, row)
                ):
                    found[n] = row
                    n += 1
    return found[:n], nodes[:m], examined


@njit
def _with_room(rows: Longs, needed: int) -> Longs:
    if needed <= len(rows):
        return rows
    more = np.empty(max(needed, 2 * len(rows)), np.int64)
    more[: len(rows)] = rows
    return more


@njit
def rows_within(
    space: int, c: Columns, ix: RTreeIndex, q: Queries, r: Regions, which: Longs, limits: Longs
) -> tuple[Longs, Longs, int]:
    """(queries, a row that each found, how many rows were examined)."""
    owner, rows = np.empty(256, np.int64), np.empty(256, np.int64)
    n = examined = 0
    for i in which:
        plan = plan_of(c, ix.holders, q, i, limits)
        if plan.sort == NONE:
            continue
        found, _, seen = _visit_region(space, c, ix, q, r, i, plan, False)
        examined += seen
        owner, rows = _with_room(owner, n + len(found)), _with_room(rows, n + len(found))
        owner[n : n + len(found)] = i
        rows[n : n + len(found)] = found
        n += len(found)
    return owner[:n].copy(), rows[:n].copy(), examined


@njit
def count_words(
    space: int,
    c: Columns,
    ix: RTreeIndex,
    q: Queries,
    r: Regions,
    i: int,
    limits: Longs,
    counts: NDArray[np.int64],
) -> tuple[Longs, int]:
    """Add the words of rows that match to `counts`: (which words, how many rows were examined).

    Tables of nodes inside the region are added as they are (SSTD section 6.2).
    """
    plan = plan_of(c, ix.holders, q, i, limits)
    touched = np.empty(256, np.int64)
    if plan.sort == NONE:
        return touched[:0], 0
    whole = plan.covered and len(plan.tokens) == 0
    rows, nodes, examined = _visit_region(space, c, ix, q, r, i, plan, whole)
    n = 0
    for node in nodes:
        for entry in range(ix.table_starts[node], ix.table_starts[node + 1]):
            code = ix.table_codes[entry]
            if counts[code] == 0:
                touched = _with_room(touched, n + 1)
                touched[n] = code
                n += 1
            counts[code] += np.int64(ix.table_counts[entry])
    for row in rows:
        for place in range(np.int64(c.starts[row]), np.int64(c.starts[row + 1])):
            code = c.codes[place]
            if counts[code] == 0:
                touched = _with_room(touched, n + 1)
                touched[n] = code
                n += 1
            counts[code] += 1
    return touched[:n], examined


@njit
def offer_rows(
    space: int,
    c: Columns,
    ix: RTreeIndex,
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
        plan = plan_of(c, ix.holders, q, i, limits)
        if plan.sort == NONE:
            continue
        wish = wish_of(c, ix.holders, centres, wishes, i)
        if wish.by_score:
            # Who shares a keyword is on one of its lists; `where` is looked at row by row.
            plan = Plan(LISTS, wish.held, False, plan.tokens, plan.stack, plan.covered)
        examined += _visit_nearest(space, c, ix, handle, q, i, plan, wish, best)
    return examined


@njit
def _visit_nearest(
    space: int,
    c: Columns,
    ix: RTreeIndex,
    handle: int,
    q: Queries,
    i: int,
    plan: Plan,
    wish: Wish,
    best: Best,
) -> int:
    """Visit nodes in the order of what they can have at best."""
    nodes = waiting_nodes()
    rows = np.empty(LEAF, np.int64)
    enter(nodes, 0, 0, -np.inf, len(ix.tree.firsts) - 2, 0, 0, 0)
    waiting, made, examined = 1, 1, 0
    reach = reach_of(wish, -1)
    while waiting and nodes.order[0] <= worst(best, i):
        waiting = pop(nodes.order, nodes.numbers, waiting)
        level, node = nodes.places[nodes.numbers[waiting]][:2]
        if level == 0:
            n = _leaf_rows(c, ix, plan, node, rows)
            examined += n
            for at in range(n):
                offer_row(space, c, handle, q, i, plan, wish, -1, best, rows[at])
            continue
        if made + FAN > len(nodes.order):
            nodes = more_room(nodes, made)
        last = min((node + 1) * FAN, ix.tree.firsts[level] - ix.tree.firsts[level - 1])
        for child in range(node * FAN, last):
            number = ix.tree.firsts[level - 1] + child
            far = at_least(space, wish.x, wish.y, ix.tree.boxes[number])
            bound = least_key(wish, far, reach)
            if bound <= worst(best, i) and _may_match(ix, plan, number):
                enter(nodes, waiting, made, bound, level - 1, child, 0, 0)
                waiting += 1
                made += 1
    return examined


@njit
def _shares_word(ix: RTreeIndex, plan: Plan, node: int) -> bool:
    """Whether a node has one of the words of the plan's lists."""
    for code in plan.lists:
        if entry_of(ix, node, code) >= 0:
            return True
    return False
