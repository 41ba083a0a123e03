"""Storage of results of nearest objects around `kernels.results`: growth, changes, export."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.kernels import blocks
from nearcast.kernels import results as rs
from nearcast.kernels.ragged import gather, places
from nearcast.kernels.slots import Controls
from nearcast.wire.changes import Changes, Work
from nearcast.wire.tables import (
    NEAREST,
    ObjectColumns,
    list_column,
    lists,
    numbers,
    string_column,
    strings,
)

_CHUNK = 2**20  # changes


class ResultStore:
    """Results of the slots of one index."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def load(self) -> None:
        """Attach what the storage holds."""
        self._meta = self.storage.array("results.meta", np.int64, 1, rs.META)
        self._dirty = np.empty(0, np.int32)
        self._chunks: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        self._out = (np.empty((0, 5), np.int64), np.empty(0))
        self._reported = 0  # changes of the last batch: about as many may come again
        self._attach()

    def _attach(self) -> None:
        get = self.storage.array
        rows = get("results.rows", np.int64, 8, 64)
        pool = get("results.pool", np.int64, rs.ENTRY, 64)
        self.state = rs.Results(
            rows,
            rows.view(np.float64),
            rows.view(np.int32),
            pool,
            pool.view(np.float64),
            get("results.names", np.uint8, 1, 1024),
            self._meta,
            self._dirty,
            *self._out,
        )

    @property
    def windowed(self) -> bool:
        """Whether any subscription has a window."""
        return bool(self._meta[rs.WINDOWED])

    def reserve_slots(self, n: int) -> None:
        """Room for `n` slots."""
        self.storage.array("results.rows", np.int64, 8, n)

    def insert(
        self, first: int, controls: pa.RecordBatch, mine: NDArray[np.int64], c: Controls
    ) -> None:
        """Empty results for the new slots from `first` on, made from the rows `mine`."""
        self._attach()
        n = len(mine)
        rows = self.state.rows[first : first + n]
        reals = self.state.reals[first : first + n]
        rows[:] = 0
        at = c.region_offsets[mine]
        reals[:, rs.X], reals[:, rs.Y] = c.region[at], c.region[at + 1]
        reals[:, rs.REACH] = np.nan
        rows[:, rs.K] = numbers(controls["k"])[mine]
        rows[:, rs.WINDOW] = numbers(controls["window"])[mine]
        self._meta[rs.WINDOWED] += int(np.count_nonzero(rows[:, rs.WINDOW]))

    def settings(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """k and window of slots."""
        return self.state.rows[slots, rs.K], self.state.rows[slots, rs.WINDOW]

    # -- one batch ---------------------------------------------------------------------------

    def open(self, slots: int, objects: ObjectColumns) -> None:
        """Make ready for the objects of a batch."""
        self._reserve_dirty(slots)
        self._objects = objects
        self._renew_out(max(self._reported * 5 // 4, 4096))

    def _reserve_dirty(self, slots: int) -> None:
        """Room to note every slot; not in the storage, since only one batch needs it."""
        if len(self._dirty) < slots:
            wider = np.empty(slots + slots // 4, np.int32)
            n = int(self._meta[rs.DIRTY_TOP])
            wider[:n] = self._dirty[:n]
            self._dirty = wider

    def _renew_out(self, rows: int) -> None:
        self._out = (np.empty((rows, 5), np.int64), np.empty(rows))
        self._meta[rs.OUT_TOP] = 0
        self._reserve_names()

    def _reserve_names(self) -> None:
        """Room for the names of all objects of the batch, each once per interruption."""
        o = self._objects
        need = int(self._meta[rs.NAMES_TOP]) + len(o.id_bytes) + 2 * len(o.order) + 2048
        self.storage.array("results.names", np.uint8, 1, need)
        self._attach()

    def run(self, step: Callable[[], int], grow_lists: Callable[[], None]) -> None:
        """Call `step` until it is done, giving it more of what is short."""
        while short := step():
            if short == rs.NEED_LISTS:
                grow_lists()
            elif short == rs.NEED_POOL:
                self.storage.array(
                    "results.pool", np.int64, rs.ENTRY, len(self.state.pool) * 5 // 4 + 2**16
                )
                self._reserve_names()
            else:
                full, stuck = len(self._out[0]), self._meta[rs.OUT_TOP] == 0
                self._set_aside()
                self._renew_out(full * 2 if full < _CHUNK or stuck else full)

    def _set_aside(self) -> None:
        n = int(self._meta[rs.OUT_TOP])
        self._chunks.append((self._out[0][:n], self._out[1][:n]))

    def reserve_bulk(self, first: int, reporting: bool) -> None:
        """Room for full results of all slots from `first` on, and for reporting them."""
        k = np.minimum(self.state.rows[first:, rs.K], len(self._objects.order))
        room = 1 << np.ceil(np.log2(np.maximum(k, 1))).astype(np.int64)
        pool = int(self._meta[blocks.TOP] + room.sum())
        self.storage.array("results.pool", np.int64, rs.ENTRY, pool)
        self._reserve_names()
        if reporting:
            self._set_aside()
            self._renew_out(int(k.sum()) + 1)

    def changes(self, clock: NDArray[np.int64], work: Work, bulk: bool) -> Changes:
        """All that was reported since `open`, in the order of the log."""
        self._set_aside()
        rows = np.concatenate([c[0] for c in self._chunks])
        distance = np.concatenate([c[1] for c in self._chunks])
        self._chunks = []
        self._reported = min(len(rows), _CHUNK)
        order, moment = rows[:, 0], rows[:, 3]
        by_time = order < 0
        if np.any(by_time) or bulk:
            # What time did comes before the first object that is not earlier.
            key = 2 * np.where(by_time, np.searchsorted(clock, moment), order) + ~by_time
            sort = np.lexsort((np.arange(len(key)), np.where(by_time, moment, 0), key))
            rows, distance, order = rows[sort], distance[sort], key[sort] >> 1
        names = self.state.names
        starts = rows[:, 4]
        lengths = names[starts].astype(np.int64) | (names[starts + 1].astype(np.int64) << 8)
        return Changes(
            order,
            rows[:, 1],
            rows[:, 2].astype(np.uint8),
            rows[:, 3],
            distance,
            starts + 2,
            lengths,
            names,
            work,
        )

    def close(self) -> None:
        """The batch is over: nothing is dirty."""
        if self._meta[rs.DIRTY_TOP] > 0:
            self._meta[rs.CLOSED] += 1
            self._meta[rs.DIRTY_TOP] = 0

    # -- export ------------------------------------------------------------------------------

    def changed(self) -> pa.RecordBatch:
        """NEAREST of the slots that changed in this batch."""
        return self.table(np.sort(self._dirty[: self._meta[rs.DIRTY_TOP]]).astype(np.int64))

    def table(self, slots: NDArray[np.int64]) -> pa.RecordBatch:
        """NEAREST of slots."""
        first = self.state.rows[slots, rs.LIST]
        lengths = self.state.half[slots, rs.LENGTH].astype(np.int64)
        offsets, entries = places(first, lengths)
        pool, names = self.state.pool, self.state.names
        # Only a window needs the time at which an object came.
        windowed = np.repeat(self.state.rows[slots, rs.WINDOW] > 0, lengths)
        room = np.repeat(self.state.half[slots, rs.ROOM].astype(np.int64), lengths)
        more = np.where(windowed, entries + room, 0)
        starts = pool[entries, rs.NAME]
        sizes = names[starts].astype(np.int64) | (names[starts + 1].astype(np.int64) << 8)
        types = [f.type for f in NEAREST]
        objects = string_column(*gather(names, starts + 2, sizes))
        return pa.RecordBatch.from_arrays(
            [
                pa.array(slots),
                list_column(offsets, self.state.distances[entries, rs.DISTANCE], types[1]),
                list_column(offsets, np.where(windowed, pool[more, rs.TIME], 0), types[2]),
                list_column(offsets, np.where(windowed, pool[more, rs.OUTLIVED], 0), types[3]),
                pa.LargeListArray.from_arrays(pa.array(offsets), objects, type=types[4]),
            ],
            schema=NEAREST,
        )

    def restore(self, results: pa.RecordBatch) -> None:
        """Put NEAREST in place."""
        if results.num_rows == 0:
            return
        slots = numbers(results["slot"])
        offsets, distances = lists(results["distance"], np.float64)
        _, times = lists(results["time"], np.int64)
        _, outlived = lists(results["outlived"], np.int64)
        objects = results["object"]
        name_offsets, name_bytes = strings(
            objects.values.slice(objects.offsets[0].as_py(), len(times))
        )
        need = int(self._meta[rs.NAMES_TOP]) + len(name_bytes) + 2 * len(times) + 1
        self.storage.array("results.names", np.uint8, 1, need)
        longest = int(np.diff(offsets).max(initial=1))
        pool = int(self._meta[blocks.TOP]) + 4 * len(times) + 4 * longest
        self.storage.array("results.pool", np.int64, rs.ENTRY, pool)
        self._reserve_dirty(int(slots.max()) + 1)
        self._attach()
        rs.restore(self.state, slots, offsets, distances, times, outlived, name_offsets, name_bytes)
