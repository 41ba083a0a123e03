"""A QT-tree as a picture: the worker of each place."""

from __future__ import annotations

from nearcast.routing.sstd.cells import LEVELS
from nearcast.routing.sstd.qt_tree import LEAF, SPATIAL, QtTree

_DRAWN = 6  # 2⁶ cells along each axis


def drawn(tree: QtTree) -> list[list[int]]:
    """The worker of each cell, -1: several; lowest line first."""
    side = 1 << _DRAWN
    size = 1 << (LEVELS - _DRAWN)
    middle = [size * i + size // 2 for i in range(side)]
    return [[_worker_at(tree, x, y) for x in middle] for y in middle]


def _worker_at(tree: QtTree, across: int, up: int) -> int:
    """The worker of all that is at a place, if there is one only."""
    found: set[int] = set()
    stack = [0]
    while stack and len(found) < 2:
        node = stack.pop()
        first = int(tree.child[node])
        if tree.kind[node] == LEAF:
            found.add(int(tree.shard[node]))
        elif tree.kind[node] == SPATIAL:
            shift = LEVELS - 1 - int(tree.level[node])
            stack.append(first + 2 * (up >> shift & 1) + (across >> shift & 1))
        else:
            stack += range(first, first + 4)
    return found.pop() if len(found) == 1 else -1
