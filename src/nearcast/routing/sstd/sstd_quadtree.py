"""`sstd-quadtree`: the baseline Quadtree of SSTD (section 7.1)."""

from __future__ import annotations

from nearcast.routing.sstd.live import Reallocating
from nearcast.routing.sstd.qt_tree import SPATIAL


class SstdQuadtree(Reallocating):
    """Algorithm 1 with spatial partitioning alone."""

    name = "sstd-quadtree"
    paper = "SSTD (Chen et al.)"
    about = "a quadtree, the costliest cell split first; each object at one shard"
    by_place = True

    @property
    def methods(self) -> tuple[int, ...]:
        """By place."""
        return (SPATIAL,)
