"""Which evaluators can hand cells to which, so that all partitions stay rectangles (figure 3)."""

from __future__ import annotations

from nearcast.routing.tornado.a_grid import Partitions
from nearcast.routing.tornado.aggregates import Rectangle
from nearcast.routing.tornado.decision import rectangle


def mergeable(a: Rectangle, b: Rectangle) -> bool:
    """Whether two partitions share an entire boundary: together they are a rectangle."""
    return shares_horizontal(a, b) or shares_vertical(a, b)


def shares_horizontal(a: Rectangle, b: Rectangle) -> bool:
    """Whether the boundary of both is one and the same horizontal line."""
    return (a[0], a[2]) == (b[0], b[2]) and (a[3] + 1 == b[1] or b[3] + 1 == a[1])


def shares_vertical(a: Rectangle, b: Rectangle) -> bool:
    """Whether the boundary of both is one and the same vertical line."""
    return (a[1], a[3]) == (b[1], b[3]) and (a[2] + 1 == b[0] or b[2] + 1 == a[0])


def corner_band(a: Rectangle, b: Rectangle) -> Rectangle | None:
    """The band of `a` that a corner shift gives to `b`; None: they do not form a corner.

    `b` lies beside `a`, is shorter, and ends where `a` ends on one side. All rows (or columns) of
    `a` that `b` has too make `b` longer, and what is left of both is a rectangle.
    """
    if (a[2] + 1 == b[0] or b[2] + 1 == a[0]) and _ends_within(a[1], a[3], b[1], b[3]):
        return a[0], b[1], a[2], b[3]
    if (a[3] + 1 == b[1] or b[3] + 1 == a[1]) and _ends_within(a[0], a[2], b[0], b[2]):
        return b[0], a[1], b[2], a[3]
    return None


def _ends_within(low: int, high: int, b_low: int, b_high: int) -> bool:
    """Whether b is a part of the span, but not all, and one of its ends."""
    return (b_low == low and b_high < high) or (b_high == high and b_low > low)


def used(partitions: Partitions) -> list[int]:
    """The evaluators that have cells."""
    return [p for p in range(len(partitions)) if partitions[p, 0] <= partitions[p, 2]]


def mergeable_pairs(partitions: Partitions) -> list[tuple[int, int]]:
    """All pairs (lower, higher) of partitions that share an entire boundary."""
    begins: dict[tuple[int, int, int, int], int] = {}
    for p in used(partitions):
        x1, y1, x2, y2 = rectangle(partitions, p)
        begins[0, x1, y1, y2] = p
        begins[1, y1, x1, x2] = p
    pairs = []
    for p in used(partitions):
        x1, y1, x2, y2 = rectangle(partitions, p)
        for key in ((0, x2 + 1, y1, y2), (1, y2 + 1, x1, x2)):
            if key in begins:
                pairs.append((min(p, begins[key]), max(p, begins[key])))
    return sorted(pairs)
