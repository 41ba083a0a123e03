"""Finding what changes on one shard: one file (or folder) per structure.

An index keeps subscriptions of one shape and gives, for a batch of objects, exactly the changes
that the plain scan gives (`LocalIndex` in `index.base` says how). It knows no kinds of queries:
a kind says which shape its subscriptions have. `INDEXES` is the registry, by shape and name.

Regions: every object inside a region matches.
Balls: the k nearest objects; a centre, and a radius that shrinks as results come.

- `scan`: every object against every subscription (the oracle, plain Python); any kind;
- `inverted`: one inverted file, one list per word (DkM-SKS section 3.1); both shapes;
- `grid-inverted`: a grid of equal cells, one inverted file per cell (DkM-SKS section 4.3); balls;
- `rect-inverted`: subsets by place, a rectangle and an inverted file each (DkM-SKS 3.2); balls;
- `gi2`: a grid of equal cells, one inverted file per cell, lazy deletion (PS2Stream IV.D); regions;
- `fast`: a pyramid with an adaptive keyword index per cell (Tornado section 3.2); regions;
- `pyramid`: one list per word and cell; the cell size follows the region or ball (nearcast's own);
  both shapes.

Tops: the k objects of highest score in a window; a floor that a score must reach.

- `ciq`: covering cells with a least similarity each, document at a time (Skype section 2.2);
- `igpt`: a quadtree, per leaf lists in groups by alpha, pruned by bounds (Skype section 5);
- `ipt`: the same where only single subscriptions are pruned (Skype section 8.1.2);
- `reach`: one list per word of how far subscriptions reach at their floors (nearcast's own); tops.
"""

from __future__ import annotations

from nearcast.index.balls.grid_inverted import GridInverted
from nearcast.index.balls.inverted import InvertedBalls
from nearcast.index.balls.pyramid import PyramidBalls
from nearcast.index.balls.rect_inverted import RectInverted
from nearcast.index.base import LocalIndex
from nearcast.index.fast.index import Fast
from nearcast.index.gi2.index import Gi2
from nearcast.index.regions.inverted import InvertedRegions
from nearcast.index.regions.pyramid import PyramidRegions
from nearcast.index.scan import Scan
from nearcast.index.tops.ciq.index import Ciq
from nearcast.index.tops.igpt.index import Igpt
from nearcast.index.tops.ipt.index import Ipt
from nearcast.index.tops.reach.index import Reach

_ALL: tuple[type[LocalIndex], ...] = (
    InvertedRegions,
    InvertedBalls,
    GridInverted,
    RectInverted,
    Gi2,
    Fast,
    PyramidRegions,
    PyramidBalls,
    Reach,
    Igpt,
    Ipt,
    Ciq,
)
INDEXES: dict[str, dict[str, type[LocalIndex]]] = {
    shape: {i.name: i for i in _ALL if i.shape == shape} for shape in ("regions", "balls", "tops")
}

__all__ = [
    "INDEXES",
    "Ciq",
    "Fast",
    "Gi2",
    "GridInverted",
    "Igpt",
    "InvertedBalls",
    "InvertedRegions",
    "Ipt",
    "LocalIndex",
    "PyramidBalls",
    "PyramidRegions",
    "Reach",
    "RectInverted",
    "Scan",
]
