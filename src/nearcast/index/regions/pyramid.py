"""`pyramid`: one posting list per word and cell, the cells as large as the regions need."""

from __future__ import annotations

from nearcast.index.regions.index import RegionIndex


class PyramidRegions(RegionIndex):
    """Like `inverted`, but a region is posted only in the few cells that it touches.

    The size of a region chooses the level of its cells; the levels are few and suit the middle one
    of the regions. An object looks into one cell per level in use, and a bit mask per word says
    which levels those are. Entries decide most matches alone (`index.regions.lists`).
    """

    name = "pyramid"
    paper = "nearcast (cf. Tornado 3.2)"
    about = "one posting list per word and cell of a grid pyramid, as large as region or ball need"
    cells = True
