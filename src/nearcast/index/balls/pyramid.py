"""`pyramid`: one posting list per word and cell, the cells as large as the balls need."""

from __future__ import annotations

from nearcast.index.balls.index import BallIndex
from nearcast.index.balls.post import PYRAMID


class PyramidBalls(BallIndex):
    """Like `inverted`, but a ball is posted only in the few cells that it touches.

    The size of a ball chooses the level of its cells. An object looks into one cell per level in
    use, and a bit mask per word says which levels those are.
    """

    name = "pyramid"
    paper = "nearcast (cf. Tornado 3.2)"
    about = "one posting list per word and cell of a grid pyramid, as large as region or ball need"
    layout = PYRAMID
