"""What all indexes of this shape share: subscriptions, buffers, expiry, refills, results.

A batch is handled in periods, so short that little of the window leaves in one. Before a period,
buffers that could run short in it are filled by one search of the kept objects, and new
subscriptions get their first results by the same search. Then the dissemination finds, for some
hundred objects at a time, who may take them, and these are offered. What leaves a result leaves
when its subscription is offered the next object, or when the period ends.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.index.posted import PostedIndex
from nearcast.index.slotted import Runs
from nearcast.index.tops import state as st
from nearcast.index.tops.dissemination import Dissemination
from nearcast.index.tops.match import find_short, offer_all, purge, settle_all
from nearcast.index.tops.policy import Policy, Roots
from nearcast.index.tops.refill import Refill
from nearcast.index.tops.store import TopStore
from nearcast.kernels import slots as sl
from nearcast.kernels.ragged import frozen
from nearcast.model.frame import Frame
from nearcast.model.space import Space
from nearcast.wire.carried import Carried
from nearcast.wire.changes import Changes, Work
from nearcast.wire.tables import (
    BEST,
    NEVER,
    TOPS,
    ObjectColumns,
    numbers,
)

__all__ = ["TopIndex"]

_PART = 8  # of the window: no more of it than this part leaves in one period
_LEAST = 512  # objects of a period, whatever the window is
_LEARNED = 8  # numbers that a policy may remember


class TopIndex(PostedIndex):
    """Subscriptions for the objects of highest score in the window, with their buffers."""

    shape = "tops"
    controls = TOPS
    results = BEST
    most_cells = 0
    dissemination: ClassVar[type[Dissemination]]

    def __init__(
        self,
        space: Space,
        storage: Storage,
        frame: Frame = Frame(),  # noqa: B008
        policy: Policy | None = None,
    ) -> None:
        self.frame = frame
        self.policy = Roots() if policy is None else policy
        self.counted = np.zeros(st.COUNTS, np.int64)
        self._carried = Carried()
        self._tops = TopStore(storage, frame.idf.hashed)
        self._found_by = self.dissemination(space, storage, frame.idf.hashed)
        self.refills = Refill(space, frame, self.policy)
        super().__init__(space, storage)

    def load(self) -> None:
        super().load()
        self._tops.load()
        self._tops.meta[st.UPKEEP] = self.policy.upkeep
        self.policy.attach(self.storage.array("tops.policy", np.float64, 1, _LEARNED))
        self._clocks: list[tuple[int, NDArray[np.int64]]] = []
        self._fallen: list[NDArray[np.int64]] = []
        self._found_by = self.dissemination(self.space, self.storage, self.frame.idf.hashed)

    def past_filled(self) -> None:
        self._tops.meta[st.READY] = 0

    def reach(self) -> int:
        return self.frame.window.span_ms

    def first_rank(self, ranked: int) -> int:
        window = self.frame.window
        return window.first_rank(ranked) if window.count else ranked

    # -- subscriptions -----------------------------------------------------------------------

    def _added(self, first: int, controls: pa.RecordBatch, c: sl.Controls) -> None:
        mine = np.flatnonzero(c.op == sl.SUBSCRIBE)
        self._attach()
        self._tops.insert(first, controls, mine)
        self._clocks.append((first, np.asarray(c.clock[mine])))

    def compact(self, now: int) -> None:
        kept = self._tops.log.taken() if self._tops.meta[st.READY] else None
        super().compact(now)
        if kept is not None:
            self._tops.log.put_back(kept)

    def close(self) -> None:
        super().close()
        self._tops.close()
        self._clocks = []
        self._carried = Carried()

    # -- objects -----------------------------------------------------------------------------

    def carry(self, carried: Carried) -> None:
        self._carried = carried

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        del net  # every change is reported
        tops, counts = self._tops, np.zeros(st.COUNTS, np.int64)
        w = self._weighed(objects, clock)
        ranked = self._take_in(w)
        self._make_stamps(objects)
        tops.open(len(self), int(w.ranks[0]) if len(w.ranks) else st.FOREVER)
        passed = max(int(tops.meta[st.PASSED]), self.now)
        self._post(np.arange(int(tops.meta[st.POSTED]), len(self)), late=True)
        for first, stop in self._periods(w, passed, now):
            p = self._period(w, first, stop, now, ranked)
            before = int(clock[first - 1]) if first else passed
            published = int(w.ranks[first]) if first < len(w.ranks) else ranked + len(w.ranks)
            if tops.meta[st.STALE]:
                purge(tops.state, p, len(self), published - 1 if p.count else passed)
                tops.meta[st.STALE] = 0
            last = stop == len(w.ranks)
            self._begin(w, p, before, ranked, last, counts)
            self._refill_short(p, published, before)
            for some in range(first, stop, self._found_by.step):
                self._offer(w, p, some, min(some + self._found_by.step, stop), counts)
            self._settle(w, p, counts)
        self._slots_meta[sl.CLOCK] += len(objects.order)
        reached = int(clock[-1]) if len(clock) else NEVER
        tops.meta[st.PASSED] = max(passed, now, reached)
        self.counted += counts
        work = Work(int(counts[st.EXAMINED]), int(counts[st.LOOKUPS]), int(counts[st.SCANNED]))
        return tops.changes(work)

    def _weighed(self, o: ObjectColumns, clock: NDArray[np.int64]) -> st.Weighed:
        """The batch as kernels read it."""
        carried, n = self._carried, len(o.order)
        o = ObjectColumns(*(frozen(column) for column in o))
        idf = frozen(self.frame.idf.hashed.of_words(o.words))
        if carried.counts is None or carried.firsts is None or carried.ranks is None:
            none = frozen(np.empty(0, np.int64))  # the kind is not in use: there are no objects
            return st.Weighed(o, none, frozen(clock[:0]), frozen(np.empty(0)), idf)
        weights = st.weigh(o, frozen(carried.counts), frozen(carried.firsts), idf)
        ranks = frozen(carried.ranks[o.order])
        assert n == len(ranks)
        return st.Weighed(o, ranks, frozen(clock), frozen(weights), idf)

    def _take_in(self, w: st.Weighed) -> int:
        """Add the batch to the log of the window; how many objects were published before it."""
        log, meta = self._tops.log, self._tops.meta
        before = int(w.ranks[0]) if len(w.ranks) else st.FOREVER
        if not meta[st.READY]:
            log.rebuild(self.past, before)
        ranked = before if len(w.ranks) else max(self.ranked, log.published)
        held = log.top - int(meta[st.FIRST])
        log.let_go(self.frame.window.first_rank(ranked), self._gone_at(int(meta[st.PASSED])))
        left = held - (log.top - int(meta[st.FIRST]))
        log.append_batch(w.o, w.ranks)
        self.policy.flow(held - left + len(w.ranks), len(w.ranks), left)
        self._tops.attach()
        return ranked

    def _gone_at(self, passed: int) -> int:
        span = self.frame.window.span_ms
        return passed - span if span and passed > NEVER else NEVER

    def _periods(self, w: st.Weighed, passed: int, now: int) -> list[tuple[int, int]]:
        """Cut the batch so that little of the window leaves in one piece."""
        del now
        n, window = len(w.ranks), self.frame.window
        if window.count:
            step = max(window.count // _PART, _LEAST)
            cuts = [*range(0, n, step), n] if n else [0, 0]
            return list(pairwise(cuts))
        cuts = [0]
        reached = passed if passed > NEVER else (int(w.clock[0]) if n else 0)
        while cuts[-1] < n:
            end = int(np.searchsorted(w.clock, reached + window.span_ms // _PART, side="right"))
            end = max(end, cuts[-1] + 1)
            cuts.append(min(end, n))
            reached = int(w.clock[cuts[-1] - 1])
        return list(pairwise(cuts)) or [(0, 0)]

    def _period(self, w: st.Weighed, first: int, stop: int, now: int, ranked: int) -> st.Period:
        window, n = self.frame.window, len(w.ranks)
        if window.count:
            until = int(w.ranks[stop - 1]) if stop > first else ranked - 1
        else:
            until = int(w.clock[stop - 1]) if stop > first else NEVER
            until = max(until, now) if stop == n else until
        count = min(window.count, 1 << 31)
        return st.Period(count, window.span_ms, first, stop, until)

    def _begin(
        self, w: st.Weighed, p: st.Period, before: int, ranked: int, last: bool,
        counts: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """First results of the subscriptions that begin in a period."""
        slots, clocks = self._new()
        born = self._slots.half[slots, sl.BORN].astype(np.int64)
        mine = (self._tops.state.due[slots] == st.NOT_BEGUN) & (born >= p.first)
        mine &= (born < p.stop) | (last & (born >= p.stop))
        slots, clocks, born = slots[mine], clocks[mine], born[mine]
        if len(slots) == 0:
            return
        reached = np.append(before, w.clock)
        passed = np.where(born > p.first, reached[born], before)
        passed = np.maximum(np.maximum(passed, clocks), self._slots.rows[slots, sl.START])
        ranks = np.append(w.ranks, ranked + len(w.ranks) if not len(w.ranks) else w.ranks[-1] + 1)
        tops = self._tops
        self._attach()
        lives = self.refills.fill(
            tops, self._slots, self.past, p, slots, ranks[born], passed, begins=True
        )
        self._post(slots)
        starts = self._slots.rows[slots[lives], sl.START]
        tops.begin(slots[lives], born[lives], starts, passed[lives])
        del counts

    def _new(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Slots of this batch, and how far time had come before each."""
        none = np.empty(0, np.int64)
        slots = [np.arange(first, first + len(clocks)) for first, clocks in self._clocks]
        return np.concatenate([none, *slots]), np.concatenate([none, *(c for _, c in self._clocks)])

    def _refill_short(self, p: st.Period, published: int, passed: int) -> None:
        """Fill buffers that would run short in a period, as of its beginning."""
        slots = find_short(self._tops.state, self._slots, p, len(self))
        n = len(slots)
        if n == 0:
            return
        ranks, times = np.full(n, published), np.full(n, passed)
        self.refills.fill(self._tops, self._slots, self.past, p, slots, ranks, times)
        self._post(slots)

    def _post(self, slots: NDArray[np.int64], late: bool = False) -> None:
        """Post slots whose floors are new; `late`: those that have begun already."""
        if late:
            begun = self._tops.state.due[slots] != st.NOT_BEGUN
            slots = np.unique(np.concatenate([slots[begun], *self._fallen]))
            self._tops.meta[st.POSTED] = len(self)
            self._fallen = []
        if len(slots):
            self._found_by.post(self._tops.state, self._slots, slots)

    def _offer(
        self, w: st.Weighed, p: st.Period, first: int, stop: int, counts: NDArray[np.int64]
    ) -> None:
        """Find who may take some objects, and offer them."""
        tops = self._tops
        if len(self) == 0:
            return
        objects, slots = self._found_by.candidates(tops.state, self._slots, w, first, stop, counts)
        start = tops.log.top - len(w.ranks)
        begins = int(self._slots_meta[sl.CLOCK])
        most, depth = self.refills.limits()
        self._run(
            lambda: offer_all(
                tops.state, self._slots, w, p, self.space.code, self._index.stack, objects, slots,
                start, begins, most, depth, counts,
            ),
            counts,
        )  # fmt: skip

    def _settle(self, w: st.Weighed, p: st.Period, counts: NDArray[np.int64]) -> None:
        """Let leave what leaves until a period is over."""
        tops = self._tops
        self._run(lambda: settle_all(tops.state, self._slots, w, p, len(self), counts), counts)

    def _run(self, step: Callable[[], int], counts: NDArray[np.int64]) -> None:
        """Call `step` until it is done, giving it more of what is short."""
        counts[st.NEXT] = 0
        while short := step():
            self._tops.grow(short)

    def named(self, changes: Changes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(ranks, times) of the objects that changes name; before the index goes on."""
        return self._tops.log.named(changes.name_starts)

    # -- results and export ------------------------------------------------------------------

    def changed(self) -> pa.RecordBatch:
        return self._tops.changed(len(self), bool(self.frame.window.span_ms))

    def restore(self, results: pa.RecordBatch) -> None:
        if results.num_rows == 0:
            return
        slots = numbers(results["slot"])
        self._fallen.append(slots[slots < self._tops.meta[st.POSTED]])
        self._tops.restore(results)

    def _own_columns(self, slots: NDArray[np.int64], regions: Runs, boxes: Runs) -> list[pa.Array]:
        del boxes  # there are none
        centres = regions[1].reshape(-1, 2)
        return [
            pa.array(centres[:, 0].copy()),
            pa.array(centres[:, 1].copy()),
            *self._tops.settings(slots),
        ]

    def _result_rows(self, slots: NDArray[np.int64]) -> pa.RecordBatch:
        begun = np.flatnonzero(self._tops.state.due[slots] != st.NOT_BEGUN)
        return self._tops.table(slots[begun], begun)
