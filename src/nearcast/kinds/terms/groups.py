"""`groups`: SSTD's query index for continuous top-k terms (section 6.1, figure 6).

Subscriptions that are alike share a group (`alike`), which has a table of words for what all of
their regions have in common, and one for the rest of each (`shared_tables`). A moment then reads
tables, whatever the window holds.

A subscription whose window may reach back before it is counted in the store, as `tables` does: a
group's tables count what is there, whoever has seen it. So is one that waits for a group. Groups
are no part of a state: they follow from the subscriptions and the kept objects, and are made anew
where an arena is lost.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nearcast.kernels import blocks
from nearcast.kernels import slots as sl
from nearcast.kernels.ragged import frozen, gather
from nearcast.kinds.terms import moments as mo
from nearcast.kinds.terms import shared_tables as st
from nearcast.kinds.terms.alike import KEYS, bunches, keys_of, program_keys, shareable
from nearcast.kinds.terms.tables import Tables
from nearcast.model.region import BBOX
from nearcast.objects.base import Objects, Queries, Regions, WordCounts
from nearcast.wire.changes import Changes
from nearcast.wire.tables import FOREVER, ObjectColumns

__all__ = ["Groups"]

Longs = NDArray[np.int64]
Reals = NDArray[np.float64]

_KNOWN, _RIPE, _GROUP, _MEMBER = range(4)  # columns of `shared.slots`; _GROUP is 1 + its number
_MOST_K = 1024  # of a subscription in a group
_LISTED = 1 << 24  # words that moments may list at a time, about
_FILLED = 1 << 21  # objects that are read at a time for new groups, about
_NOTHING = st.Due(*(np.empty(0, np.int64) for _ in range(4)))


class Groups(Tables):
    """Subscriptions in groups with tables in common."""

    name = "groups"
    paper = "SSTD section 6.1"
    about = "groups of like regions: words counted in a table in common and one for each's rest"

    def load(self) -> None:
        """Attach what the storage holds, groups too."""
        super().load()
        self._pool_meta = self.storage.array("shared.meta", np.int64, 1, blocks.META)
        self._attach_groups(0)

    def _attach_groups(self, groups: int) -> None:
        get = self.storage.array
        rows = get("shared.rows", np.int64, st.GROUP_WIDTH, groups)
        n = max(groups, len(rows))
        self._groups = st.Groups(
            rows,
            get("shared.boxes", np.float64, 8, n),
            get("shared.members", np.int64, 2, n * st.MOST),
            get("shared.tables", np.int64, 3, n * (st.MOST + 1)),
            get("shared.pool", np.uint64, 2, 64),
            self._pool_meta,
        )
        self._shared = get("shared.slots", np.int64, 4, len(self))

    def reach(self) -> int:
        """One more: what grows too old in the last millisecond of a batch goes in the next one."""
        reach = super().reach()
        return reach + 1 if reach else 0

    def figures(self) -> dict[str, int]:
        """How many groups there are, with how many subscriptions, and the bytes of tables."""
        rows = self._groups.rows
        return {
            "groups": int(np.count_nonzero(rows[:, st.ALIVE])),
            "in_groups": int(np.count_nonzero(self._shared[: len(self), _GROUP])),
            "table_bytes": int(self._pool_meta[blocks.TOP]) * 16,
        }

    # -- who is in a group ---------------------------------------------------------------------

    def _regroup(self) -> None:
        """Take out who is over, and make groups of those who wait; before a batch's moments."""
        n, born = len(self), int(self._slots_meta[sl.BATCH_FIRST])
        self._attach_groups(len(self._groups.rows))
        self._learn(born)
        shared = self._shared[:n]
        alive = np.zeros(n, np.bool_)
        alive[self.living(self._passed)] = True
        gone = np.flatnonzero(~alive & (shared[:, _GROUP] > 0))
        if len(gone):
            self._leave(gone)
        self._review()
        due, window = self._rows[:n, mo.DUE], self._rows[:n, mo.WINDOW]
        can = alive & (shared[:, _KNOWN] == 1) & (shared[:, _GROUP] == 0)
        can &= (due - window >= shared[:, _RIPE]) & (self._rows[:n, mo.K] <= _MOST_K)
        can[born:] = False
        waiting = np.flatnonzero(can)
        waiting = waiting[
            ~self._early.matter(
                self._rows[waiting, mo.EARLY],
                self._rows[waiting, mo.DUE] - self._rows[waiting, mo.WINDOW],
            )
        ]
        if len(waiting):
            self._group(waiting)

    def _review(self) -> None:
        """Look whether groups are still worth it: here always."""

    def _worth(self, groups: Longs) -> NDArray[np.bool_]:
        """Which new groups are worth it: here all."""
        return np.ones(len(groups), np.bool_)

    def _leave(self, slots: Longs) -> None:
        """They are in their groups no more; a group most of which is gone is dissolved."""
        g, shared = self._groups, self._shared
        numbers, members = shared[slots, _GROUP] - 1, shared[slots, _MEMBER]
        g.members[numbers * st.MOST + members, 1] = 0
        shared[slots, _GROUP] = 0
        touched = np.unique(numbers)
        held = g.members.reshape(-1, st.MOST, 2)[touched, :, 1].sum(1)
        for group in touched[2 * held < g.rows[touched, st.MEMBERS]].tolist():
            self._dissolve(group)

    def _dissolve(self, group: int) -> Longs:
        """There is no such group any more; who was in it."""
        g = self._groups
        own = g.members[group * st.MOST : (group + 1) * st.MOST]
        slots: Longs = own[own[:, 1] == 1, 0]
        self._shared[slots, _GROUP] = 0
        own[:] = 0
        st.dissolve(g, group)
        return slots

    def _group(self, waiting: Longs) -> None:
        """Make groups of subscriptions that wait, with those of groups that they are alike to."""
        waiting, keys = self._keys(waiting)
        rows = self._groups.rows
        sizes = rows[:, st.MEMBERS]
        there = np.flatnonzero((rows[:, st.ALIVE] == 1) & (sizes < st.MOST))
        mine, made, theirs = bunches(keys, rows[there, st.KEY : st.KEY + KEYS], sizes[there])
        chosen = made[mine]
        slots, numbers, keys = waiting[chosen], mine[chosen], keys[chosen]
        for at in np.flatnonzero(made[theirs]).tolist():
            key = rows[there[at], st.KEY : st.KEY + KEYS].copy()
            came = self._dissolve(int(there[at]))
            slots = np.append(slots, came)
            numbers = np.append(numbers, np.full(len(came), theirs[at]))
            keys = np.concatenate([keys, np.tile(key, (len(came), 1))])
        if not len(slots):
            return
        order = np.lexsort((slots, numbers))
        slots, numbers, keys = slots[order], numbers[order], keys[order]
        first = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
        sizes = np.diff(np.append(first, len(slots)))
        place = np.arange(len(slots)) - np.repeat(first, sizes)
        starts = np.flatnonzero(place % st.MOST == 0)
        self._make(slots, keys, np.append(starts, len(slots)))

    def _keys(self, slots: Longs) -> tuple[Longs, Longs]:
        """Those of some subscriptions that can share a group, and their keys."""
        half = self._slots.half[slots].astype(np.int64)
        offsets, boxes = self.boxes(slots)
        first = boxes[offsets[:-1]]
        good = np.flatnonzero(shareable(self.space, first, np.diff(offsets)))
        slots, half, first = slots[good], half[good], first[good]
        bodies = np.ascontiguousarray(self._slots.rows[slots, sl.BODY])
        lengths = np.ascontiguousarray(half[:, sl.PROGRAM])
        program = program_keys(self._slots.heap, bodies, lengths)
        return slots, keys_of(self._rows[slots, mo.WINDOW], program, first)

    def _make(self, slots: Longs, keys: Longs, starts: Longs) -> None:
        """New groups of subscriptions, and what they hold; `starts`: by group."""
        more = len(starts) - 1
        rows = self._groups.rows
        free = np.flatnonzero(rows[:, st.ALIVE] == 0)[:more]
        numbers = np.append(free, np.arange(len(rows), len(rows) + more - len(free)))
        self._attach_groups(len(rows) + more - len(free))
        g, sizes = self._groups, np.diff(starts)
        boxes = self.boxes(slots)[1]  # one each
        g.boxes[numbers, 4:6] = np.minimum.reduceat(boxes[:, :2], starts[:-1])
        g.boxes[numbers, 6:8] = np.maximum.reduceat(boxes[:, 2:], starts[:-1])
        half = self._slots.half[slots].astype(np.int64)
        exact = half[:, sl.FLAGS] & sl.REGION_CODE == BBOX
        exact &= (half[:, sl.FLAGS] >> sl.BOXES_SHIFT) & sl.BOXES_MASK == 0
        inner = np.where(exact[:, None], boxes, [[np.inf, np.inf, -np.inf, -np.inf]])
        g.boxes[numbers, 0:2] = np.maximum.reduceat(inner[:, :2], starts[:-1])
        g.boxes[numbers, 2:4] = np.minimum.reduceat(inner[:, 2:], starts[:-1])
        g.rows[numbers, st.ALIVE] = 1
        g.rows[numbers, st.MEMBERS] = sizes
        g.rows[numbers, st.KEY : st.KEY + KEYS] = keys[starts[:-1]]
        g.rows[numbers, st.WINDOW] = keys[starts[:-1], 0]
        g.rows[numbers, st.DONE] = 0
        g.rows[numbers, st.AGED] = self._passed - g.rows[numbers, st.WINDOW]
        owner = np.repeat(numbers, sizes)
        member = np.arange(len(slots)) - np.repeat(starts[:-1], sizes)
        g.members[owner * st.MOST + member] = np.column_stack([slots, np.ones_like(slots)])
        worth = self._worth(numbers)
        for group in numbers[~worth].tolist():
            self._dissolve(group)
        kept = np.repeat(worth, sizes)
        self._shared[slots[kept], _GROUP] = owner[kept] + 1
        self._shared[slots[kept], _MEMBER] = member[kept]
        self._fill(numbers[worth])

    def _fill(self, groups: Longs) -> None:
        """Count in new groups the objects of the batches before this one."""
        done = 0
        step = 1
        before = self._batch_ranks
        while done < len(groups):
            some = groups[done : done + step]
            g = self._groups
            found = self._kept(
                g.boxes[some, st.OUTER :],
                g.rows[some, st.AGED],
                np.full(len(some), FOREVER),
                before,
            )
            self._advance(
                some, np.zeros(len(some) + 1, np.int64), _NOTHING, found, _no_objects(), before,
                -mo.FOREVER,
            )  # fmt: skip
            done += len(some)
            step = max(min(2 * step, _FILLED * len(some) // (len(found.x) + 1)), 1)

    def _kept(self, boxes: Reals, after: Longs, until: Longs, before: int) -> st.Some:
        """Kept objects of ranks below `before` in any of some boxes and periods, each once."""
        n = len(boxes)
        none = np.zeros(n + 1, np.int64)
        no_words = none, np.empty(0, np.uint64)
        queries = Queries(
            after, until, np.full(n, before), *no_words, *no_words, np.ones(n, np.bool_)
        )
        regions = Regions(
            np.full(n, BBOX), np.arange(0, 4 * n + 1, 4), boxes.ravel().copy(), none, np.empty(0)
        )
        found = self.past.within(queries, regions, np.zeros(n, np.int64))
        return _by_x(self.past.rows(np.unique(found.handles)))

    # -- batches -------------------------------------------------------------------------------

    def matching(
        self,
        objects: ObjectColumns,
        clock: NDArray[np.int64],
        now: int,
        net: bool = False,
        in_order: bool = True,
    ) -> Iterator[Changes]:
        """Groups first take in and let go who begins and ends; then moments pass."""
        ranks = self._ranks(objects)
        self._batch_ranks = int(ranks[0])
        self._arrived = self._arrivals(objects, ranks)
        self._regroup()
        self._leaving = self._leavers(now)
        yield from super().matching(objects, clock, now, net, in_order)
        alive = np.flatnonzero(self._groups.rows[:, st.ALIVE])
        none = np.zeros(len(alive) + 1, np.int64)
        self._advance(
            alive, none, _NOTHING, self._arrived, self._leaving, int(ranks[-1]), self._passed
        )
        self._learn(len(self))

    def _learn(self, slots: int) -> None:
        """From when on a window holds only what each new subscription has seen.

        An object that it has not seen was handled before it, or has an earlier time.
        """
        new = np.flatnonzero(self._shared[:slots, _KNOWN] == 0)
        if not len(new):
            return
        there = sorted((s.first_rank, s.last_time) for s in self.past.slices())
        ranks = np.array([rank for rank, _ in there], np.int64)
        latest = np.maximum.accumulate([-mo.FOREVER, *(time for _, time in there)])
        unseen = latest[np.searchsorted(ranks, self._rows[new, mo.SINCE])]
        self._shared[new, _RIPE] = np.maximum(self._slots.rows[new, sl.START] - 1, unseen)
        self._shared[new, _KNOWN] = 1

    def _arrivals(self, o: ObjectColumns, ranks: Longs) -> st.Some:
        if len(ranks) == 1:
            return _no_objects()
        x = o.x[o.order]
        sort = np.argsort(x)
        rows = o.order[sort]
        return st.Some(
            x[sort], o.y[rows], o.time[rows], ranks[:-1][sort], o.word_offsets[:-1][rows],
            o.word_offsets[1:][rows], frozen(o.words),
        )  # fmt: skip

    def _room(self) -> int:
        listed = int(self._groups.tables[:, st.USED].max(initial=1))
        return max(min(super()._room(), _LISTED // listed), 64)

    def _look_ahead(self, due: mo.Due, ranks: Longs) -> None:
        group = self._shared[due.slot, _GROUP]
        place = np.flatnonzero(group > 0)
        place = place[np.argsort(group[place], kind="stable")]
        which, first = np.unique(group[place], return_index=True)
        slot = due.slot[place]
        moments = st.Due(
            slot, self._shared[slot, _MEMBER], due.time[place], ranks[due.order[place]]
        )
        offsets, words, counts = self._advance(
            which - 1, np.append(first, len(place)), moments, self._arrived, self._leaving,
            -mo.FOREVER, -mo.FOREVER,
        )  # fmt: skip
        self._starts, self._lengths = np.full(len(group), -1), np.zeros(len(group), np.int64)
        self._starts[place], self._lengths[place] = offsets[:-1], np.diff(offsets)
        self._listed = words, counts

    def _words_at(self, due: mo.Due, ranks: Longs, first: int) -> WordCounts:
        starts = self._starts[first : first + len(due.slot)]
        if (starts < 0).all():
            return super()._words_at(due, ranks, first)
        lengths = self._lengths[first : first + len(due.slot)]
        words, counts = self._listed
        listed = int(lengths.sum())
        alone = np.flatnonzero(starts < 0)
        if len(alone):
            found = super()._words_at(mo.Due(*(c[alone] for c in due)), ranks, first)
            starts, lengths = starts.copy(), lengths.copy()
            starts[alone], lengths[alone] = found.offsets[:-1] + len(words), np.diff(found.offsets)
            words = np.concatenate([words, found.words])
            counts = np.concatenate([counts, found.counts])
            listed += found.examined
        offsets, words = gather(words, starts, lengths)
        return WordCounts(offsets, words, gather(counts, starts, lengths)[1], listed)

    def _leavers(self, now: int) -> st.Some:
        """Objects that grow too old for some window while time comes to `now`."""
        g = self._groups
        alive = g.rows[:, st.ALIVE] == 1
        windows = np.unique(g.rows[alive, st.WINDOW])
        until = np.maximum(now, self._passed) - windows
        after = self._passed - windows
        some = np.flatnonzero(until > after)
        if not len(some):
            return _no_objects()
        outer = g.boxes[alive, st.OUTER :]
        box = np.concatenate([outer[:, :2].min(0), outer[:, 2:].max(0)])
        return self._kept(np.tile(box, (len(some), 1)), after[some], until[some], FOREVER)

    @property
    def _passed(self) -> int:
        return int(self._own_meta[0])

    def _advance(
        self,
        groups: Longs,
        starts: Longs,
        due: st.Due,
        arrived: st.Some,
        leaving: st.Some,
        until: int,
        passed: int,
    ) -> tuple[Longs, NDArray[np.uint64], Longs]:
        """Let groups go on; of each moment the words that may be among its k: offsets and so on."""
        progress = np.zeros(2, np.int64)
        parts = []
        while True:
            parts.append(
                st.advance(
                    self.space.code,
                    self._slots,
                    self._index.stack,
                    self._groups,
                    self._rows,
                    self._excluded,
                    groups,
                    starts,
                    due,
                    arrived,
                    leaving,
                    until,
                    passed,
                    progress,
                )
            )
            if progress[0] == len(groups):
                break
            pool = len(self._groups.pool)
            more = 2 << int(self._groups.tables[:, st.SIZE].max(initial=1))
            self.storage.array("shared.pool", np.uint64, 2, pool + max(pool // 4, 2 * more, 1024))
            self._attach_groups(len(self._groups.rows))
        ends = [p.ends + n for p, n in zip(parts, np.cumsum([0, *(len(p.words) for p in parts)]))]
        return (
            np.concatenate([[0], *ends]),
            np.concatenate([p.words for p in parts]),
            np.concatenate([p.counts for p in parts]),
        )


def _by_x(o: Objects) -> st.Some:
    sort = np.argsort(o.x)
    return st.Some(
        o.x[sort], o.y[sort], o.time[sort], o.rank[sort], o.word_offsets[:-1][sort],
        o.word_offsets[1:][sort], frozen(o.words),
    )  # fmt: skip


def _no_objects() -> st.Some:
    none = np.empty(0, np.int64)
    return st.Some(np.empty(0), np.empty(0), none, none, none, none, frozen(np.empty(0, np.uint64)))
