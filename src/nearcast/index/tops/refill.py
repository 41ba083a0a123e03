"""Filling buffers: one search of the kept objects for all subscriptions that need it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.index.tops import state as st
from nearcast.index.tops.match import fill, last_needed, skybands
from nearcast.index.tops.policy import Policy
from nearcast.index.tops.store import TopStore
from nearcast.kernels import slots as sl
from nearcast.kernels.queries import Centres, Queries, Wishes
from nearcast.kernels.ragged import frozen, gather
from nearcast.model.frame import Frame
from nearcast.model.space import Space
from nearcast.wire.tables import FOREVER, NEVER

__all__ = ["Refill"]

_MOST = 1 << 22  # entries that one search fetches, about
_LIMITS = 1 << 12  # k up to which buffers are cut
_NO_LIMIT = 2**31 - 1

Longs = NDArray[np.int64]


class Refill:
    """Searches the past for the best objects of subscriptions, and fills their buffers."""

    def __init__(self, space: Space, frame: Frame, policy: Policy) -> None:
        self.space = space
        self.frame = frame
        self.policy = policy
        self.filled = 0  # buffers filled, those of new subscriptions too
        self.begun = 0  # of them, those of new subscriptions
        self.searched = 0  # searches for that: more if the first was not deep enough
        self.examined = 0  # objects looked at
        self._limits: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None

    def limits(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """By k: buffers with more entries are cut to so many. The last is for all larger k."""
        if self._limits is None:
            k = np.arange(1, _LIMITS)
            most = np.concatenate([[_NO_LIMIT], self.policy.most(k), [_NO_LIMIT]])
            depth = most  # where nothing is cut
            if most.min() < _NO_LIMIT:
                depth = np.concatenate([[_NO_LIMIT], self.policy.depth(k), [_NO_LIMIT]])
            self._limits = most.astype(np.int32), depth.astype(np.int32)
        return self._limits

    def fill(
        self,
        tops: TopStore,
        s: sl.Slots,
        past: Any,
        p: st.Period,
        slots: Longs,
        published: Longs,
        passed: Longs,
        begins: bool = False,
    ) -> NDArray[np.bool_]:
        """Fill the buffers of slots as of `published` objects, when time had come to `passed`.

        They are deep enough not to run short in the period. Which slots see anything.
        """
        until = st.first_ends(s, frozen(slots)) if begins else s.rows[slots, sl.END]
        lives = np.asarray(s.half[slots, sl.FLAGS] & sl.LIVE != 0)
        if begins:
            lives &= until > s.rows[slots, sl.START]
        wanted = tops.state.half[slots, st.K].astype(np.int64)
        depth = self.policy.depth(wanted)
        most = len(past) if past is not None else 0
        depth = np.minimum(np.maximum(depth, wanted), max(most, 1))
        todo = np.flatnonzero(lives) if most else np.empty(0, np.int64)
        idle = np.ones(len(slots), bool)
        idle[todo] = False
        self._empty(tops, p, slots[idle])
        while len(todo):
            size = np.cumsum(depth[todo])
            some = todo[: max(int(np.searchsorted(size, _MOST)), 1)]
            again = self._search(
                tops, s, past, p, slots[some], depth[some], published[some], passed[some],
                until[some], most, begins,
            )  # fmt: skip
            depth[some] = np.minimum(2 * depth[some], most)
            todo = np.concatenate([some[again], todo[len(some) :]])
        tops.state.marks[slots] |= st.CHANGED | st.WHOLE
        self.filled += len(slots)
        self.begun += len(slots) if begins else 0
        return lives

    def _empty(self, tops: TopStore, p: st.Period, slots: Longs) -> None:
        """These see nothing: their buffers are complete without an entry."""
        offsets = np.zeros(len(slots) + 1, np.int64)
        none = np.empty(0), np.empty(0, np.int64)
        fill(tops.state, p, slots, offsets, *none, np.full(len(slots), -np.inf))

    def _search(
        self,
        tops: TopStore,
        s: sl.Slots,
        past: Any,
        p: st.Period,
        slots: Longs,
        depth: Longs,
        published: Longs,
        passed: Longs,
        ends: Longs,
        most: int,
        begins: bool,
    ) -> NDArray[np.bool_]:
        """Search for some slots and fill them; which of them were not searched deeply enough."""
        n, window = len(slots), self.frame.window
        half = s.half[slots].astype(np.int64)
        queries = Queries(
            passed - window.span_ms if window.span_ms else np.full(n, NEVER),
            np.minimum(ends - 1, FOREVER),
            published,
            *gather(s.heap, s.rows[slots, sl.BODY], half[:, sl.PROGRAM]),
            *gather(s.heap, s.rows[slots, sl.BODY] + half[:, sl.PROGRAM], half[:, sl.COVER]),
            half[:, sl.FLAGS] & sl.CONJUNCTION != 0,
            published - p.count if p.count else np.zeros(n, np.int64),
            np.full(n, FOREVER),
        )
        t = tops.state
        centres = Centres(t.rows[slots, st.X].copy(), t.rows[slots, st.Y].copy(), depth)
        offsets, words = tops.keywords(slots)
        wishes = Wishes(
            offsets, words, self.frame.idf.hashed.of_words(words),
            t.rows[slots, st.ALPHA].copy(), t.rows[slots, st.MAXDIST].copy(),
        )  # fmt: skip
        found = past.best(queries, centres, wishes)
        self.searched += n
        self.examined += found.examined
        self.policy.searched(n, found.examined, begins)
        wanted = t.half[slots, st.K].astype(np.int64)
        starts = np.asarray(found.offsets)
        full = np.diff(starts) == depth
        needed = last_needed(p, starts, found.rank, found.time, wanted)
        full &= depth < most
        floors = self.policy.floors(wanted, starts, found.value, full)
        scores = np.append(found.value, np.inf)
        again = full & ((needed < 0) | (floors < scores[starts[1:] - 1]))
        # Too few that outlast the period: the search goes deeper, or all there is must be taken.
        bound = np.where(needed >= 0, scores[needed], -np.inf)
        floors = np.minimum(floors, bound)
        # No more entries than a buffer may have, unless it would run short.
        allowed = np.maximum(self.policy.most(wanted), needed - starts[:-1] + 1)
        allowed = np.where(needed >= 0, allowed, _NO_LIMIT)
        long = np.diff(starts) > allowed
        last = scores[np.where(long, starts[:-1] + allowed - 1, -1)]
        floors = np.where(long, np.maximum(floors, last), floors)
        kept = found.value >= np.repeat(floors, np.diff(starts))
        kept &= ~np.repeat(again, np.diff(starts))
        kept &= np.arange(starts[-1]) < np.repeat(starts[:-1] + allowed, np.diff(starts))
        if self.policy.skyband:
            tops.meta[st.COMPARED] += skybands(p, starts, found.rank, found.time, wanted, kept)
        good = np.flatnonzero(~again)
        ends_at = np.append(0, np.cumsum(kept))[starts]
        lengths = np.diff(ends_at)[good]
        tops.reserve(slots[good], lengths)
        offsets = np.append(0, np.cumsum(lengths))
        fill(tops.state, p, slots[good], offsets, found.value[kept], found.rank[kept], floors[good])
        return np.asarray(again)
