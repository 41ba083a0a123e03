"""Objects that stay: what asks, `last`, and windows read of the past, on one shard.

A store takes objects in object order, keeps them in slices of time, and answers searches exactly
as the plain scan does (`ObjectStore` in `objects.base` says how). Slices of intervals that are
over are sealed: they never change, so their file in the checkpoint is written once. `STORES` is
the registry.

- `scan`: every query against every object (the oracle, plain Python);
- `curve`: rows along a Hilbert curve under a tree of boxes, one list of rows per word, tables of
  frequent words per node (nearcast's own, the default);
- `rtree`: an R-tree per interval with inverted lists and term counts in its nodes (SSTD 6.1).
"""

from __future__ import annotations

from nearcast.objects.base import ObjectStore
from nearcast.objects.curve.store import Curve
from nearcast.objects.rtree.store import RTree
from nearcast.objects.scan import Scan

STORES: dict[str, type[ObjectStore]] = {s.name: s for s in (Scan, Curve, RTree)}
DEFAULT = Curve.name
REASON = (
    "of 300,000 posts 193 bytes each, loaded at 341,000 a second, terms of 1% of the space in "
    "2.1 ms; rtree 379 bytes, 130,000 a second, 7.6 ms (bench sstd --full)"
)
"""Why that one."""

__all__ = ["DEFAULT", "REASON", "STORES", "Curve", "ObjectStore", "RTree", "Scan"]
