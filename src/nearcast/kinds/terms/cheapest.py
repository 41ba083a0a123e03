"""`cheapest`: for each group of like subscriptions, tables in common or a count at each moment.

Tables cost for every object near the group, as it comes and as it goes, and memory for every word;
a count costs for every object that the window holds, at every moment. So what decides is how many
objects come within an `every`, against how many a moment would count, and how much the members of
a group have in common. Each is taken from the objects that a shard sees, and weighed by what the
steps were measured to cost (docs/terms.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import blocks
from nearcast.kinds.terms import moments as mo
from nearcast.kinds.terms import shared_tables as st
from nearcast.kinds.terms.groups import Groups

__all__ = ["Cheapest", "Costs", "cheaper"]

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]

# Nanoseconds, measured by `nearcast bench terms` on the bare indexes (docs/terms.md).
COUNTED_NS = 90.0  # an object that a moment counts in the store
MOMENT_NS = 10_000.0  # a moment in the store, whatever it counts
CHANGED_NS = 400.0  # an object, into one table or out of it
NEAR_NS = 150.0  # an object near a group: which of its tables?
READ_NS = 15.0  # a word of a table that a moment reads
_WORDS, _FEWER = 30.0, 0.75  # so many distinct words, times objects to this power
TABLE_BYTES = 16 * 2 * 6  # of an object in one table, as many of its words are there already
_SAMPLE = 20_000  # objects, by which shares are estimated
_LOOKS = 256  # batches from one look to the next; at first, those numbered by a power of two
_ROOM = 1 << 28  # bytes of tables that are always allowed
_MARGIN = 0.8  # what is there stays, unless the other way costs less than this part of it


class Costs:
    """What a group costs in one millisecond of the stream, by either way, in nanoseconds."""

    def __init__(
        self, members: Reals, every: Reals, window: Reals, rate: float, changes: Reals,
        held: Reals, near: Reals,
    ) -> None:  # fmt: skip
        """`rate`: objects in a millisecond; `changes`, `held`, `near`: per object of the stream.

        Tables that it changes, subscriptions whose region it is in, and whether it is near at all.
        """
        moments = members / np.maximum(every, 1.0)
        mean = held / np.maximum(members, 1.0) * rate * window  # objects that a moment counts
        self.counting: Reals = moments * (MOMENT_NS + mean * COUNTED_NS)
        self.tables: Reals = (
            2.0 * rate * (changes * CHANGED_NS + near * NEAR_NS)
            + moments * _WORDS * mean**_FEWER * READ_NS
        )
        self.table_bytes: Reals = changes * rate * window * TABLE_BYTES


def cheaper(costs: Costs, there: NDArray[np.bool_], room: float) -> NDArray[np.bool_]:
    """Which groups shall have tables: those that save most for their bytes, as far as these go.

    `there`: which have tables now.
    """
    limit = np.where(there, costs.counting / _MARGIN, costs.counting * _MARGIN)
    better = costs.tables < limit
    saved = (costs.counting - costs.tables) / np.maximum(costs.table_bytes, 1.0)
    order = np.argsort(np.where(better, -saved, np.inf), kind="stable")
    fits = np.cumsum(np.where(better, costs.table_bytes, 0.0)[order]) <= room
    chosen = np.zeros(len(better), np.bool_)
    chosen[order] = fits
    return chosen & better


class Cheapest(Groups):
    """Groups where tables cost less; the others are counted at their moments."""

    name = "cheapest"
    paper = "nearcast (cf. SSTD 6.1)"
    about = "groups where it costs less than a count of kept objects at each moment"

    def load(self) -> None:
        """Attach what the storage holds, and when to look again."""
        super().load()
        self._looked = self.storage.array("shared.looked", np.int64, 1, 1)

    @property
    def _looks(self) -> bool:
        """Whether this batch decides; in others, who waits goes on waiting."""
        batch = int(self._looked[0])
        return batch % _LOOKS == 0 or batch & (batch - 1) == 0

    def close(self) -> None:
        """One more batch is over."""
        super().close()
        self._looked[0] += 1

    def _review(self) -> None:
        """Dissolve groups that do not pay any more."""
        groups = np.flatnonzero(self._groups.rows[:, st.ALIVE])
        if self._looks and len(groups):
            for group in groups[~self._paying(groups, np.ones(len(groups), np.bool_))].tolist():
                self._dissolve(group)

    def _group(self, waiting: Longs) -> None:
        if self._looks:
            super()._group(waiting)

    def _worth(self, groups: Longs) -> NDArray[np.bool_]:
        return self._paying(groups, np.zeros(len(groups), np.bool_))

    def _paying(self, groups: Longs, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which groups tables are better for."""
        sample, rate = self._sample()
        if not len(sample.x):
            return there
        g = self._groups
        shares = np.array(
            [
                st.shares_of(self.space.code, self._slots, self._index.stack, g, group, sample)
                for group in groups.tolist()
            ],
            np.float64,
        ) / len(sample.x)
        members, every = np.empty(len(groups)), np.empty(len(groups))
        for n, group in enumerate(groups.tolist()):
            own = g.members[group * st.MOST : group * st.MOST + int(g.rows[group, st.MEMBERS])]
            slots = own[own[:, 1] == 1, 0]
            members[n] = len(slots)
            every[n] = len(slots) / (1.0 / self._rows[slots, mo.EVERY]).sum() if len(slots) else 1
        window = g.rows[groups, st.WINDOW].astype(np.float64)
        costs = Costs(members, every, window, rate, *shares.T)
        return cheaper(costs, there, self._room_for(there))

    def _room_for(self, there: NDArray[np.bool_]) -> float:
        """Bytes of tables that these groups may have: no more than the kept objects take."""
        room = float(max(_ROOM, self.past.bytes))
        if there.any():
            return room
        return room - float(self._pool_meta[blocks.TOP]) * 16

    def _sample(self) -> tuple[st.Some, float]:
        """Some objects of late, by x, and how many of them there are in a millisecond."""
        there = self.past.slices()
        objects = sum(s.objects for s in there)
        if not objects:
            return self._arrived, 0.0
        span = max(s.last_time for s in there) - min(s.first_time for s in there) + 1
        sample = self._arrived
        if len(sample.x) > _SAMPLE:
            some = np.linspace(0, len(sample.x) - 1, _SAMPLE).astype(np.int64)
            x, y, time, rank, starts, stops, words = sample
            sample = st.Some(
                x[some], y[some], time[some], rank[some], starts[some], stops[some], words
            )
        return sample, objects / span
