"""Subsets S_r of a shard's subscriptions, each with a rectangle R around its balls (SOP).

A quadtree over the places of subscriptions says which subset one belongs to; R encloses the balls
of all its members (DkM-SKS section 3.2). R may be larger than it need be, never smaller: it grows
as subscriptions join, and as their balls only shrink, it is made anew now and then.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.cells import ROOT
from nearcast.kernels.quarters import Quarters, leaf_of
from nearcast.model.jit import njit

THETA = 20  # subsets per worker, as in the paper
GROUPS = THETA + 2  # the last split may give three more
NODES = 2 * GROUPS
assert GROUPS <= ROOT  # a list of a group has its number for a level


class Groups(NamedTuple):
    """The subsets; without a row in `boxes` where lists know cells instead."""

    boxes: NDArray[np.float64]  # [GROUPS, 4]: R; minx > maxx where it encloses nothing
    tree: Quarters


def no_groups() -> Groups:
    """What an index without subsets has."""
    tree = Quarters(np.empty((0, 2)), np.empty((0, 4), np.int32))
    return Groups(np.empty((0, 4)), tree)


@njit(lean=True)
def forget_boxes(g: Groups) -> None:
    """Let every R enclose nothing."""
    for i in range(len(g.boxes)):
        g.boxes[i, 0] = g.boxes[i, 1] = np.inf
        g.boxes[i, 2] = g.boxes[i, 3] = -np.inf


@njit(lean=True)
def enclose(g: Groups, group: int, boxes: NDArray[np.float64], n: int) -> None:
    """Let R of `group` enclose the n boxes of a ball too; 0: the whole space.

    Two boxes are one ball on both sides of the antimeridian: R then spans all longitudes.
    """
    box = g.boxes[group]
    if n == 0:
        box[0] = box[1] = -np.inf
        box[2] = box[3] = np.inf
    for i in range(n):
        box[0], box[1] = min(box[0], boxes[i, 0]), min(box[1], boxes[i, 1])
        box[2], box[3] = max(box[2], boxes[i, 2]), max(box[3], boxes[i, 3])


@njit(lean=True)
def join(g: Groups, x: float, y: float, boxes: NDArray[np.float64], n: int) -> int:
    """The group of a subscription at (x, y), whose R now encloses its ball as well."""
    group = leaf_of(g.tree, x, y)
    enclose(g, group, boxes, n)
    return group


@njit(lean=True)
def holds(g: Groups, group: int, x: float, y: float) -> bool:
    """Whether (x, y) lies in R of `group`."""
    box = g.boxes[group]
    return bool(box[0] <= x <= box[2] and box[1] <= y <= box[3])
