"""The common part of the indexes that delete lazily (`index.regions.lazy_deletion`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.regions import lazy_deletion as lz
from nearcast.index.regions.index import Finder, RegionIndex
from nearcast.kernels.bits import words_for
from nearcast.kernels.postings import ENTRY


class _Hits(Protocol):
    """Scratch of a search: a NamedTuple with room for the hits of one object."""

    @property
    def hits(self) -> NDArray[np.int64]: ...

    def _replace(self, *, hits: NDArray[np.int64]) -> Self: ...


_Scratch = TypeVar("_Scratch", bound=_Hits)
_Match = Callable[[_Scratch, NDArray[np.int64], NDArray[np.int64]], int]


class LazyIndex(RegionIndex):
    """Notes what ends; subclasses take it off their lists when they come across it."""

    cells = True
    entry_width = ENTRY

    def _attach(self) -> None:
        super()._attach()
        get = self.storage.array
        bits = words_for(len(self._slots.rows))
        self._lazy = lz.Lazy(
            get("gone", np.uint64, 1, bits),
            get("left", np.uint64, 1, bits),
            get("lazy", np.int64, 1, lz.META)[: lz.META],
        )

    def _retried(self, scratch: _Scratch, match: _Match[_Scratch]) -> Finder:
        """A finder that calls `match` again, with longer hits, where they were too short."""

        def find(out: NDArray[np.int64], counts: NDArray[np.int64]) -> bool:
            nonlocal scratch
            while (ended := match(scratch, out, counts)) == lz.SHORT:
                scratch = scratch._replace(hits=np.empty(4 * len(scratch.hits), np.int64))
            return ended == lz.DONE

        return find

    def apply(self, controls: pa.RecordBatch, at: NDArray[np.int32]) -> None:
        """Apply subscribes and unsubscribes; what they end is noted."""
        super().apply(controls, at)
        lz.note_all(self._lazy, self.ended())

    def drop(self, slots: NDArray[np.int64]) -> None:
        """Note that these subscriptions, which moved away, have ended."""
        super().drop(slots)
        lz.note_all(self._lazy, slots)
