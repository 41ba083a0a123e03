"""The common part of the indexes of balls: results, offers, and the search of many new ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearcast.index import posting
from nearcast.index.arena import Storage
from nearcast.index.balls import bulk
from nearcast.index.balls.groups import Groups, no_groups
from nearcast.index.balls.lookups import make_stages
from nearcast.index.balls.match import COUNTS, match_balls, pass_time
from nearcast.index.balls.post import (
    FIXED,
    Scratch,
    cells_of,
    choose_grid,
    make_scratch,
    post_balls,
)
from nearcast.index.deciding import NEXT
from nearcast.index.posted import PostedIndex, most_words, work_of
from nearcast.index.results import ResultStore
from nearcast.index.slotted import Runs
from nearcast.kernels import results as rs
from nearcast.kernels import slots as sl
from nearcast.model.space import Space
from nearcast.wire.changes import Changes, Work
from nearcast.wire.tables import BALLS, NEAREST, ObjectColumns, numbers


class BallIndex(PostedIndex):
    """Subscriptions for the k nearest objects, with their results."""

    shape = "balls"
    controls = BALLS
    results = NEAREST
    layout: int  # how lists know balls (`index.balls.post`)
    bulk_from = 1000  # new subscriptions and objects: fewer are not worth a search of their own

    def __init__(self, space: Space, storage: Storage) -> None:
        self._results = ResultStore(storage)
        self.most_cells = cells_of(self.layout)
        super().__init__(space, storage)

    def load(self) -> None:
        super().load()
        self._results.load()

    def _groups(self) -> Groups:
        """The subsets of an index that has them."""
        return no_groups()

    # -- subscriptions -----------------------------------------------------------------------

    def _reserve(self, c: sl.Controls) -> None:
        super()._reserve(c)
        new = int(np.count_nonzero(c.op == sl.SUBSCRIBE))
        self._results.reserve_slots(len(self) + new)

    def _added(self, first: int, controls: pa.RecordBatch, c: sl.Controls) -> None:
        # They are posted when objects come: by then results are in place, and balls are small.
        self._results.insert(first, controls, np.flatnonzero(c.op == sl.SUBSCRIBE), c)
        self._attach()

    def _post_balls(self, scratch: Scratch) -> None:
        """Post the subscriptions that are not posted yet."""
        state = self._results.state
        if self.layout == FIXED and self._post_meta[posting.GRID] == 0:
            self._choose_grid(state, scratch)
        while not post_balls(
            self._index, state, self.space.code, self.layout, scratch, self._groups()
        ):
            self._grow_lists()

    def _choose_grid(self, state: rs.Results, scratch: Scratch) -> None:
        """Cells for the middle one of the balls there are."""
        reach = state.reals[: len(self), rs.REACH]
        balls = np.flatnonzero(reach < np.inf)
        if len(balls):
            middle = np.argpartition(reach[balls], len(balls) // 2)[len(balls) // 2]
            choose_grid(self._index, state, self.space.code, int(balls[middle]), scratch)

    def close(self) -> None:
        super().close()
        self._results.close()

    # -- objects -----------------------------------------------------------------------------

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        results = self._results
        self._make_stamps(objects)
        scratch = make_scratch()
        results.open(len(self), objects)
        many = net and self._worth_bulk(objects)
        if many:  # it sees the objects of this batch in one go, and is not posted meanwhile
            work = self.find_results(objects, True)
        else:
            work = Work()
            self._post_balls(scratch)
        work += self._offer(objects, clock, now, scratch, many)
        return results.changes(clock, work, many)

    def _offer(
        self,
        objects: ObjectColumns,
        clock: NDArray[np.int64],
        now: int,
        scratch: Scratch,
        many: bool,
    ) -> Work:
        """Offer the objects to posted subscriptions; let windows slide on.

        Up to `now`, and over the moments that come before objects of the batch: a batch may end
        within an instant, and then `now` is before that.

        `many`: the subscriptions not posted yet have seen the objects, and are posted in between.
        """
        results, space = self._results, self.space.code
        counts, queued = np.zeros(COUNTS, np.int64), np.zeros(1, np.int64)
        if len(self):
            stages = make_stages(most_words(objects), self._groups())
            step = lambda: match_balls(  # noqa: E731 -- the two loops differ in this call only
                self._index, results.state, space, self.layout, objects, clock, stages, scratch,
                queued, counts,
            )  # fmt: skip
            results.run(step, self._grow_lists)
        self._slots_meta[sl.CLOCK] += len(objects.order)
        if many:
            self._post_balls(scratch)
        if results.windowed:
            counts[NEXT] = 0
            until = max(now, int(clock[-1])) if len(clock) else now
            results.run(
                lambda: pass_time(self._index, results.state, until, counts), self._grow_lists
            )
        return work_of(counts)

    # -- many new subscriptions at once ------------------------------------------------------

    def _worth_bulk(self, objects: ObjectColumns) -> bool:
        """Whether the new subscriptions should search the objects instead of being offered them."""
        first = int(self._post_meta[posting.POSTED])
        if min(len(self) - first, len(objects.order)) < self.bulk_from:
            return False
        return not self._results.settings(np.arange(first, len(self)))[1].any()

    def find_results(self, objects: ObjectColumns, reporting: bool) -> Work:
        """Search `objects` for the results of subscriptions not posted yet (`index.balls.bulk`).

        As if each had been offered the objects one by one, but for what entered and left again.
        """
        results = self._results
        if not reporting:
            results.open(len(self), objects)
        first = int(self._post_meta[posting.POSTED])
        new = self._slots.half[first : len(self)]
        named = (new[:, sl.FLAGS] & sl.CONJUNCTION != 0) & (new[:, sl.PROGRAM] > 0)
        universal = (new[:, sl.COVER] == 0) & ~named
        results.reserve_bulk(first, reporting)
        self._attach()
        k = int(results.state.rows[first : len(self), rs.K].max(initial=1))
        k = min(k, len(objects.order))
        best = bulk.make_best(k)
        names = np.full(len(objects.order), -1)
        trees = bulk.make_trees(objects, bool(universal.any()))
        at = results.state.reals[first : len(self)]
        order = first + bulk.neighbours_first(at[:, rs.X], at[:, rs.Y])
        state, space = results.state, self.space.code
        bulk.find_all(self._index, state, space, objects, trees, order, best, names, reporting)
        counts = best.counts
        return Work(examined=int(counts[bulk.EXAMINED]), lookups=int(counts[bulk.SEARCHED]))

    # -- results and export ------------------------------------------------------------------

    def changed(self) -> pa.RecordBatch:
        return self._results.changed()

    def restore(self, results: pa.RecordBatch) -> None:
        self._results.restore(results)
        slots = numbers(results["slot"])
        if len(slots) and slots.min() < self._post_meta[posting.POSTED]:
            self._forget_lists()  # a ball may have grown

    def _own_columns(self, slots: NDArray[np.int64], regions: Runs, boxes: Runs) -> list[pa.Array]:
        del boxes  # a ball has none
        centres = regions[1].reshape(-1, 2)
        x, y = centres[:, 0].copy(), centres[:, 1].copy()
        return [pa.array(column) for column in (x, y, *self._results.settings(slots))]

    def _result_rows(self, slots: NDArray[np.int64]) -> pa.RecordBatch:
        results = self._results.table(slots)
        results = results.set_column(0, NEAREST.field("slot"), pa.array(np.arange(len(slots))))
        return results.filter(pc.greater(pc.list_value_length(results["distance"]), 0))
