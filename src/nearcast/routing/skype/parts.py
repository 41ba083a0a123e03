"""Subscriptions for the best objects on the parts of a distribution, without an engine.

One index and one store of messages per shard, as an engine has them; messages go where the deal
sends them, and where that makes parts, a merger (`merging`). A shard learns of a message that does
not come to it only that there was one, and when: by that its window moves on. By prefix a
subscription may need a copy elsewhere while a batch runs. Everything of it is then held back from
that moment on, the new copy begins as of then from its shard's store, and lives through the
rest: so what is reported is the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Memory, Storage
from nearcast.index.tops.base import TopIndex
from nearcast.model.frame import Frame
from nearcast.model.space import Space
from nearcast.objects.base import Objects, ObjectStore
from nearcast.routing.skype.deals import Deal
from nearcast.routing.skype.kd_tree import Longs, Reals
from nearcast.routing.skype.loose_prefix import Wanted, highest
from nearcast.routing.skype.merging import ARRIVAL, BEGIN, WINDOW, Events, Merged, Merger
from nearcast.routing.skype.views import View, messages_of, some_objects, view_of
from nearcast.routing.skype.words import rows_at
from nearcast.wire.changes import Changes, Work
from nearcast.wire.tables import FOREVER, NEVER, lists, numbers

__all__ = ["Parts", "Shard", "Tally", "wanted_of"]

MakeIndex = Callable[[Space, Storage], TopIndex]
MakeStore = Callable[[], ObjectStore]


@dataclass(slots=True)
class Shard:
    """One shard."""

    number: int
    index: TopIndex
    storage: Memory
    store: ObjectStore
    who: Longs  # the subscription of each slot
    seconds: float = 0.0  # of the processor
    work: Work = field(default_factory=Work)


@dataclass(slots=True)
class Tally:
    """What the distribution cost: tables 2 and 5, and the figures of section 8.2."""

    messages: int = 0
    sent: int = 0  # copies of messages
    grown: int = 0  # copies of subscriptions that came later, by lazy reallocation
    marked: int = 0  # subscriptions that were held back for them
    reported: int = 0  # changes of parts that went to the merger
    route_seconds: float = 0.0
    store_seconds: float = 0.0
    merge_seconds: float = 0.0


def wanted_of(controls: pa.RecordBatch, id_hash: NDArray[np.uint64], frame: Frame) -> Wanted:
    """Rows of TOPS as deals take them."""
    offsets, words = lists(controls["keywords"], np.uint64)
    idf = frame.idf.hashed.of_words(words)
    rows = rows_at(offsets)
    norm = np.sqrt(np.bincount(rows, idf * idf, controls.num_rows))
    x, y, alpha = (numbers(controls[name]) for name in ("x", "y", "alpha"))
    return Wanted(x, y, alpha, offsets, words, idf / norm[rows], id_hash)


class Parts:
    """All shards of one distribution, and the merger."""

    def __init__(
        self,
        deal: Deal,
        space: Space,
        frame: Frame,
        make_index: MakeIndex,
        make_store: MakeStore,
    ) -> None:
        self.deal, self.space, self.frame = deal, space, frame
        self.make_index = make_index
        # Where each message comes to every shard, one store does for all.
        stores = [make_store() for _ in range(deal.shards if deal.parts else 1)]
        self.shards = [self._shard(n, stores[n % len(stores)]) for n in range(deal.shards)]
        self.stores = stores
        self.merger = Merger()
        self.tally = Tally()
        self.controls: list[pa.RecordBatch] = []
        self.wanted: Wanted | None = None
        self.held = np.zeros((0, deal.shards), bool)  # where copies are
        self._bound = np.empty(0)
        self._now, self._ranked = NEVER, 0
        self._old = 0  # subscriptions that have been in a batch
        self._arrivals: dict[int, list[tuple[pa.RecordBatch, pa.RecordBatch, Longs]]] = {}

    def _shard(self, number: int, store: ObjectStore) -> Shard:
        storage = Memory()
        index = self.make_index(self.space, storage)
        index.past = store
        return Shard(number, index, storage, store, np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.held)

    # -- subscriptions -----------------------------------------------------------------------

    def subscribe(self, controls: pa.RecordBatch, of: Wanted, kscore: Reals) -> None:
        """Take in subscriptions before the next batch, placed by their k-th scores."""
        first, n = len(self), controls.num_rows
        rows, shards = self.deal.place(of, kscore)
        new = np.zeros((n, self.deal.shards), bool)
        new[rows, shards] = True
        self.held = np.concatenate([self.held, new])
        self.controls.append(controls)
        self.wanted = of if self.wanted is None else _both(self.wanted, of)
        if self.deal.parts:
            self.merger.add(numbers(controls["k"]), new.sum(axis=1))
        self._set_bounds(np.arange(first, first + n))
        for shard in self.shards:
            mine = np.flatnonzero(new[:, shard.number])
            table = controls.take(pa.array(mine))
            started = time.thread_time()
            shard.index.apply(table, np.zeros(len(mine), np.int32))
            shard.seconds += time.thread_time() - started
            shard.who = np.append(shard.who, first + mine)

    def _set_bounds(self, queries: Longs) -> None:
        """The score that a message may have which comes to no copy."""
        self._bound = np.append(self._bound, np.full(len(self) - len(self._bound), -np.inf))
        if not self.deal.grows or not len(queries):
            return
        assert self.wanted is not None
        of = self.wanted.take(queries)
        rows = rows_at(of.offsets)
        missed = ~self.held[queries[rows], self.deal.owners(of)]
        rest = np.bincount(rows, np.where(missed, of.weights, 0.0), len(queries))
        self._bound[queries] = highest(of.alpha, np.asarray(rest, np.float64))

    @property
    def replication(self) -> float:
        """Copies per subscription (table 5)."""
        return float(self.held.sum() / max(len(self), 1))

    # -- messages ----------------------------------------------------------------------------

    def fill(self, objects: Objects) -> None:
        """Messages that come before all subscriptions: they are stored where they belong."""
        rows, shards = self.deal.route(messages_of(objects))
        for n, store in enumerate(self.stores):
            store.add(some_objects(objects, rows[shards == n]))
        self._ranked = int(objects.rank[-1]) + 1

    def batch(self, objects: Objects, clock: Longs, now: int) -> Merged:
        """What a batch of messages changes; time has come to `now` when it is over."""
        started = time.thread_time()
        rows, shards = self.deal.route(messages_of(objects))
        self.tally.route_seconds += time.thread_time() - started
        self.tally.messages += len(objects.x)
        self.tally.sent += len(rows)
        views = [view_of(objects, clock, rows[shards == s.number]) for s in self.shards]
        started = time.thread_time()
        for store, view in zip(self.stores, views, strict=False):
            if len(view.seen.x):
                store.add(view.seen)
        self.tally.store_seconds += time.thread_time() - started
        found = []
        for shard, view in zip(self.shards, views, strict=True):
            started = time.thread_time()
            self.take_arrivals(shard)
            shard.index.now, shard.index.ranked = self._now, self._ranked
            shard.index.carry(view.carried)
            changes = shard.index.match(view.columns, clock, now)
            shard.work += changes.work
            born = np.where(shard.who >= self._old, 0, -1)
            own = (shard.index, shard.who, born, shard.number)
            found.append(self._events(*own, changes, objects, clock))
            shard.seconds += time.thread_time() - started
        started = time.thread_time()
        events = Events.joined(found)
        self.tally.reported += len(events.at)
        merged = (
            self._merge(events, views, objects, clock, now)
            if self.deal.parts
            else _as_they_are(events)
        )
        self.tally.merge_seconds += time.thread_time() - started
        self._now, self._old = now, len(self)
        self._ranked = int(objects.rank[-1]) + 1 if len(objects.x) else self._ranked
        for shard in self.shards:
            shard.index.close()
        index = self.shards[0].index
        for store in self.stores:
            store.expire(now - index.reach(), index.first_rank(self._ranked))
        return merged

    def _events(
        self,
        index: TopIndex,
        who: Longs,
        born: Longs,
        part: int,
        changes: Changes,
        objects: Objects,
        clock: Longs,
    ) -> Events:
        """Changes of an index as events of a part; `born`: the message at which a slot begins."""
        rank, made = index.named(changes)
        at, slot, window = changes.order, changes.slot, self.frame.window
        last = np.append(objects.rank, FOREVER)[at]
        if window.count:
            gone = rank + window.count <= last
        else:
            gone = made + window.span_ms <= np.append(clock, FOREVER)[at]
        enters = changes.event == 0
        phase = np.where(enters & (rank == last) | ~enters & ~gone, ARRIVAL, WINDOW)
        # First results come before anything of the same message leaves.
        here = (at == born[slot]) & (phase == WINDOW)
        first_leave = np.full(len(born), len(at))
        leaves = np.flatnonzero(here & ~enters)
        np.minimum.at(first_leave, slot[leaves], leaves)
        phase[here & (np.arange(len(at)) < first_leave[slot])] = BEGIN
        number = np.full(len(changes), part)
        return Events(at, phase, changes.time, who[slot], number, rank, changes.value, enters)

    # -- results out of parts ----------------------------------------------------------------

    def _merge(
        self, events: Events, views: list[View], objects: Objects, clock: Longs, now: int
    ) -> Merged:
        """Merge what parts report; subscriptions that come to their bound get more copies."""
        made, events = [], events.sorted()
        quiet = np.zeros(len(events.at), bool)
        while True:
            merged, marked, fell = self.merger.take(events, quiet, self._bound)
            made.append(merged)
            if not len(marked):
                return _in_turn(made)
            queries = events.query[marked]
            moments = np.zeros((3, len(self)), np.int64)
            for n, column in enumerate((events.at, events.phase, events.time)):
                moments[n, queries] = column[marked]
            wait = np.zeros(len(self), bool)
            wait[queries] = True
            self.tally.marked += len(queries)
            rest = wait[events.query] & ~events.before(*moments[:, events.query])
            late = self._grow(queries, fell, events.at[marked], views, objects, clock, now)
            events = Events.joined([events.take(rest), *late]).sorted()
            quiet = events.before(*moments[:, events.query])

    def _grow(
        self,
        queries: Longs,
        kscore: Reals,
        at: Longs,
        views: list[View],
        objects: Objects,
        clock: Longs,
        now: int,
    ) -> list[Events]:
        """Lazy reallocation: copies that begin before message `at`, and what they go through."""
        assert self.wanted is not None
        rows, shards = self.deal.place(self.wanted.take(queries), kscore)
        fresh = ~self.held[queries[rows], shards]
        rows, shards = rows[fresh], shards[fresh]
        assert len(np.unique(rows)) == len(queries), "a prefix grew over no other shard"
        self.held[queries[rows], shards] = True
        self.merger.grow(queries, np.bincount(rows, minlength=len(queries)))
        self._set_bounds(queries)
        self.tally.grown += len(rows)
        found = []
        for shard in self.shards:
            mine = rows[shards == shard.number]
            if len(mine):
                started = time.thread_time()
                mine = mine[np.argsort(at[mine], kind="stable")]
                found.append(
                    self._live_through(
                        shard, queries[mine], at[mine], views[shard.number], objects, clock, now
                    )
                )
                shard.seconds += time.thread_time() - started
        return found

    def _live_through(
        self,
        shard: Shard,
        queries: Longs,
        at: Longs,
        view: View,
        objects: Objects,
        clock: Longs,
        now: int,
    ) -> Events:
        """New copies on a shard: their first results as of then, and what changes in the rest."""
        scratch = self.make_index(self.space, Memory())
        scratch.past, scratch.now, scratch.ranked = shard.store, self._now, self._ranked
        scratch.apply(self._rows(queries), at.astype(np.int32))
        scratch.carry(view.carried)
        changes = scratch.match(view.columns, clock, now)
        shard.work += changes.work
        own = (scratch, queries, at, shard.number)
        events = self._events(*own, changes, objects, clock)
        living = scratch.living(now)
        arrived = (*scratch.rows(living), queries[living])
        self._arrivals.setdefault(shard.number, []).append(arrived)
        return events

    def _rows(self, queries: Longs) -> pa.RecordBatch:
        """TOPS of subscriptions."""
        if len(self.controls) > 1:
            self.controls = [pa.concat_batches(self.controls)]
        return self.controls[0].take(pa.array(queries))

    def take_arrivals(self, shard: Shard) -> None:
        """Copies that began in the batch before are part of the index from now on."""
        for controls, results, who in self._arrivals.pop(shard.number, []):
            slots = pa.array(numbers(results["slot"]) + len(shard.index))
            shard.index.apply(controls, np.zeros(controls.num_rows, np.int32))
            shard.index.restore(results.set_column(0, results.schema.field(0), slots))
            shard.who = np.append(shard.who, who)


def _both(one: Wanted, other: Wanted) -> Wanted:
    offsets = np.append(one.offsets, one.offsets[-1] + other.offsets[1:])
    joined = one._replace(offsets=np.empty(0, np.int64)), other
    columns = [np.concatenate(pair) for pair in zip(*joined, strict=True)]
    return Wanted(*columns)._replace(offsets=offsets)


def _as_they_are(e: Events) -> Merged:
    """Of subscriptions with one copy: what it reports."""
    return Merged(e.at, e.phase, e.time, e.query, e.rank, e.score, e.enters)


def _in_turn(made: list[Merged]) -> Merged:
    """All changes in the order of the log."""
    if len(made) == 1:
        return made[0]
    whole = Merged._make([np.concatenate(columns) for columns in zip(*made, strict=True)])
    order = np.lexsort((whole.query, whole.time, whole.phase, whole.at))
    return Merged._make([column[order] for column in whole])
