"""Versions of QT-tree and mapping table, for asks that reach back before a change (SSTD, 5.2, 5.3).

An adjustment moves continuous queries and leaves objects where they are. So an ask goes to the
workers of all leaves that it overlaps, of every version by which an object of its period may have
been routed. The paper says it leaf by leaf: where the leaf of the newest tree was a leaf before,
to its worker then; where an ancestor was, to that one's; where its descendants were, to theirs.
That is all leaves of the old tree in the same place, and so it is found here. It also covers a
leaf that was split, merged again and split otherwise since, of which the three cases say nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from nearcast.kernels.ragged import frozen
from nearcast.routing.grid.survey import RegionSurvey
from nearcast.routing.sstd.qt_tree import QtTree, pack, unpack
from nearcast.routing.sstd.query_routing import query_leaves

Boxes = NDArray[np.float64]  # [b, 4]


class _Stored(msgspec.Struct, array_like=True):
    since: int
    tree: bytes


@dataclass(slots=True)
class Versions:
    """Trees with their mapping tables, each from its validation time until that of the next one.

    A time is that at which objects are handled, not the time that they carry: by it they were
    routed. Any unit will do: milliseconds, or numbers of batches.
    """

    since: list[int] = field(default_factory=list)  # ascending
    trees: list[QtTree] = field(default_factory=list)

    def add(self, tree: QtTree, since: int) -> None:
        """The tree that holds from `since` on."""
        if self.since and since <= self.since[-1]:
            raise ValueError(f"a version from {since} on comes after one from {self.since[-1]} on")
        self.since.append(since)
        self.trees.append(tree)

    def forget(self, before: int) -> None:
        """Let go versions that ended at or before `before`: no ask reaches back to them."""
        keep = max(bisect_right(self.since, before) - 1, 0)
        del self.since[:keep], self.trees[:keep]

    def at(self, from_time: int, until_time: int) -> list[QtTree]:
        """The trees that held at some time from `from_time` to `until_time`, both included."""
        first = max(bisect_right(self.since, from_time) - 1, 0)
        return self.trees[first : bisect_right(self.since, until_time)]

    def shards_for(self, boxes: Boxes, from_time: int, until_time: int) -> list[int]:
        """The workers that may have objects of this period in a region, given as outer boxes.

        Keywords are not looked at, as nowhere in the routing of queries (4.2): which leaf an
        object went to depends on the keyword lists as they were then.
        """
        found: set[int] = set()
        region = _region(boxes)
        for tree in self.at(from_time, until_time):
            _, leaves = query_leaves(tree, region)
            found.update(tree.shard[leaves].tolist())
        return sorted(found)

    def to_bytes(self) -> bytes:
        """As `from_bytes` reads it: the paper writes tables and trees to disk."""
        pairs = zip(self.since, self.trees, strict=True)
        return msgspec.msgpack.encode([_Stored(since, pack(tree)) for since, tree in pairs])

    @staticmethod
    def from_bytes(data: bytes) -> Versions:
        """The versions that `to_bytes` wrote."""
        stored = msgspec.msgpack.decode(data, type=list[_Stored])
        return Versions([s.since for s in stored], [unpack(s.tree) for s in stored])


def _region(boxes: Boxes) -> RegionSurvey:
    """One query with these boxes."""
    none = np.zeros(2, np.int64)
    words = np.empty(0, np.uint64)
    return RegionSurvey(
        np.zeros(1, np.uint64),
        np.array([0, len(boxes)], np.int64),
        frozen(np.asarray(boxes, np.float64)),
        none,
        words,
        np.zeros(1, bool),
    )
