"""Finding what changes on one shard: one file (or folder) a structure.

Every index keeps one kind of subscription and gives, for a batch of objects, exactly the changes
that the plain scan gives (`LocalIndex` in `index.base` says how). `INDEXES` is the registry:

- `scan`: every object against every subscription (the oracle, plain Python);
- `inverted`: one inverted file, a list a word (DkM-SKS section 3.1);
- `grid-inverted`: a grid of equal cells, an inverted file a cell (DkM-SKS section 4.3);
- `rect-inverted`: subsets by place, a rectangle and an inverted file each (DkM-SKS section 3.2);
- `gi2`: a grid of equal cells with an inverted file each, lazy deletion (PS2Stream section IV.D);
- `fast`: a pyramid with an adaptive keyword index a cell (Tornado section 3.2);
- `pyramid`: lists a word and a cell, as large as the region or ball needs (nearcast's own).
"""

from __future__ import annotations

from nearcast.index.base import LocalIndex
from nearcast.index.fast import Fast
from nearcast.index.gi2 import Gi2
from nearcast.index.grid_inverted import GridInverted
from nearcast.index.inverted import Inverted
from nearcast.index.pyramid import Pyramid
from nearcast.index.rect_inverted import RectInverted
from nearcast.index.scan import Scan

INDEXES: dict[str, type[LocalIndex]] = {
    i.name: i for i in (Scan, Inverted, GridInverted, RectInverted, Gi2, Fast, Pyramid)
}

__all__ = [
    "INDEXES",
    "Fast",
    "Gi2",
    "GridInverted",
    "Inverted",
    "LocalIndex",
    "Pyramid",
    "RectInverted",
    "Scan",
]
