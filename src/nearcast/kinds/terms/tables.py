"""`tables`: at a moment, the words of the objects that it counts are counted in the store.

Nothing is done when an object comes, and a subscription takes no memory for its window: all
moments of a batch are one search of the store (`nearcast.objects`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.index.posted import PostedIndex
from nearcast.index.slotted import Runs
from nearcast.kernels import slots as sl
from nearcast.kernels.ragged import frozen, gather
from nearcast.kinds.terms import moments as mo
from nearcast.kinds.terms.dictionary import Dictionary
from nearcast.kinds.terms.early import Early
from nearcast.kinds.terms.rows import COLUMNS, RESULTS
from nearcast.model.space import Space
from nearcast.objects.base import Queries, Regions, WordCounts
from nearcast.wire.carried import Carried, WordTexts
from nearcast.wire.changes import Changes, Work
from nearcast.wire.tables import (
    NEVER,
    ObjectColumns,
    controls_with,
    empty,
    list_column,
    lists,
    numbers,
    results_with,
    strings,
)
from nearcast.wire.words import hash_words

__all__ = ["Tables"]

Words = NDArray[np.uint64]

_PASSED, _NEXT_RANK, _EXCLUDED_TOP, _STARTED = range(4)  # places in `own.meta`
_NO_ROW = np.full((1, mo.WIDTH), -1)
_NO_ROW[:, mo.EARLY] = 0
_ROOM = 1 << 17  # moments at a time
_WORDS = 1 << 22  # words that are counted at a time, about
_LEAST = 64  # moments at a time, at least


class Tables(PostedIndex):
    """Subscriptions that look at the store when they are due; they are on no lists."""

    name = "tables"
    paper = "nearcast"
    about = "counts the words of kept objects when a moment comes, all moments in one search"
    controls = controls_with(COLUMNS)
    results = results_with(RESULTS)
    most_cells = 0

    def __init__(self, space: Space, storage: Storage) -> None:
        self._dictionary = Dictionary(storage)
        self._early = Early(storage)
        self._carried = Carried()
        self._touched = False
        super().__init__(space, storage)

    def load(self) -> None:
        super().load()
        self._dictionary.load()
        self._early.load()
        self._new: NDArray[np.uint64] = np.empty(0, np.uint64)  # words of this batch
        self._own_meta = self.storage.array("own.meta", np.int64, 1, 4)
        if not self._own_meta[_STARTED]:
            self._own_meta[:] = NEVER, 0, 0, 1
        self._attach_own()

    def _attach_own(self) -> None:
        self._rows = self.storage.array("own.rows", np.int64, mo.WIDTH, 64)
        self._excluded = self.storage.array("own.excluded", np.uint64, 1, 64)

    # -- subscriptions -----------------------------------------------------------------------

    def _added(self, first: int, controls: pa.RecordBatch, c: sl.Controls) -> None:
        mine = np.flatnonzero(c.op == sl.SUBSCRIBE)
        offsets, excluded = lists(controls["exclude"], np.uint64)
        top = int(self._own_meta[_EXCLUDED_TOP])
        lengths = np.diff(offsets)[mine]
        words = gather(excluded, offsets[:-1][mine], lengths)[1]
        get = self.storage.array
        get("own.rows", np.int64, mo.WIDTH, len(self))
        get("own.excluded", np.uint64, 1, top + len(words))
        self._attach_own()
        self._excluded[top : top + len(words)] = words
        self._own_meta[_EXCLUDED_TOP] = top + len(words)
        rows = self._rows[first : len(self)]
        for column, name in ((mo.K, "k"), (mo.WINDOW, "window"), (mo.EVERY, "every")):
            rows[:, column] = numbers(controls[name])[mine]
        rows[:, mo.DUE] = c.time[mine] + rows[:, mo.EVERY]
        rows[:, mo.SINCE] = -1  # known when the objects of the batch are
        rows[:, mo.EXCLUDED] = top + np.cumsum(lengths) - lengths
        rows[:, mo.EXCLUDES] = lengths
        rows[:, mo.EARLY] = 0

    def _own_columns(self, slots: NDArray[np.int64], regions: Runs, boxes: Runs) -> list[pa.Array]:
        rows = self._rows[slots]
        excluded = gather(self._excluded, rows[:, mo.EXCLUDED], rows[:, mo.EXCLUDES])
        reals, words = COLUMNS.field("region").type, COLUMNS.field("exclude").type
        return [
            list_column(*regions, reals),
            list_column(*boxes, reals),
            *(pa.array(rows[:, column].copy()) for column in (mo.K, mo.WINDOW, mo.EVERY)),
            list_column(*excluded, words),
        ]

    def reach(self) -> int:
        alive = self.living(int(self._own_meta[_PASSED]))
        return int(self._rows[alive, mo.WINDOW].max(initial=0))

    # -- objects -----------------------------------------------------------------------------

    def carry(self, carried: Carried) -> None:
        self._carried = carried
        texts = carried.texts
        if isinstance(texts, WordTexts):
            new = self._dictionary.add(texts.words, texts.offsets, texts.data)
            self._new = np.concatenate([self._new, new])

    def match(
        self, objects: ObjectColumns, clock: NDArray[np.int64], now: int, net: bool = False
    ) -> Changes:
        pieces = list(self.matching(objects, clock, now, net))
        work = Work()
        for piece in pieces:
            work += piece.work
        sizes = np.cumsum([0, *(len(p.names) for p in pieces)])
        starts = [p.name_starts + n for p, n in zip(pieces, sizes[:-1].tolist(), strict=True)]
        if not pieces:
            none = np.empty(0, np.int64)
            return _changes(none, none, none, none, none, work, np.empty(0, np.uint8))
        columns = zip(*((p.order, p.slot, p.time, p.name_lengths) for p in pieces), strict=True)
        order, slot, time, lengths = map(np.concatenate, columns)
        names = np.concatenate([p.names for p in pieces])
        return _changes(order, slot, time, np.concatenate(starts), lengths, work, names)

    def matching(
        self,
        objects: ObjectColumns,
        clock: NDArray[np.int64],
        now: int,
        net: bool = False,
        in_order: bool = True,
    ) -> Iterator[Changes]:
        del net, in_order
        self._touched = True
        ranks = self._ranks(objects)
        clock = frozen(clock)
        step = _LEAST
        while (total := mo.count_due(self._slots, self._rows, len(self), now)) > 0:
            until, room = now, self._room()
            if total > room:
                until = mo.horizon_of(self._slots, self._rows, len(self), now, room)
                total = mo.count_due(self._slots, self._rows, len(self), until)
            due = mo.take_due(self._slots, self._rows, len(self), until, clock, total)
            sort = np.lexsort((due.time, due.order))
            due = mo.Due(*(column[sort] for column in due))
            self._look_ahead(due, ranks)
            done = 0
            while done < len(sort):
                some = slice(done, min(done + step, len(sort)))
                changes, words = self._counted(mo.Due(*(c[some] for c in due)), ranks, done)
                n = some.stop - done
                done += n
                step = max(min(step * 4, _WORDS * n // (words + 1)), _LEAST)
                yield changes
        self._own_meta[_PASSED] = max(int(self._own_meta[_PASSED]), now)

    def _room(self) -> int:
        """How many moments are taken at a time."""
        return _ROOM

    def _look_ahead(self, due: mo.Due, ranks: NDArray[np.int64]) -> None:
        """These moments will be counted now, in this order, in pieces."""

    def _ranks(self, objects: ObjectColumns) -> NDArray[np.int64]:
        """Ranks of the objects in order, and of what comes next; new slots begin at theirs."""
        following = max(int(self._own_meta[_NEXT_RANK]), self.ranked)
        ranks = np.empty(0, np.int64)
        if len(objects.order) and self._carried.ranks is not None:  # else the kind is not in use
            ranks = self._carried.ranks[objects.order]
            following = int(ranks.max()) + 1
        self._own_meta[_NEXT_RANK] = following
        ranks = np.append(ranks, following)
        new = np.arange(int(self._slots_meta[sl.BATCH_FIRST]), len(self))
        new = new[self._rows[new, mo.SINCE] < 0]
        self._rows[new, mo.SINCE] = ranks[self._slots.half[new, sl.BORN]]
        return ranks

    def _counted(self, due: mo.Due, ranks: NDArray[np.int64], first: int) -> tuple[Changes, int]:
        """What is reported at some moments, and how many words were counted.

        `first`: the place of the first of them in what `_look_ahead` was given.
        """
        found = self._words_at(due, ranks, first)
        k = self._rows[due.slot, mo.K]
        names, starts, lengths = self._dictionary.lists(found.offsets, found.words, found.counts, k)
        work = Work(found.examined + len(due.slot), len(due.slot), found.examined + len(due.slot))
        changes = _changes(due.order, due.slot, due.time, starts, lengths, work, names)
        return changes, found.examined * 10 + len(found.words)

    def _words_at(self, due: mo.Due, ranks: NDArray[np.int64], first: int) -> WordCounts:
        """Of some moments, the words that may be among the k, with their counts."""
        del first
        rows, half = self._slots.rows[due.slot], self._slots.half[due.slot].astype(np.int64)
        own = self._rows[due.slot]
        flags, body = half[:, sl.FLAGS], rows[:, sl.BODY]
        cover = body + half[:, sl.PROGRAM]
        region = cover + half[:, sl.COVER]
        boxes = region + half[:, sl.REGION]
        box_lengths = ((flags >> sl.BOXES_SHIFT) & sl.BOXES_MASK) * 4
        queries = Queries(
            np.maximum(due.time - own[:, mo.WINDOW], rows[:, sl.START] - 1),
            due.time,
            ranks[due.order],
            *gather(self._slots.heap, body, half[:, sl.PROGRAM]),
            *gather(self._slots.heap, cover, half[:, sl.COVER]),
            flags & sl.CONJUNCTION != 0,
            own[:, mo.SINCE],
            np.full(len(own), mo.FOREVER),
        )
        regions = Regions(
            flags & sl.REGION_CODE,
            *gather(self._slots.reals, region, half[:, sl.REGION]),
            *gather(self._slots.reals, boxes, box_lengths),
        )
        excluded = gather(self._excluded, own[:, mo.EXCLUDED], own[:, mo.EXCLUDES])
        k, early = own[:, mo.K], own[:, mo.EARLY]
        after = due.time - own[:, mo.WINDOW]
        more = self._early.matter(early, after)
        every = np.where(more, 0, k) if more.any() else k  # words that are seldom now may matter
        found: WordCounts = self.past.word_counts(
            queries, regions, every, *excluded, in_order=False
        )
        if more.any():
            found = _with_entries(found, *self._early.entries(early, after, due.time))
        return found

    def close(self) -> None:
        super().close()
        self._carried, self._touched = Carried(), False
        self._new = self._new[:0]
        if self.past is not None and self._dictionary.worth_purging:
            self._dictionary.purge(np.union1d(self.past.words(), self._early.words()))

    # -- results and export ------------------------------------------------------------------

    def changed(self) -> pa.RecordBatch:
        new = np.arange(int(self._slots_meta[sl.BATCH_FIRST]), len(self))
        if len(new):
            return self._table(self._rows[new], new, self._new)
        if (len(self) or len(self._new)) and self._touched:
            return self._table(_NO_ROW, np.zeros(1, np.int64), self._new)
        return empty(self.results)

    def _result_rows(self, slots: NDArray[np.int64]) -> pa.RecordBatch:
        if len(slots):
            return self._table(self._rows[slots], np.arange(len(slots)), None)
        if len(self._dictionary):
            return self._table(_NO_ROW, np.zeros(1, np.int64), None)
        return empty(self.results)

    def _table(
        self, rows: NDArray[np.int64], named: NDArray[np.int64], words: NDArray[np.uint64] | None
    ) -> pa.RecordBatch:
        """Results of slots: when they began; in the first row, the texts of `words` or of all.

        `_NO_ROW`: of no slot, whatever `named` says; it holds texts.
        """
        n = len(named)
        offsets, times, early = self._early.entries(
            rows[:, mo.EARLY], rows[:, mo.DUE] - rows[:, mo.WINDOW]
        )
        texts = self._dictionary.texts(words)
        columns = [
            pa.array(named),
            pa.array(rows[:, mo.DUE].copy()),
            pa.array(np.full(n, self._own_meta[_PASSED])),
            pa.array(rows[:, mo.SINCE].copy()),
            pa.array(np.full(n, self._own_meta[_NEXT_RANK])),
            _lists(offsets, pa.array(times), "times"),
            _lists(offsets, pa.array(np.ones(len(times), np.int64)), "sizes"),
            _lists(offsets, self._dictionary.texts_of(early), "words"),
            _lists(np.append(0, np.full(n, len(texts))), texts, "texts"),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.results)

    def restore(self, results: pa.RecordBatch) -> None:
        if results.num_rows == 0:
            return
        slots, passed = numbers(results["slot"]), int(numbers(results["passed"]).max())
        self._know(results["texts"])
        since = numbers(results["since"])
        begun = since >= 0
        if len(self):
            self._rows[slots[begun], mo.SINCE] = since[begun]
            offsets, times = lists(results["times"], np.int64)
            early = self._early.add(offsets, times, self._know(results["words"]))
            self._rows[slots[early > 0], mo.EARLY] = early[early > 0]
        mo.skip_to(self._rows, len(self), passed)
        ranked = int(numbers(results["ranked"]).max())
        for place, value in ((_PASSED, passed), (_NEXT_RANK, ranked)):
            self._own_meta[place] = max(int(self._own_meta[place]), value)

    def _know(self, words: pa.Array) -> NDArray[np.uint64]:
        """Keep the texts of lists of words; their hashes."""
        offsets = numbers(words.offsets)
        texts = words.values.slice(offsets[0], offsets[-1] - offsets[0]).cast(pa.large_string())
        if not len(texts):
            return np.empty(0, np.uint64)
        hashes = hash_words(texts)
        self._dictionary.add(hashes, *strings(texts))
        return hashes


def _lists(offsets: NDArray[np.int64], values: pa.Array, column: str) -> pa.Array:
    """A column of results."""
    type_ = RESULTS.field(column).type
    return pa.LargeListArray.from_arrays(pa.array(offsets), values, type=type_)


def _with_entries(
    found: WordCounts, offsets: NDArray[np.int64], times: NDArray[np.int64], words: Words
) -> WordCounts:
    """Counts and, on top of them, one for each entry of each list."""
    queries = len(offsets) - 1
    owner = np.repeat(np.arange(queries), np.diff(found.offsets))
    more = np.repeat(np.arange(queries), np.diff(offsets))
    owners, every = np.concatenate([owner, more]), np.concatenate([found.words, words])
    counts = np.concatenate([found.counts, np.ones(len(words), np.int64)])
    order = np.lexsort((every, owners))
    owners, every = owners[order], every[order]
    new = np.append(True, (owners[1:] != owners[:-1]) | (every[1:] != every[:-1]))
    first = np.flatnonzero(new[: len(order)])
    total = np.add.reduceat(counts[order], first) if len(first) else counts
    bounds = np.searchsorted(owners[first], np.arange(queries + 1))
    return WordCounts(bounds, every[first], total, found.examined + len(times))


def _changes(
    order: NDArray[np.int64],
    slot: NDArray[np.int64],
    time: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    work: Work,
    names: NDArray[np.uint8],
) -> Changes:
    """Reports at moments."""
    n = len(order)
    codes, values = np.zeros(n, np.uint8), np.zeros(n)
    return Changes(order, slot, codes, time, values, starts, lengths, names, work)
