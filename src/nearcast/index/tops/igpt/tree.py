"""The quadtree: which leaf a subscription is in, splitting leaves, what is known of a cell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops.igpt.bounds import lambda_s
from nearcast.index.tops.igpt.lists import free_list
from nearcast.index.tops.igpt.places import inner_distance, longitude, set_box
from nearcast.index.tops.igpt.state import (
    CELL,
    CHILD,
    DEAD,
    DEPTH,
    DIRTY,
    FARTHEST,
    HEAD,
    INNER,
    KEYS,
    LEAF,
    LEAST,
    LISTED,
    MAXDIST,
    MEMBERS,
    MOST_DEPTH,
    NEXT,
    NODES,
    ORDINAL,
    STATE,
    Arrays,
    key_of,
)
from nearcast.index.tops.state import ALPHA, FLOOR, Tops, X, Y
from nearcast.kernels import postings as pl
from nearcast.model.jit import njit

Longs = NDArray[np.int64]


@njit(lean=True)
def new_node(ig: Arrays, space: int, node: int, depth: int) -> None:
    """Make an empty leaf of a node whose rectangle is set."""
    for c in range(DIRTY + 1):
        ig.tree[node, c] = 0
    ig.tree[node, DEPTH] = depth
    set_box(space, ig.rects[node], ig.cells[node])
    ig.cells[node, LEAST], ig.cells[node, MAXDIST] = np.inf, 0.0


@njit(lean=True)
def plant(ig: Arrays, space: int, west: float, south: float, east: float, north: float) -> None:
    """Begin with a root of this rectangle, and one leaf for all that is outside."""
    for c in range(4):
        ig.rects[0, c] = np.inf if c >= 2 else -np.inf
    ig.rects[1, 0], ig.rects[1, 1], ig.rects[1, 2], ig.rects[1, 3] = west, south, east, north
    new_node(ig, space, 1, 0)
    for c in range(DIRTY + 1):
        ig.tree[0, c] = 0
    for c in range(6):
        ig.cells[0, c] = np.inf if c >= 3 else -np.inf
    ig.cells[0, LEAST], ig.cells[0, MAXDIST] = np.inf, 0.0
    ig.meta[NODES] = 2


@njit(lean=True)
def leaf_of(ig: Arrays, x: float, y: float) -> int:
    """The leaf in which a place is."""
    r = ig.rects[1]
    if not (r[0] <= x <= r[2] and r[1] <= y <= r[3]):
        return 0
    node = np.int64(1)
    while ig.tree[node, CHILD] > 0:
        node = ig.tree[node, CHILD] + _quarter(ig, node, x, y)
    return node


@njit(lean=True, forceinline=True)
def _quarter(ig: Arrays, node: int, x: float, y: float) -> int:
    """Which of four children a place is in."""
    mx = 0.5 * ig.rects[node, 0] + 0.5 * ig.rects[node, 2]
    my = 0.5 * ig.rects[node, 1] + 0.5 * ig.rects[node, 3]
    return np.int64(x >= mx) + 2 * np.int64(y >= my)


@njit(lean=True)
def _enter(ig: Arrays, t: Tops, space: int, node: int, slot: int) -> None:
    """Make a subscription one of a leaf."""
    x = longitude(space, t.rows[slot, X])
    ig.half[slot, CELL] = np.int32(node + 1)
    ig.half[slot, NEXT] = ig.tree[node, HEAD]
    ig.tree[node, HEAD] = np.int32(slot + 1)
    ig.tree[node, MEMBERS] += 1
    inside = inner_distance(space, x, t.rows[slot, Y], ig.rects[node]) if node > 0 else 0.0
    ig.subs[slot, INNER] = inside
    least = lambda_s(t.rows[slot, FLOOR], t.rows[slot, ALPHA])
    ig.cells[node, LEAST] = min(ig.cells[node, LEAST], least)
    ig.cells[node, MAXDIST] = max(ig.cells[node, MAXDIST], ig.subs[slot, FARTHEST])


@njit(lean=True)
def place(ig: Arrays, t: Tops, space: int, slots: Longs, begin: int, moved: Longs) -> int:
    """Put slots from number `begin` on into their leaves; fewer than all are: nodes are short.

    Leaves are split when they have more than `LEAF`. `moved` gets the slots that were on lists of
    such a leaf and must be put on others; in front their number.
    """
    for q in range(begin, len(slots)):
        if ig.meta[NODES] + 4 * MOST_DEPTH + 4 > len(ig.tree):
            return q
        slot = slots[q]
        node = leaf_of(ig, longitude(space, t.rows[slot, X]), t.rows[slot, Y])
        _enter(ig, t, space, node, slot)
        while ig.tree[node, MEMBERS] > LEAF and _can_split(ig, node):
            refresh(ig, t, node)  # the dead do not count
            if ig.tree[node, MEMBERS] <= LEAF:
                break
            node = _split(ig, t, space, node, moved)
    return len(slots)


@njit(lean=True, forceinline=True)
def _can_split(ig: Arrays, node: int) -> bool:
    return bool(node > 0 and ig.tree[node, DEPTH] < MOST_DEPTH)


@njit(lean=True)
def _split(ig: Arrays, t: Tops, space: int, node: int, moved: Longs) -> int:
    """Split a leaf; the child that has most."""
    child = ig.meta[NODES]
    ig.meta[NODES] += 4
    r = ig.rects[node]
    mx, my = 0.5 * r[0] + 0.5 * r[2], 0.5 * r[1] + 0.5 * r[3]
    for quarter in range(4):
        east, north = quarter & 1, quarter >> 1
        own = ig.rects[child + quarter]
        own[0], own[2] = (mx, r[2]) if east else (r[0], mx)
        own[1], own[3] = (my, r[3]) if north else (r[1], my)
        new_node(ig, space, child + quarter, ig.tree[node, DEPTH] + 1)
    link = ig.tree[node, HEAD]
    ig.tree[node, HEAD], ig.tree[node, MEMBERS] = 0, 0
    ig.cells[node, LEAST] = np.inf
    ig.tree[node, CHILD] = np.int32(child)
    while link > 0:
        slot = np.int64(link) - 1
        link = ig.half[slot, NEXT]
        first = np.int64(ig.half[slot, KEYS])
        for j in range(first, first + ig.half[slot, LISTED]):
            row = pl.find(ig.lists, key_of(node, ig.numbers[j, ORDINAL]))
            if row >= 0:
                free_list(ig, row)
        if ig.half[slot, LISTED] > 0:
            ig.half[slot, LISTED] = 0
            moved[0] += 1
            moved[moved[0]] = slot
        x, y = longitude(space, t.rows[slot, X]), t.rows[slot, Y]
        _enter(ig, t, space, child + _quarter(ig, node, x, y), slot)
    most = child
    for quarter in range(child + 1, child + 4):
        if ig.tree[quarter, MEMBERS] > ig.tree[most, MEMBERS]:
            most = quarter
    return most


@njit(lean=True)
def refresh(ig: Arrays, t: Tops, node: int) -> None:
    """What is known of a cell, anew; the dead go."""
    link, last, members = ig.tree[node, HEAD], -1, 0
    least, farthest = np.inf, 0.0
    ig.tree[node, HEAD] = 0
    while link > 0:
        slot = np.int64(link) - 1
        link = ig.half[slot, NEXT]
        if ig.half[slot, STATE] & DEAD:
            continue
        if last < 0:
            ig.tree[node, HEAD] = np.int32(slot + 1)
        else:
            ig.half[last, NEXT] = np.int32(slot + 1)
        ig.half[slot, NEXT] = 0
        last = slot
        members += 1
        least = min(least, lambda_s(t.rows[slot, FLOOR], t.rows[slot, ALPHA]))
        farthest = max(farthest, ig.subs[slot, FARTHEST])
    ig.tree[node, MEMBERS] = np.int32(members)
    ig.tree[node, DIRTY] = 0
    ig.cells[node, LEAST], ig.cells[node, MAXDIST] = least, farthest


@njit(lean=True)
def refresh_dirty(ig: Arrays, t: Tops) -> None:
    """The same of all cells in which something changed."""
    for node in range(ig.meta[NODES]):
        if ig.tree[node, DIRTY]:
            refresh(ig, t, node)
