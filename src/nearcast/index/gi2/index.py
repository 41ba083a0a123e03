"""`gi2`: a grid of inverted files with lazy deletion, the index of PS2Stream's workers (IV.D)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.index.gi2 import lists as gl
from nearcast.index.gi2 import match as gm
from nearcast.index.regions import lazy_deletion as lz
from nearcast.index.regions.index import Finder
from nearcast.index.regions.lazy_index import LazyIndex
from nearcast.wire.tables import ObjectColumns

_GROWN = 4  # times as many subscriptions choose the side of cells anew


class Gi2(LazyIndex):
    """A conjunction is posted under its least frequent word, a disjunction under each of its words.

    That is in every cell of the grid that its region overlaps. An unsubscribe is only noted
    (`index.regions.lazy_deletion`). The paper leaves the granularity to experiments; here cells
    hold half of the boxes, and are chosen anew when there are four times as many. What overlaps
    more than 256 cells is posted once, in a list for all cells: the same candidates without the
    copies.
    """

    name = "gi2"
    paper = "PS2Stream IV.D"
    about = "a grid of equal cells, one inverted file per cell; deleted when a list is read"
    most_cells = 4 * (gl.MOST + 1)

    def _attach(self) -> None:
        super()._attach()
        grid: NDArray[np.int64] = self.storage.array("grid", np.int64, 1, gl.META)
        self._grid = grid[: gl.META]

    def _forget_lists(self) -> None:
        self.storage.discard("left")
        self._lazy.meta[[lz.LEFT, lz.MOVED]] = 0
        self._grid[[gl.WIDE, gl.PARTLY]] = 0
        super()._forget_lists()

    def _post(self) -> None:
        if len(self) >= max(_GROWN * int(self._grid[gl.CHOSEN]), 1):
            self._choose()
        while not gl.post_grid(self._index, self._grid):
            self._grow_lists()

    def _choose(self) -> None:
        """Choose the side of cells; if it is another one, all is posted anew."""
        side = gl.middle_side(self._index)
        if self._grid[gl.CHOSEN] and side != self._grid[gl.SIDE]:
            self._forget_lists()
        self._grid[gl.CHOSEN] = len(self)
        self._grid[gl.SIDE] = side

    def _finder(self, objects: ObjectColumns, visit: NDArray[np.int64]) -> Finder:
        del visit  # objects are matched in the order of the batch
        lookups = gm.make_lookups(int(np.diff(objects.word_offsets).max(initial=0)))
        return self._retried(
            lookups,
            lambda st, out, counts: gm.match_grid(
                self._index, self._grid, self._lazy, self.space.code, objects, st, out, counts
            ),
        )
