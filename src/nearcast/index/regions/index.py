"""The common part of the indexes of regions: posting subscriptions, matches in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index import posting
from nearcast.index.deciding import COUNTS, FOUND
from nearcast.index.posted import PostedIndex, most_words, work_of
from nearcast.index.regions.lists import CELLS, WIDTH, choose_cells, other_cells, post_regions
from nearcast.index.regions.match import match_regions
from nearcast.index.regions.room import Room
from nearcast.index.regions.search import Entries, Found, Visit, make_search
from nearcast.index.slotted import Runs
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.curve import along
from nearcast.kernels.ragged import frozen
from nearcast.wire.changes import Changes, Matches, joined
from nearcast.wire.tables import NO_RESULTS, REGIONS, ObjectColumns, list_column

Pair = tuple[NDArray[np.int64], NDArray[np.int64]]
Finder = Callable[[NDArray[np.int64], NDArray[np.int64]], bool]  # (matches, counts): all found?


class RegionIndex(PostedIndex):
    """Subscriptions that match every object inside their region; they keep no results."""

    shape = "regions"
    controls = REGIONS
    results = NO_RESULTS
    cells: bool  # whether lists know cells; otherwise there is one list per word
    entry_width = WIDTH
    most_cells = CELLS
    room = Room()  # shared by the process: indexes come and go with the batches
    piece = 1 << 21  # matches at a time
    scattered_from = 100_000  # subscriptions; fewer fit into the processor's cache anyway

    # -- subscriptions -----------------------------------------------------------------------

    def _added(self, first: int, controls: pa.RecordBatch, c: sl.Controls) -> None:
        del first, controls, c  # all that is new is posted
        self._attach()
        self._post()

    def _post(self) -> None:
        """Post the new subscriptions."""
        if self.cells and other_cells(self._index):
            self._forget_lists()
            choose_cells(self._index)
        posted = int(self._post_meta[posting.POSTED])
        if (len(self) - posted) * 8 > posted > 0:  # many at once: not in many small steps
            expected = int(self._lists_meta[pl.KEYS]) * (len(self) - posted) // posted
            if self._lacks_keys(expected * 3 // 4):
                self._grow_keys(expected * 3 // 4)
                self._attach()
        while not post_regions(self._index, self.cells):
            self._grow_lists()

    def _own_columns(self, slots: NDArray[np.int64], regions: Runs, boxes: Runs) -> list[pa.Array]:
        del slots  # no other column depends on them
        reals = REGIONS.field("region").type
        return [list_column(*regions, reals), list_column(*boxes, reals)]

    # -- objects -----------------------------------------------------------------------------

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        del clock, now, net  # time changes nothing, and every match is reported
        usual = int(self._post_meta[posting.USUAL])
        room = max(usual * len(objects.order) // 64 * 5 // 4, 4096)
        visit = np.arange(len(objects.order))
        found = joined(list(self._pieces(objects, visit, room, 2)), objects)
        if len(found):
            self._post_meta[posting.USUAL] = 64 * len(found) // len(objects.order) + 1
        return found

    def matching(
        self,
        objects: ObjectColumns,
        clock: NDArray[np.int64],
        now: int,
        net: bool = False,
        in_order: bool = True,
    ) -> Iterator[Changes]:
        del clock, now, net  # time changes nothing, and every match is reported
        rows = objects.order
        near = np.arange(len(rows))
        if not in_order and len(self) >= self.scattered_from:
            near = along(objects.x[rows], objects.y[rows])
        # Matches are handed on while they are in the processor's cache; then their memory is free.
        yield from self._pieces(objects, near, self.piece, 1)

    def _finder(self, objects: ObjectColumns, visit: NDArray[np.int64]) -> Finder:
        """What finds the matches of `objects`, as `match_regions` does.

        It may follow the order of `visit`; those of the papers take objects as they come.
        """
        search = make_search(most_words(objects))
        objects = objects._replace(order=frozen(objects.order[visit]))
        pool = self._index.lists.pool.reshape(-1)
        entries, visited = Entries(pool, pool.view(np.float32)), Visit(objects, visit)
        return lambda out, counts: match_regions(
            self._index, entries, self.space.code, visited, search, Found(out[0], out[1]), counts
        )

    def _pieces(
        self, objects: ObjectColumns, visit: NDArray[np.int64], room: int, growth: int
    ) -> Iterator[Matches]:
        """Matches, as many at a time as there is room for; which grows from time to time."""
        self._make_stamps(objects)
        counts = np.zeros(COUNTS, np.int64)
        find = self._finder(objects, visit)
        done = len(self) == 0
        while not done:
            counts[FOUND:] = 0
            done, found = self._fill(find, counts, room)
            if len(found[0]) or done:
                yield Matches(*found, objects, work_of(counts))
                room *= growth
            else:  # not even those of one object
                room *= 2
            del found  # so that its memory may be used again

    def _fill(self, find: Finder, counts: NDArray[np.int64], room: int) -> tuple[bool, Pair]:
        """(whether that is all; numbers of objects and slots), at most as there is room for."""
        out = self.room.take(room)
        done = find(out, counts)
        return done, (out[0, : counts[FOUND]], out[1, : counts[FOUND]])
