"""`gi2`: a grid of inverted files with lazy deletion, the index of PS2Stream's workers (IV.D)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index import gi2_lists as gl
from nearcast.index import lazy as lz
from nearcast.index.balls import EVERYWHERE
from nearcast.index.compiled import CompiledIndex, Finder
from nearcast.kernels import slots as sl
from nearcast.wire.tables import ObjectColumns

_GROWN = 4  # times as many subscriptions choose the side of cells anew


class Gi2(CompiledIndex):
    """A conjunction hangs under its least frequent word, a disjunction under each of its words.

    It hangs there in every cell of the grid that its region overlaps. An unsubscribe is only noted
    (`index.lazy`). The paper leaves the granularity to experiments; here cells hold half of the
    boxes, and are chosen anew when there are four times as many. What overlaps more than 256
    cells hangs once, in a list for all cells: the same candidates without the copies.
    """

    name = "gi2"
    kinds = ("range",)
    paper = "PS2Stream IV.D"
    about = "a grid of equal cells, an inverted file a cell; deleted when a list is read"
    cells = True
    layout = EVERYWHERE
    most_cells = 4 * (gl.MOST + 1)

    def _attach(self) -> None:
        super()._attach()
        get = self.storage.array
        bits = len(self._slots.rows) // 64 + 1
        self._lazy = lz.Lazy(
            get("gone", np.uint64, 1, bits),
            get("late", np.uint64, 1, bits),
            get("lazy", np.int64, 1, lz.META)[: lz.META],
        )
        self._grid: NDArray[np.int64] = get("grid", np.int64, 1, gl.META)[: gl.META]

    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        """Apply subscribes and unsubscribes; what they end is noted."""
        super().apply(controls, at)
        lz.note_all(self._lazy, self.ended())

    def drop(self, ids: pa.Array) -> None:
        """These ids moved away; that is noted too."""
        super().drop(ids)
        dead = self._slots.half[: len(self), sl.FLAGS] & sl.LIVE == 0
        lz.note_all(self._lazy, np.flatnonzero(dead))

    def _forget_lists(self) -> None:
        self.storage.discard("late")
        self._lazy.meta[lz.MOVED] = 0
        self._grid[gl.WIDE] = 0
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

    def _finder(self, objects: ObjectColumns) -> Finder:
        lookups = gl.make_lookups(int(np.diff(objects.word_offsets).max(initial=0)))
        return lambda out, counts: gl.match_grid(
            self._index, self._grid, self._lazy, self.space.code, objects, lookups, out, counts
        )
