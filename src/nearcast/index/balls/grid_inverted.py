"""`grid-inverted`: a grid with one inverted file per cell, the default of DkM-SKS (section 4.3)."""

from __future__ import annotations

from nearcast.index.balls.index import BallIndex
from nearcast.index.balls.post import FIXED


class GridInverted(BallIndex):
    """A subscription is posted in the inverted file of every cell that its ball overlaps.

    Cells have one size, chosen by the first ball. As published, a list has no boxes: every
    subscription of the cell that shares a word with the object is examined. One whose ball
    overlaps more than 256 cells (or is the whole space) stands once in a list for all cells
    instead: the same candidates without the copies.
    """

    name = "grid-inverted"
    paper = "DkM-SKS 4.3"
    about = (
        "a grid of equal cells, one inverted file per cell, subscriptions where their balls reach"
    )
    layout = FIXED
