"""`sstd`: a QT-tree, each node of it split by place or by words, whichever costs less."""

from __future__ import annotations

from nearcast.routing.sstd.construction import BOTH
from nearcast.routing.sstd.live import Reallocating


class Sstd(Reallocating):
    """Algorithm 1 with both methods (section 4.1.2)."""

    name = "sstd"
    paper = "SSTD (Chen et al.)"
    about = "a quadtree whose nodes split by place or by words; each object at one shard"
    by_place = True

    @property
    def methods(self) -> tuple[int, ...]:
        """By place and by words."""
        return BOTH
