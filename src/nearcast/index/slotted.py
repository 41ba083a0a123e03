"""Subscriptions as slots (`kernels.slots`): what can be said of them, and how they move."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.base import Boxes, LocalIndex, WantedWords
from nearcast.kernels import slots as sl
from nearcast.kernels.ragged import frozen, gather
from nearcast.wire.changes import Texts
from nearcast.wire.tables import CONTROLS, NEVER, empty, list_column, string_column

Runs = tuple[NDArray[np.int64], NDArray[np.float64]]  # offsets, numbers

_KEPT = sl.REGION_CODE | sl.REPORTS | sl.CONJUNCTION | sl.PARITY  # flags that move with a row


class SlottedIndex(LocalIndex):
    """A table of subscriptions; subclasses attach it and search it."""

    _slots: sl.Slots
    _slots_meta: NDArray[np.int64]
    _ends: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self._slots_meta[sl.COUNT])

    def ended(self) -> NDArray[np.int64]:
        slots: NDArray[np.int64] = np.unique(self._ends[: self._slots_meta[sl.ENDS_TOP], 0])
        return slots

    def living(self, now: int) -> NDArray[np.int64]:
        n = len(self)
        alive = (self._slots.half[:n, sl.FLAGS] & sl.LIVE != 0) & (
            self._slots.rows[:n, sl.END] > now
        )
        return np.flatnonzero(
            alive & (self._slots.rows[:n, sl.END] > self._slots.rows[:n, sl.START])
        )

    def rows(self, slots: NDArray[np.int64]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        n = len(slots)
        rows, half = self._slots.rows[slots], self._slots.half[slots].astype(np.int64)
        flags = half[:, sl.FLAGS]
        body = rows[:, sl.BODY]
        cover = body + half[:, sl.PROGRAM]
        region = cover + half[:, sl.COVER]
        boxes = region + half[:, sl.REGION]
        box_lengths = ((flags >> sl.BOXES_SHIFT) & sl.BOXES_MASK) * 4
        id_lengths = flags >> sl.ID_SHIFT
        words = CONTROLS.field("program").type
        heap, numbers_ = self._slots.heap, self._slots.reals
        regions = gather(numbers_, region, half[:, sl.REGION])
        own = self._own_columns(slots, regions, gather(numbers_, boxes, box_lengths))
        controls = pa.RecordBatch.from_arrays(
            [
                pa.array(np.arange(n)),
                pa.array(np.full(n, sl.SUBSCRIBE, np.uint8)),
                pa.array(rows[:, sl.START]),
                pa.array(rows[:, sl.END]),
                pa.array(np.full(n, NEVER)),
                pa.array(
                    np.where(
                        sl.known(self._slots)[slots], flags & _KEPT, flags & _KEPT | sl.FORMER
                    ).astype(np.int32)
                ),
                string_column(*gather(self._slots.text, rows[:, sl.TEXT], id_lengths)),
                string_column(
                    *gather(self._slots.text, rows[:, sl.TEXT] + id_lengths, half[:, sl.TAIL])
                ),
                list_column(*gather(heap, body, half[:, sl.PROGRAM]), words),
                list_column(*gather(heap, cover, half[:, sl.COVER]), words),
                *own,
            ],
            schema=self.controls,
        )
        return controls, self._result_rows(slots)

    @abstractmethod
    def _own_columns(self, slots: NDArray[np.int64], regions: Runs, boxes: Runs) -> list[pa.Array]:
        """The columns of the shape, of slots with these regions and outer boxes."""

    def _result_rows(self, slots: NDArray[np.int64]) -> pa.RecordBatch:
        """Results of slots, which are numbered from 0 in them."""
        del slots  # a subclass may keep results; by default there are none
        return empty(self.results)

    def wanted_words(self, slots: NDArray[np.int64]) -> WantedWords:
        half = self._slots.half[slots].astype(np.int64)
        conjunction: NDArray[np.bool_] = half[:, sl.FLAGS] & sl.CONJUNCTION != 0
        body, program, cover = (
            self._slots.rows[slots, sl.BODY],
            half[:, sl.PROGRAM],
            half[:, sl.COVER],
        )
        starts = np.where(cover > 0, body + program, body)
        lengths = np.where(cover > 0, cover, np.where(conjunction, program, 0))
        return *gather(self._slots.heap, starts, lengths), conjunction

    def boxes(self, slots: NDArray[np.int64]) -> Boxes:
        half = self._slots.half[slots].astype(np.int64)
        boxes = (half[:, sl.FLAGS] >> sl.BOXES_SHIFT) & sl.BOXES_MASK
        first = self._slots.rows[slots, sl.BODY] + half[:, sl.PROGRAM] + half[:, sl.COVER]
        first += np.where(boxes > 0, half[:, sl.REGION], 0)  # without boxes the region is one
        offsets, numbers_ = gather(self._slots.reals, first, 4 * np.maximum(boxes, 1))
        return offsets // 4, numbers_.reshape(-1, 4)

    def parity(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        parity: NDArray[np.bool_] = self._slots.half[slots, sl.FLAGS] & sl.PARITY != 0
        return parity

    def texts(self, slots: NDArray[np.int64]) -> Texts:
        return Texts(self._slots.text, *sl.texts_of(self._slots, frozen(slots)))

    @property
    def all_report(self) -> bool:
        return bool(self._slots_meta[sl.SILENT] == 0)

    def reports(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        return sl.reporting(self._slots, frozen(slots))
