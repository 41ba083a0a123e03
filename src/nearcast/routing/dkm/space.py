"""Space-oriented partition: the quadtree splits of DkM-SKS sections 3.2 and 4.2.

A collection of subsets is one array of subscription numbers, in which every subset is a run, and
the splits happen in place. A split cuts the subset's space in four equal parts at its centre; a
point on the line belongs to the upper part. Parts without subscriptions are dropped: they would
count as subsets, but hold nothing to deal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.heap import pop, push
from nearcast.kernels.quarters import descend, quarter
from nearcast.model.jit import njit
from nearcast.routing.dkm.costs import Subscriptions, enclose, space_subset_cost
from nearcast.routing.dkm.places import Box, Places


class Subsets(NamedTuple):
    """A collection of disjoint subsets of S; subset i is `order[first[i]:last[i]]`."""

    order: NDArray[np.int64]  # [|S|]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    cells: NDArray[np.float64]  # [*, 4]: its space r
    boxes: NDArray[np.float64]  # [*, 4]: the rectangle R around its balls
    costs: NDArray[np.float64]  # in objects


class Cut(NamedTuple):
    """One subset cut into up to four: part i is `bounds[i]:bounds[i + 1]`, perhaps empty."""

    bounds: NDArray[np.int64]  # [5]
    cells: NDArray[np.float64]  # [4, 4]
    boxes: NDArray[np.float64]  # [4, 4]
    costs: NDArray[np.float64]  # [4]


@njit
def new_cut() -> Cut:
    """A cut to be filled in."""
    return Cut(np.zeros(5, np.int64), np.empty((4, 4)), np.empty((4, 4)), np.zeros(4))


@njit
def whole(s: Subscriptions, p: Places, capacity: int) -> Subsets:
    """S as the one subset, in the space of all subscriptions and objects; room for more."""
    n = len(s.x)
    c = Subsets(
        np.arange(n),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.empty((capacity, 4)),
        np.empty((capacity, 4)),
        np.zeros(capacity),
    )
    c.last[0] = n
    c.cells[0] = p.bounds
    _extend(s, c.order, c.cells[0])
    enclose(s.boxes, c.order, c.boxes[0])
    return c


@njit
def _extend(s: Subscriptions, members: NDArray[np.int64], box: Box) -> None:
    """Make `box` hold the places of `members`."""
    for i in members:
        box[0], box[1] = min(box[0], s.x[i]), min(box[1], s.y[i])
        box[2], box[3] = max(box[2], s.x[i]), max(box[3], s.y[i])


@njit
def space_only_partition(
    s: Subscriptions,
    members: NDArray[np.int64],
    scratch: NDArray[np.int64],
    cell: Box,
    cut: Cut,
) -> bool:
    """Space-only-Partition (section 4.2): sort `members` by quarter of `cell`, in place.

    False, and nothing is done, when all are at one spot. Keeps the order within a quarter.
    """
    around = np.array([np.inf, np.inf, -np.inf, -np.inf])
    _extend(s, members, around)
    if not (around[0] < around[2] or around[1] < around[3]):
        return False
    inner = cell.copy()
    cx, cy = descend(inner, around)
    cut.bounds[:] = 0
    for i in members:
        cut.bounds[1 + int(s.x[i] >= cx) + 2 * int(s.y[i] >= cy)] += 1
    for part in range(4):
        cut.bounds[part + 1] += cut.bounds[part]
        quarter(inner, cx, cy, part, cut.cells[part])
    top = cut.bounds[:4].copy()
    for i in members:
        part = int(s.x[i] >= cx) + 2 * int(s.y[i] >= cy)
        scratch[top[part]] = i
        top[part] += 1
    members[:] = scratch[: len(members)]
    return True


@njit
def replace(c: Subsets, count: int, at: int, cut: Cut) -> int:
    """Put the parts of subset `at` in its place and, from the second on, at the end.

    The new number of subsets. Room for three more must be there.
    """
    begin, target = c.first[at], at
    for part in range(4):
        if cut.bounds[part] == cut.bounds[part + 1]:
            continue
        c.first[target] = begin + cut.bounds[part]
        c.last[target] = begin + cut.bounds[part + 1]
        c.cells[target] = cut.cells[part]
        c.boxes[target] = cut.boxes[part]
        c.costs[target] = cut.costs[part]
        if target != at:
            count += 1
        target = count
    return count


@njit
def keep(c: Subsets, count: int) -> Subsets:
    """The first `count` subsets."""
    return Subsets(
        c.order,
        c.first[:count].copy(),
        c.last[:count].copy(),
        c.cells[:count].copy(),
        c.boxes[:count].copy(),
        c.costs[:count].copy(),
    )


@njit
def subset_of(c: Subsets) -> NDArray[np.int64]:
    """The subset of each subscription."""
    out = np.empty(len(c.order), np.int64)
    for i in range(len(c.first)):
        for t in range(c.first[i], c.last[i]):
            out[c.order[t]] = i
    return out


@njit
def _cost_parts(s: Subscriptions, p: Places, members: NDArray[np.int64], cut: Cut) -> None:
    """R and equation (3) of each part."""
    for part in range(4):
        mine = members[cut.bounds[part] : cut.bounds[part + 1]]
        enclose(s.boxes, mine, cut.boxes[part])
        cut.costs[part] = space_subset_cost(p, cut.boxes[part], len(mine))


@njit
def space_oriented_partition(s: Subscriptions, p: Places, target: int) -> Subsets:
    """Section 3.2: split the most expensive subspace until there are `target` = theta · m.

    Fewer, when what is left cannot be split: all its subscriptions are at one spot.
    """
    c = whole(s, p, target + 3)
    scratch = np.empty(len(s.x), np.int64)
    keys, items = np.empty(target + 3), np.empty(target + 3, np.int64)
    cut = new_cut()
    count = 1
    c.costs[0] = space_subset_cost(p, c.boxes[0], len(s.x))
    size = push(keys, items, 0, -c.costs[0], 0)
    while size > 0 and count < target:
        size = pop(keys, items, size)
        at = items[size]
        members = c.order[c.first[at] : c.last[at]]
        if not space_only_partition(s, members, scratch, c.cells[at], cut):
            continue
        _cost_parts(s, p, members, cut)
        before, count = count, replace(c, count, at, cut)
        size = push(keys, items, size, -c.costs[at], at)
        for new in range(before, count):
            size = push(keys, items, size, -c.costs[new], new)
    return keep(c, count)
