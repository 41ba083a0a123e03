"""`pyramid`: posting lists a word and a cell, the cells as large as the region needs."""

from __future__ import annotations

from nearcast.index.balls import PYRAMID
from nearcast.index.compiled import CompiledIndex


class Pyramid(CompiledIndex):
    """Like `inverted`, but a region, or a ball, hangs in the few cells that it touches.

    The level is that of its size, so an object looks into one cell a level in use; a bit mask a
    word says which levels those are. For regions the levels are few and suit the middle one of
    them, and entries decide most matches alone (`index.range_lists`).
    """

    name = "pyramid"
    kinds = ("range", "knn")
    paper = "nearcast (cf. Tornado 3.2)"
    about = "posting lists a word and a cell of a grid pyramid, as large as region or ball need"
    cells = True
    layout = PYRAMID
