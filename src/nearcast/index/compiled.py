"""The common part of the compiled indexes: arrays, growth, matching; lists of `index.posting`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index import bulk, posting
from nearcast.index.arena import Storage
from nearcast.index.balls import (
    FIXED,
    Scratch,
    cells_of,
    choose_grid,
    make_scratch,
    post_balls,
)
from nearcast.index.base import Changes, Work
from nearcast.index.deciding import COUNTS, EXAMINED, FOUND, LOOKUPS, NEXT, SCANNED
from nearcast.index.groups import Groups, no_groups
from nearcast.index.knn_match import COUNTS as KNN_COUNTS
from nearcast.index.knn_match import match_knn, pass_time
from nearcast.index.lookups import make_stages
from nearcast.index.matches import Matches, Room, joined
from nearcast.index.range_lists import CELLS, WIDTH, choose_cells, other_cells, post_range
from nearcast.index.range_match import make_search, match_range
from nearcast.index.results import ResultStore
from nearcast.index.slotted import SlottedIndex
from nearcast.kernels import postings as pl
from nearcast.kernels import results as rs
from nearcast.kernels import slots as sl
from nearcast.kernels.bits import words_for
from nearcast.kernels.curve import along
from nearcast.kernels.ragged import frozen
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.wire.tables import (
    KIND_CODES,
    RESULTS,
    ObjectColumns,
    control_columns,
    empty,
    numbers,
)

_STAMPS = 2**31 - 1
_FEW = 1 << 18
Pair = tuple[NDArray[np.int64], NDArray[np.int64]]
Finder = Callable[[NDArray[np.int64], NDArray[np.int64]], bool]  # (matches, counts): all found?


class CompiledIndex(SlottedIndex):
    """Posting lists over a table of subscriptions; subclasses say how lists know cells."""

    cells: bool  # range: lists know cells
    layout: int  # knn: how lists know balls (index.balls)
    room = Room()  # of all of a process: indexes come and go with the batches
    piece = 1 << 21  # range: matches at a time
    scattered_from = 100_000  # range: subscriptions, fewer lie in the processor's memory anyway
    bulk_from = 1000  # new subscriptions and objects: fewer are not worth a search of their own
    most_cells = CELLS  # range: of one subscription under one word
    range_width = WIDTH  # range: 32-bit numbers of an entry

    def __init__(self, kind: str, space: Space, storage: Storage) -> None:
        super().__init__(kind, space, storage)
        self._results = ResultStore(storage) if kind == "knn" else None
        self._width = pl.ENTRY if kind == "knn" else self.range_width
        self.load()

    def load(self) -> None:
        self._meta = self.storage.array("meta", np.int64, 1, sl.META + pl.META + posting.META)
        self._slots_meta = self._meta[: sl.META]
        self._lists_meta = self._meta[sl.META : sl.META + pl.META]
        self._post_meta = self._meta[sl.META + pl.META :]
        self._ends = np.empty((0, 5), np.int64)
        if self._lists_meta[pl.TOP] == 0:
            self._lists_meta[pl.FREE :] = -1
        self._attach()
        if self._results:
            self._results.load()

    def _attach(self) -> None:
        """Map every array at its present length."""
        get = self.storage.array
        rows = get("slots", np.int64, 8, 64)
        heap = get("heap", np.uint64, 1, 256)
        pool = get("pool", np.int32, self._width, 256)
        self._slots = sl.Slots(
            rows,
            rows.view(np.int32),
            heap,
            heap.view(np.float64),
            get("text", np.uint8, 1, 1024),
            get("ids", np.uint64, 1, 128),
            self._ends,
            get("careful", np.uint64, 1, words_for(len(rows))),
            get("latest", np.int64, 1, (len(rows) >> sl.CHUNK) + 1),
            self._slots_meta,
        )
        lists = pl.Postings(
            get("keys", np.uint64, pl.ROW, 128),
            get("marks", np.uint64, 1, 128 // 8),
            pool,
            pool.view(np.float32),
            self._lists_meta,
        )
        self._index = posting.Index(
            self._slots,
            lists,
            get("words", np.uint64, posting.WORD_ROW, 128),
            self._post_meta,
            np.zeros(int(self._slots_meta[sl.LONGEST]) + 1, np.uint8),
        )

    def _groups(self) -> Groups:
        """The subsets of an index that has them."""
        return no_groups()

    # -- subscriptions -----------------------------------------------------------------------

    def _reserve(self, c: sl.Controls) -> None:
        """Room for all of `c` in the slots, their bodies, texts and ids."""
        n = int(np.count_nonzero(c.op == sl.SUBSCRIBE))
        meta = self._slots_meta
        body = len(c.program) + len(c.cover) + len(c.region) + len(c.boxes)
        get = self.storage.array
        get("slots", np.int64, 8, int(meta[sl.COUNT]) + n)
        get("heap", np.uint64, 1, int(meta[sl.HEAP_TOP]) + body)
        get("text", np.uint8, 1, int(meta[sl.TEXT_TOP]) + len(c.id_bytes) + len(c.tail_bytes))
        # Only this batch needs it, so it is not in the storage.
        self._ends = np.concatenate(
            [self._ends[: meta[sl.ENDS_TOP]], np.empty((len(c.op), 5), np.int64)]
        )
        need = int(meta[sl.IDS]) + n
        old = self._slots.ids
        if need * 10 > len(old) * 8:
            old = old.copy()
            new = self.storage.table("ids", 1, _power(need * 10 // 8 + 1))
            sl.rehash_ids(old, new)
        if self._results:
            self._results.reserve_slots(int(meta[sl.COUNT]) + n)

    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        if controls.num_rows == 0:
            return
        other = numbers(controls["kind"]) != KIND_CODES[self.kind]
        c = control_columns(controls, at)
        taken = other & (c.op == sl.SUBSCRIBE)
        if taken.any():  # another kind takes over the id
            op = np.where(taken, sl.REPLACED, c.op).astype(np.uint8)
            c = c._replace(op=frozen(op))
        first = len(self)
        self._reserve(c)
        self._attach()
        sl.apply_controls(self._slots, c)
        if self._results:
            mine = c.op == sl.SUBSCRIBE
            self._results.insert(first, controls, np.flatnonzero(mine), c)
        self._attach()
        if not self._results:  # balls are posted when objects come: then results are in place
            self._post()

    def _post(self) -> None:
        """Hang the new range subscriptions on lists."""
        if self.cells and other_cells(self._index):
            self._forget_lists()
            choose_cells(self._index)
        posted = int(self._post_meta[posting.POSTED])
        if (len(self) - posted) * 8 > posted > 0:  # many at once: not in many small steps
            expected = int(self._lists_meta[pl.KEYS]) * (len(self) - posted) // posted
            if self._lacks_keys(expected * 3 // 4):
                self._grow_keys(expected * 3 // 4)
                self._attach()
        while not post_range(self._index, self.cells):
            self._grow_lists()

    def _grow_lists(self) -> None:
        """Make whatever of the lists is short larger."""
        words = 2 * int(self._slots_meta[sl.LONGEST]) + 1
        keys = words * (cells_of(self.layout) if self._results else self.most_cells)
        lists, tops = self._index.lists, self._lists_meta
        if (int(self._post_meta[posting.WORDS]) + words) * 10 > len(self._index.words) * 7:
            before = len(self._index.words)
            size = _power((int(self._post_meta[posting.WORDS]) + words) * 10 // 7 + 1)
            pl.stretch(self.storage.array("words", np.uint64, posting.WORD_ROW, size), before)
        elif self._lacks_keys(keys):
            self._grow_keys(keys)
        else:
            longest = 1 << int(pl.room_class(lists.table[:, 1].max()))
            if 2 * longest > pl.LONGEST:
                raise NearcastError(f"{longest:,} subscriptions on one list; use more shards")
            self.storage.array(
                "pool",
                np.int32,
                self._width,
                max(_larger(len(lists.pool), 16), int(tops[pl.TOP]) + 2 * longest),
            )
        self._attach()

    def _lacks_keys(self, more: int) -> bool:
        """Whether the table has no room for so many more keys."""
        return (int(self._lists_meta[pl.KEYS]) + more) * 10 > len(self._index.lists.table) * 8

    def _grow_keys(self, more: int) -> None:
        """A table for so many more keys."""
        before, marks = len(self._index.lists.table), len(self._index.lists.marks)
        needed = (int(self._lists_meta[pl.KEYS]) + more) * 10 // 8 + 1
        keys = self.storage.array("keys", np.uint64, pl.ROW, max(needed, _larger(before)))
        pl.stretch(keys, before)
        if _power(len(keys)) // 8 != marks:
            pl.mark_all(keys, self.storage.table("marks", 1, _power(len(keys)) // 8))

    def _make_room(self, more: int) -> None:
        """Room on the lists for so many keys, and as many entries, at least."""
        lists, tops = self._index.lists, self._lists_meta
        if self._lacks_keys(more):
            self._grow_keys(more)
        if int(tops[pl.TOP]) + more > len(lists.pool):
            self.storage.array("pool", np.int32, self._width, int(tops[pl.TOP]) + 2 * more)
        self._attach()

    def drop(self, slots: NDArray[np.int64]) -> None:
        sl.drop_slots(self._slots, slots)

    def close(self) -> None:
        sl.close_batch(self._slots)
        if self._results:
            self._results.close()

    # -- objects -----------------------------------------------------------------------------

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        if self._results:
            return self._match_knn(self._results, objects, clock, now, net)
        usual = int(self._post_meta[posting.USUAL])
        room = max(usual * len(objects.order) // 64 * 5 // 4, 4096)
        visit = np.arange(len(objects.order))
        found = joined(list(self._match_range(objects, visit, room, 2)), objects)
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
        if self._results:
            yield self._match_knn(self._results, objects, clock, now, net)
            return
        rows = objects.order
        near = np.arange(len(rows))
        if not in_order and len(self) >= self.scattered_from:
            near = along(objects.x[rows], objects.y[rows])
        # What is found goes on while it is in the processor's memory, and then makes room.
        yield from self._match_range(objects, near, self.piece, 1)

    def _make_stamps(self, objects: ObjectColumns) -> None:
        """See to it that the numbers of `objects` are not larger than a stamp can be."""
        if int(self._slots_meta[sl.CLOCK]) + len(objects.order) > _STAMPS:
            self._slots.half[:, sl.STAMP] = -1
            self._slots_meta[sl.CLOCK] = 0

    def _finder(self, objects: ObjectColumns, visit: NDArray[np.int64]) -> Finder:
        """What finds the matches of `objects`, as `range_match.match_range` does.

        It may follow the order of `visit`; those of the papers take objects as they come.
        """
        search = make_search(_longest(objects))
        objects = objects._replace(order=frozen(objects.order[visit]))
        pool = self._index.lists.pool.reshape(-1)
        boxes, space = pool.view(np.float32), self.space.code
        return lambda out, counts: match_range(
            self._index, pool, boxes, space, objects, visit, search, out[0], out[1], counts
        )

    def _match_range(
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
                yield Matches(*found, objects, _work(counts))
                room *= growth
            else:  # not even those of one object
                room *= 2
            del found  # so that its memory may be used again

    def _fill(self, find: Finder, counts: NDArray[np.int64], room: int) -> tuple[bool, Pair]:
        """(whether that is all; numbers of objects and slots), at most as there is room for."""
        out = self.room.take(room)
        done = find(out, counts)
        return done, (out[0, : counts[FOUND]], out[1, : counts[FOUND]])

    def _match_knn(
        self,
        results: ResultStore,
        objects: ObjectColumns,
        clock: NDArray[np.int64],
        now: int,
        net: bool,
    ) -> Changes:
        self._make_stamps(objects)
        counts = np.zeros(KNN_COUNTS, np.int64)
        queued = np.zeros(1, np.int64)
        scratch = make_scratch()
        space, layout = self.space.code, self.layout
        results.open(len(self), objects)
        many = net and self._worth_bulk(objects)
        if many:  # it sees the objects of this batch in one go, and is not posted meanwhile
            work = self.find_results(objects, True)
        else:
            work = Work()
            self._post_balls(scratch)
        if len(self):
            stages = make_stages(_longest(objects), self._groups())
            step = lambda: match_knn(  # noqa: E731 -- the two loops differ in this call only
                self._index, results.state, space, layout, objects, clock, stages, scratch,
                queued, counts,
            )  # fmt: skip
            results.run(step, self._grow_lists)
        self._slots_meta[sl.CLOCK] += len(objects.order)
        if many:
            self._post_balls(scratch)
        if results.windowed:
            counts[NEXT] = 0
            results.run(
                lambda: pass_time(self._index, results.state, now, counts), self._grow_lists
            )
        work += _work(counts)
        return results.changes(clock, work, many)

    def _post_balls(self, scratch: Scratch) -> None:
        assert self._results
        if self.layout == FIXED and self._post_meta[posting.GRID] == 0:
            self._choose_grid(self._results.state, scratch)
        while not post_balls(
            self._index, self._results.state, self.space.code, self.layout, scratch, self._groups()
        ):
            self._grow_lists()

    def _choose_grid(self, state: rs.Results, scratch: Scratch) -> None:
        """Cells for the middle one of the balls there are."""
        reach = state.reals[: len(self), rs.REACH]
        balls = np.flatnonzero(reach < np.inf)
        if len(balls):
            middle = np.argpartition(reach[balls], len(balls) // 2)[len(balls) // 2]
            choose_grid(self._index, state, self.space.code, int(balls[middle]), scratch)

    def _worth_bulk(self, objects: ObjectColumns) -> bool:
        """Whether the new subscriptions should search the objects instead of being offered them."""
        assert self._results
        first = int(self._post_meta[posting.POSTED])
        if min(len(self) - first, len(objects.order)) < self.bulk_from:
            return False
        return not self._results.settings(np.arange(first, len(self)))[1].any()

    def find_results(self, objects: ObjectColumns, telling: bool) -> Work:
        """Results of the subscriptions not posted yet among `objects`, by search (`index.bulk`).

        As if each had been offered the objects one by one, but for what entered and left again.
        """
        results = self._results
        assert results
        if not telling:
            results.open(len(self), objects)
        first = int(self._post_meta[posting.POSTED])
        new = self._slots.half[first : len(self)]
        named = (new[:, sl.FLAGS] & sl.CONJUNCTION != 0) & (new[:, sl.PROGRAM] > 0)
        universal = (new[:, sl.COVER] == 0) & ~named
        results.reserve_bulk(first, telling)
        self._attach()
        k = int(results.state.rows[first : len(self), rs.K].max(initial=1))
        k = min(k, len(objects.order))
        best = bulk.make_best(k)
        names = np.full(len(objects.order), -1)
        trees = bulk.make_trees(objects, bool(universal.any()))
        at = results.state.reals[first : len(self)]
        order = first + bulk.neighbours_first(at[:, rs.X], at[:, rs.Y])
        bulk.find_all(
            self._index, results.state, self.space.code, objects, trees, order, best, names, telling
        )
        counts = best.counts
        return Work(examined=int(counts[bulk.EXAMINED]), lookups=int(counts[bulk.SEARCHED]))

    # -- results and export ------------------------------------------------------------------

    def changed(self) -> pa.RecordBatch:
        return self._results.changed() if self._results else empty(RESULTS)

    def restore(self, results: pa.RecordBatch) -> None:
        if self._results:
            self._results.restore(results)
            slots = numbers(results["slot"])
            if len(slots) and slots.min() < self._post_meta[posting.POSTED]:
                self._forget_lists()  # a ball may have grown

    def _forget_lists(self) -> None:
        """Take every subscription off the lists; the next objects find them posted anew."""
        for name in ("keys", "marks", "pool", "words"):
            self.storage.discard(name)
        self._lists_meta[:] = 0
        self._lists_meta[pl.FREE :] = -1
        self._post_meta[:] = 0
        self._attach()


def _longest(objects: ObjectColumns) -> int:
    """Words of the object that has most."""
    return int(np.diff(objects.word_offsets).max(initial=0))


def _larger(rows: int, part: int = 8) -> int:
    """The next size of something that grows row by row, by 1/`part`; small ones double."""
    return 2 * rows if rows < _FEW else rows + rows // part


def _power(n: int) -> int:
    """The least power of two that is at least `n`."""
    return 1 << max(n - 1, 1).bit_length()


def _work(counts: NDArray[np.int64]) -> Work:
    return Work(int(counts[EXAMINED]), int(counts[LOOKUPS]), int(counts[SCANNED]))
