"""The life of slices, the same for every store: made, merged, sealed, dropped, saved.

Each `add` makes a small slice with its index. Slices of about one size are merged when there are
eight of them, so an object is indexed a few times, and there are never many slices to search.
When an interval is over, its slices are merged into one that is sealed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.model.space import Space
from nearcast.objects import slices as sl
from nearcast.objects.base import (
    NO_IDF,
    NOT_SEALED,
    Fields,
    Idf,
    Objects,
    ObjectStore,
    SliceInfo,
    Slicing,
)
from nearcast.objects.blob import Part
from nearcast.objects.coded import RANK, TIME, Coded, coded, joined, plain, taken
from nearcast.objects.directory import LATE, OPEN, SEALED, Directory, Entry
from nearcast.objects.tables import (
    NO_ROWS,
    fields_joined,
    fields_taken,
    no_fields,
    read_table,
    stored_table,
)
from nearcast.wire.tables import FOREVER

__all__ = ["ROW_BITS", "Sliced"]

ROW_BITS = 24  # of a handle; the others are the number of the slice
_ROW = (1 << ROW_BITS) - 1
_FANOUT = 8  # slices of one size until they are merged
_MOST_BYTES = 1 << 31
_SMALL = 4096  # objects; below, all sizes count as one

Rows = tuple[Coded, Fields]


class Sliced(ObjectStore):
    """A store of slices. A subclass orders the rows of a slice, indexes them, and searches."""

    parts: ClassVar[Sequence[Part]] = ()
    """The arrays of the index of a slice."""

    def __init__(
        self,
        space: Space,
        storage: Storage,
        slicing: Slicing = Slicing(),  # noqa: B008 -- frozen
        idf: Idf = NO_IDF,
    ) -> None:
        super().__init__(space, storage, slicing, idf)
        self._directory = Directory(storage)
        self._attached: dict[int, sl.Slice] = {}

    @abstractmethod
    def _order(self, rows: Coded) -> NDArray[np.int64]:
        """The order in which the objects of a slice rest."""

    @abstractmethod
    def _index(self, rows: Coded, sealed: bool) -> Sequence[NDArray[Any]]:
        """The arrays `parts` of objects that are in their order; if not sealed, not for long."""

    @abstractmethod
    def _attach_index(self, arrays: list[Any]) -> Any:
        """The index for searches."""

    def add(self, objects: Objects, fields: Fields | None = None) -> None:
        n = len(objects.time)
        if n == 0:
            return
        whole: Rows = coded(objects), fields or no_fields(n)
        late = objects.time < self._directory.border
        for state, chosen in ((LATE, late), (OPEN, ~late)):
            if chosen.all():
                self._append(whole, state)
            elif chosen.any():
                self._append(_some(whole, np.flatnonzero(chosen)), state)
        self._directory.save()

    def seal(self, before: int) -> None:
        d = self._directory
        border = before // self.slicing.delta_ms * self.slicing.delta_ms
        d.border = max(d.border, border)
        over = [e for e in d.of(OPEN) if e.first_time < d.border]
        late = d.of(LATE)
        if over or sum(e.objects for e in late) >= self.slicing.least:
            self._seal(over, late)
        d.save()

    def _seal(self, over: list[Entry], late: list[Entry]) -> None:
        """Cut the objects of intervals that are over into slices."""
        border = self._directory.border
        parts, newer = [], []
        for entry in (*over, *late):
            rows = self._read([entry])
            if entry.last_time >= border:  # few slices are of both sides
                ended = rows[0].when[:, TIME] < border
                newer.append(_some(rows, np.flatnonzero(~ended)))
                rows = _some(rows, np.flatnonzero(ended))
            parts.append(rows)
        whole = _joined(parts)
        del parts  # what comes needs the memory
        for entry in (*over, *late):
            self._drop(entry)
        by_rank = np.argsort(whole[0].when[:, RANK])
        groups, rest = self._groups(whole[0].when[:, TIME], by_rank)
        for rows_of in groups:
            every = len(rows_of) == whole[0].size  # the usual case; they get an order anyway
            self._make(whole if every else _some(whole, rows_of), SEALED)
        if len(rest):
            self._append(_some(whole, rest), LATE)
        for piece in newer:
            self._append(piece, OPEN)

    def _groups(
        self, time: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
        """Rows of one slice each: of an interval with many objects, or of several with few.

        Then the rows that are too few for a slice. Where an interval has several slices, they
        follow each other by rank (`rows` ascend by it), so `expire` by rank can drop the first.
        """
        least, most = self.slicing.least, self.slicing.most
        interval = time[rows] // self.slicing.delta_ms
        rows = rows[np.argsort(interval, kind="stable")]
        _, sizes = np.unique(interval, return_counts=True)
        ends = np.cumsum(sizes)
        groups, few = [], []
        for first, last in zip(ends - sizes, ends, strict=True):
            if last - first >= least:
                groups += np.array_split(rows[first:last], -(-(last - first) // most))
                continue
            few.append(rows[first:last])
            if sum(map(len, few)) >= least:
                groups.append(np.concatenate(few))
                few = []
        return groups, np.concatenate([*few, rows[:0]])

    def words(self) -> NDArray[np.uint64]:
        parts = [self._slice(entry.number).columns.words for entry in self._directory.entries]
        found: NDArray[np.uint64] = np.unique(np.concatenate([np.empty(0, np.uint64), *parts]))
        return found

    def expire(self, before: int, rank: int = FOREVER) -> None:
        for entry in list(self._directory.entries):
            if entry.last_time <= before and entry.last_rank < rank:
                self._drop(entry)
        self._directory.save()

    def _append(self, rows: Rows, state: int) -> None:
        """Make a slice, and merge it with others of its size if there are enough."""
        self._make(rows, state)
        while chosen := self._mergeable(self._directory.of(state)):
            entries = self._directory.entries
            merged, place = self._read(chosen), entries.index(chosen[0])
            for entry in chosen:
                self._drop(entry)
            before = len(entries)
            self._make(merged, state)
            made = entries[before:]
            entries[before:] = []
            entries[place:place] = made  # in the order in which objects came

    def _mergeable(self, chain: list[Entry]) -> list[Entry]:
        """Slices to be merged: the latest of one size, or the first of them if that is too much."""
        size = _size_class(chain[-1].objects)
        run = 0
        while run < len(chain) and _size_class(chain[-1 - run].objects) <= size:
            run += 1
        most = min(self.slicing.most, max(len(self) // self.slicing.part, _SMALL))
        ends = np.cumsum([e.objects for e in chain[len(chain) - run :]])
        fit = int(np.searchsorted(ends, most, side="right"))
        return chain[len(chain) - run :][:fit] if fit >= _FANOUT else []

    def _make(self, whole: Rows, state: int, number: int | None = None) -> None:
        """Write a slice and enter it into the list; more than one if it would be too large."""
        pieces = self._pieces(whole[0])
        if pieces > 1 and number is None:
            for piece in np.array_split(np.arange(whole[0].size), pieces):
                self._make(_some(whole, piece), state)
            return
        coded_rows, fields = whole
        order = self._order(coded_rows)
        d = self._directory
        number = d.next_number if number is None else number
        d.next_number = max(d.next_number, number + 1)
        rows = sl.place(self.storage, number, coded_rows, order, self.idf)
        sl.place_index(self.storage, number, self.parts, self._index(rows, state == SEALED))
        has_fields = sl.place_fields(self.storage, number, fields_taken(fields, order))
        size = sl.size(self.storage, number, self.parts)
        (t0, r0), (t1, r1) = rows.when.min(0).tolist(), rows.when.max(0).tolist()
        d.entries.append(Entry(number, state, rows.size, t0, t1, r0, r1, size, int(has_fields)))

    def _pieces(self, rows: Coded) -> int:
        """How many slices objects need: their words and bytes of ids are counted in 32 bits."""
        longest = max(len(rows.codes), len(rows.id_bytes))
        pieces = max(-(-rows.size // self.slicing.most), -(-longest // _MOST_BYTES))
        return min(pieces, rows.size)

    def _drop(self, entry: Entry) -> None:
        self._attached.pop(entry.number, None)
        self._directory.entries.remove(entry)
        sl.drop(self.storage, entry.number)

    def _slice(self, number: int) -> sl.Slice:
        """A slice, attached."""
        found = self._attached.get(number)
        if found is None:
            columns, arrays = sl.attach(self.storage, number, self.parts)
            entry = next(e for e in self._directory.entries if e.number == number)
            limits = [entry.first_time, entry.last_time, entry.first_rank, entry.last_rank]
            found = columns._replace(limits=np.array(limits), index=self._attach_index(arrays))
            self._attached[number] = found
        return found

    def _read(self, entries: Sequence[Entry]) -> Rows:
        """The objects of slices, in any order."""
        return _joined([(sl.decoded(self._slice(e.number)), self._fields_of(e)) for e in entries])

    def _fields_of(self, entry: Entry) -> Fields:
        if not entry.has_fields:
            return no_fields(entry.objects)
        return sl.field_columns(self.storage, entry.number)

    def rows(self, handles: NDArray[np.int64]) -> Objects:
        if len(handles) == 0:
            return plain(NO_ROWS)
        number, order, ends = _by_slice(handles)
        parts = [
            sl.cut(self._slice(n), handles[rows] & _ROW)
            for n, rows in zip(number, np.split(order, ends), strict=True)
        ]
        return plain(taken(joined(parts), np.argsort(order)))

    def fields(self, handles: NDArray[np.int64]) -> Fields:
        if len(handles) == 0:
            return no_fields(0)
        number, order, ends = _by_slice(handles)
        entries = {e.number: e for e in self._directory.entries}
        parts = [
            fields_taken(self._fields_of(entries[n]), handles[rows] & _ROW)
            for n, rows in zip(number, np.split(order, ends), strict=True)
        ]
        return fields_taken(fields_joined(parts), np.argsort(order))

    def slices(self) -> list[SliceInfo]:
        return [e.info() for e in self._directory.entries]

    def snapshot(self, number: int) -> pa.RecordBatch:
        sealed = number != NOT_SEALED
        chosen = [e for e in self._directory.entries if (e.state == SEALED) == sealed]
        if sealed:
            chosen = [e for e in chosen if e.number == number]
        if sealed and not chosen:
            raise KeyError(number)
        if not chosen:
            return stored_table(plain(NO_ROWS), no_fields(0))
        whole = self._read(chosen)
        rows, fields = _some(whole, np.argsort(whole[0].when[:, RANK]))
        return stored_table(plain(rows), fields)

    def restore(self, number: int, table: pa.RecordBatch) -> None:
        objects, fields = read_table(table)
        if number == NOT_SEALED:
            self.add(objects, fields)
            return
        if any(e.number == number for e in self._directory.entries):
            raise ValueError(f"slice {number} is there already")
        self._make((coded(objects), fields), SEALED, number)
        self._directory.save()

    def clear(self) -> None:
        for entry in list(self._directory.entries):
            self._drop(entry)
        self.storage.clear()
        self._directory = Directory(self.storage)

    @property
    def bytes(self) -> int:
        return sum(e.bytes for e in self._directory.entries)

    def __len__(self) -> int:
        return sum(e.objects for e in self._directory.entries)


def _some(whole: Rows, rows: NDArray[np.int64]) -> Rows:
    return taken(whole[0], rows), fields_taken(whole[1], rows)


def _joined(parts: Sequence[Rows]) -> Rows:
    return joined([rows for rows, _ in parts]), fields_joined([fields for _, fields in parts])


def _size_class(objects: int) -> int:
    """Sizes of one class differ by less than a factor of _FANOUT."""
    found = 0
    while objects >= _SMALL:
        objects //= _FANOUT
        found += 1
    return found


def _by_slice(
    handles: NDArray[np.int64],
) -> tuple[list[int], NDArray[np.int64], NDArray[np.int64]]:
    """(numbers of slices, places of handles by slice, where a slice ends but the last)."""
    number = handles >> ROW_BITS
    order = np.argsort(number, kind="stable")
    distinct, sizes = np.unique(number, return_counts=True)
    return distinct.tolist(), order, np.cumsum(sizes)[:-1]
