"""What regions and balls share: subscriptions in slots, posted under words on posting lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index import posting
from nearcast.index.arena import Storage
from nearcast.index.deciding import EXAMINED, LOOKUPS, SCANNED
from nearcast.index.slotted import SlottedIndex
from nearcast.kernels import blocks
from nearcast.kernels import postings as pl
from nearcast.kernels import slots as sl
from nearcast.kernels.bits import words_for
from nearcast.kernels.raster import words_of_rasters
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.wire.changes import Work
from nearcast.wire.tables import ObjectColumns, control_columns

_STAMPS = 2**31 - 1
_FEW = 1 << 18  # rows: smaller arrays double


class PostedIndex(SlottedIndex):
    """A table of subscriptions and the posting lists that lead to them.

    It owns the arrays and makes them longer. `RegionIndex` and `BallIndex` post and match.
    """

    entry_width: int = pl.ENTRY  # 32-bit numbers of an entry of a list
    most_cells: int  # that one subscription is posted in under one word, at most

    def __init__(self, space: Space, storage: Storage) -> None:
        super().__init__(space, storage)
        self.load()

    def load(self) -> None:
        self._meta = self.storage.array("meta", np.int64, 1, sl.META + pl.META + posting.META)
        self._slots_meta = self._meta[: sl.META]
        self._lists_meta = self._meta[sl.META : sl.META + pl.META]
        self._post_meta = self._meta[sl.META + pl.META :]
        self._ends = np.empty((0, 5), np.int64)
        self._attach()

    def _attach(self) -> None:
        """Map every array at its present length."""
        get = self.storage.array
        rows = get("slots", np.int64, 8, 64)
        heap = get("heap", np.uint64, 1, 256)
        pool = get("pool", np.int32, self.entry_width, 256)
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

    # -- subscriptions -----------------------------------------------------------------------

    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        if controls.num_rows == 0:
            return
        c = control_columns(controls, at)
        first = len(self)
        self._reserve(c)
        self._attach()
        sl.apply_controls(self._slots, c)
        self._added(first, controls, c)

    def _added(self, first: int, controls: pa.RecordBatch, c: sl.Controls) -> None:
        """The slots from `first` on are new; `controls`, in columns `c`, brought them."""

    def _reserve(self, c: sl.Controls) -> None:
        """Room for all of `c` in the slots, their bodies, texts and ids."""
        n = int(np.count_nonzero(c.op == sl.SUBSCRIBE))
        meta = self._slots_meta
        body = len(c.program) + len(c.cover) + len(c.region) + len(c.boxes)
        body += words_of_rasters(c.flags & sl.REGION_CODE, c.region_offsets)
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

    def drop(self, slots: NDArray[np.int64]) -> None:
        sl.drop_slots(self._slots, slots)

    def close(self) -> None:
        sl.close_batch(self._slots)

    # -- lists -------------------------------------------------------------------------------

    def _grow_lists(self) -> None:
        """Make the arrays of the lists that are short larger."""
        words = 2 * int(self._slots_meta[sl.LONGEST]) + 1
        keys = words * self.most_cells
        if (int(self._post_meta[posting.WORDS]) + words) * 10 > len(self._index.words) * 7:
            before = len(self._index.words)
            size = _power((int(self._post_meta[posting.WORDS]) + words) * 10 // 7 + 1)
            pl.stretch(self.storage.array("words", np.uint64, posting.WORD_ROW, size), before)
        elif self._lacks_keys(keys):
            self._grow_keys(keys)
        else:
            self._grow_pool()
        self._attach()

    def _grow_pool(self) -> None:
        """A pool in which the longest list can double."""
        lists = self._index.lists
        longest = 1 << int(pl.room_class(lists.table[:, 1].max()))
        if 2 * longest > pl.LONGEST:
            raise NearcastError(f"{longest:,} subscriptions on one list; use more shards")
        need = int(self._lists_meta[blocks.TOP]) + 2 * longest
        size = max(_larger(len(lists.pool), 16), need)
        self.storage.array("pool", np.int32, self.entry_width, size)

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
        if int(tops[blocks.TOP]) + more > len(lists.pool):
            self.storage.array("pool", np.int32, self.entry_width, int(tops[blocks.TOP]) + 2 * more)
        self._attach()

    def _forget_lists(self) -> None:
        """Take every subscription off the lists; they are posted anew before the next objects."""
        for name in ("keys", "marks", "pool", "words"):
            self.storage.discard(name)
        self._lists_meta[:] = 0
        self._post_meta[:] = 0
        self._attach()

    def _make_stamps(self, objects: ObjectColumns) -> None:
        """Clear stamps if the numbers of `objects` would be larger than a stamp can be."""
        if int(self._slots_meta[sl.CLOCK]) + len(objects.order) > _STAMPS:
            self._slots.half[:, sl.STAMP] = -1
            self._slots_meta[sl.CLOCK] = 0


def most_words(objects: ObjectColumns) -> int:
    """The number of words of the object that has most."""
    return int(np.diff(objects.word_offsets).max(initial=0))


def work_of(counts: NDArray[np.int64]) -> Work:
    """What kernels counted (`index.deciding`)."""
    return Work(int(counts[EXAMINED]), int(counts[LOOKUPS]), int(counts[SCANNED]))


def _larger(rows: int, part: int = 8) -> int:
    """The next size of something that grows row by row, by 1/`part`; small ones double."""
    return 2 * rows if rows < _FEW else rows + rows // part


def _power(n: int) -> int:
    """The least power of two that is at least `n`."""
    return 1 << max(n - 1, 1).bit_length()
