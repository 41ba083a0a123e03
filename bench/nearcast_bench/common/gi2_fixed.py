"""`gi2` with PS2Stream's published granularity: about 64 × 64 cells, whatever the queries are."""

from __future__ import annotations

import math

from nearcast.index.gi2 import lists as gl
from nearcast.index.gi2.index import Gi2
from nearcast.kinds import KINDS
from nearcast.kinds.base import MakeIndex
from nearcast.workload.corpora import TWEETS_US

CELLS = 64 * 64


class Gi2Fixed(Gi2):
    """Cells are squares with a power of two as side: of all, those that come next to 64 × 64.

    Over the USA that is half a degree, 116 × 50 cells.
    """

    name = "gi2-64"
    about = "gi2 with about 64 × 64 cells over the USA"

    def _choose(self) -> None:
        self._grid[gl.CHOSEN] = len(self)
        self._grid[gl.SIDE] = exponent()


def exponent() -> int:
    """Of the side of a cell, in degrees."""
    minx, miny, maxx, maxy = TWEETS_US.bounds
    return round(0.5 * math.log2((maxx - minx) * (maxy - miny) / CELLS))


def index_of(name: str) -> MakeIndex:
    """What makes the index of experiments with a name."""
    return Gi2Fixed if name == Gi2Fixed.name else KINDS["range"].index(name)
