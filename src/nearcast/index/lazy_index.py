"""The common part of the indexes that delete lazily (`index.lazy`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index import lazy as lz
from nearcast.index.aki_match import Search
from nearcast.index.balls import EVERYWHERE
from nearcast.index.compiled import CompiledIndex, Finder
from nearcast.index.gi2_lists import Lookups
from nearcast.kernels.bits import words_for
from nearcast.kernels.postings import ENTRY

_Scratch = TypeVar("_Scratch", Lookups, Search)
_Match = Callable[[_Scratch, NDArray[np.int64], NDArray[np.int64]], int]


class LazyIndex(CompiledIndex):
    """Notes what ends; subclasses take it off their lists when they come across it."""

    kinds = ("range",)
    cells = True
    layout = EVERYWHERE
    range_width = ENTRY

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
        """These subscriptions moved away; that is noted too."""
        super().drop(slots)
        lz.note_all(self._lazy, slots)
