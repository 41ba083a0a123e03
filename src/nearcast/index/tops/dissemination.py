"""Which subscriptions may an object change: the part of an index that differs between methods.

All indexes of this shape share subscriptions, buffers, expiry and refills (`index.tops.base`). What
is particular to one is its dissemination: it is given subscriptions to post, and finds candidates.

To add one: a subclass of `Dissemination` (its kernels on flat arrays of its storage), and a class
of `TopIndex` with a name in a file or folder of that name, whose `dissemination` it is:

    class Reach(TopIndex):
        name, paper, about = "reach", "-", "..."
        dissemination = Words

and a line in `nearcast.index.INDEXES`. What it may rely on:

- `t.rows[slot]` has the place, alpha, maxdist and the present FLOOR of a subscription; the keywords
  stand at `t.heap[HEAP:HEAP+KEYWORDS]` in the order of the query, their normalised weights behind
  them in `t.reals`. An object enters a buffer only if its score is at least FLOOR.
- FLOOR rises at any time, within a batch too. It falls only when a buffer is filled: `post` is then
  called with the slot, before the next candidates are searched. New slots are posted in that way.
- `candidates` gives a superset, in object order; the score, `where` and times are decided
  elsewhere, and the same slot may be given twice. Bounds must be rounded outwards: a score that is
  exactly FLOOR must be found.
- What it keeps in its storage is gone when an arena is built anew, and then all slots are posted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nearcast.index.arena import Storage
from nearcast.index.tops.state import Tops, Weighed
from nearcast.kernels.slots import Slots
from nearcast.model.frame import Idf
from nearcast.model.space import Space

__all__ = ["Candidates", "Dissemination"]

Candidates = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Numbers of objects, ascending, and slots."""


class Dissemination(ABC):
    """Finds candidates. One object lives as long as its index is attached."""

    step: ClassVar[int] = 512
    """Objects whose candidates are searched at a time."""

    def __init__(self, space: Space, storage: Storage, idf: Idf) -> None:
        self.space = space
        self.storage = storage
        self.idf = idf

    @abstractmethod
    def post(self, t: Tops, s: Slots, slots: NDArray[np.int64]) -> None:
        """Post slots that are new, or whose FLOOR fell."""

    @abstractmethod
    def candidates(
        self,
        t: Tops,
        s: Slots,
        w: Weighed,
        first: int,
        stop: int,
        counts: NDArray[np.int64],
    ) -> Candidates:
        """Who may take objects first <= i < stop.

        Adds to LOOKUPS, SCANNED (entries, and bounds of groups, that were read), PARTS and
        PARTS_SKIPPED (groups under one bound), CELLS and CELLS_SKIPPED of `counts`.
        """
