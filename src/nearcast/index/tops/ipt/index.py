"""`ipt`: Skype's index with individual pruning only."""

from __future__ import annotations

from nearcast.index.tops.base import TopIndex
from nearcast.index.tops.igpt.index import Pruned

__all__ = ["Ipt"]


class _Individually(Pruned):
    """Lists have one group, which is read to its end, in every cell."""

    groups = 1


class Ipt(TopIndex):
    """Skype's index without what section 5.2 adds: no group, and no cell, is skipped."""

    name = "ipt"
    paper = "Skype 5.1, figure 12"
    about = "the quadtree of igpt, where only single subscriptions are pruned"
    dissemination = _Individually
