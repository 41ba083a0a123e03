"""`sstd-text`: the baseline Text of SSTD (section 7.1)."""

from __future__ import annotations

from nearcast.routing.sstd.live import Reallocating
from nearcast.routing.sstd.qt_tree import TEXTUAL


class SstdText(Reallocating):
    """Algorithm 1 with textual partitioning alone: every subscription goes to every shard."""

    name = "sstd-text"
    paper = "SSTD (Chen et al.)"
    about = "posts with similar words at one shard, subscriptions at all"

    @property
    def methods(self) -> tuple[int, ...]:
        """By words."""
        return (TEXTUAL,)
