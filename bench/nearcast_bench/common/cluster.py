"""A dispatcher and m workers on bare indexes, without Spark: what the papers' clusters do.

The workers run one after another on one core; what they would take side by side follows from the
seconds of each. Seconds are those of the processor, so that other work on the machine does not
count. Making and copying tables (the network of a cluster) is outside of all times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index import LocalIndex
from nearcast.index.arena import Memory
from nearcast.kernels.hashing import hash_ids, mix64_array
from nearcast.kernels.slots import SUBSCRIBE
from nearcast.model.space import Space
from nearcast.routing import Router, Sample
from nearcast.routing.grid.reporting import reported_by
from nearcast.routing.grid.survey import RegionSurvey, join, survey_at, survey_of
from nearcast.routing.ps2stream.registered import Registered
from nearcast.routing.tornado.selective import Summaries
from nearcast.wire.changes import Work
from nearcast.wire.decode import no_collector
from nearcast.wire.tables import lists, numbers, object_columns, strings
from nearcast_bench.common.gi2_fixed import index_of

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]
Reals = NDArray[np.float64]
H2_SIDE = 64  # cells of H2 along each axis, at most: the granularity of the paper's grids
_WORTH_COMPACTING = 1_000  # subscriptions
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NONE = np.empty(0, np.int64)
clock = time.thread_time


@dataclass(slots=True)
class Step:
    """Some of a stream: updates of subscriptions and objects, and how they interleave."""

    controls: pa.RecordBatch  # an unsubscribe has all that its subscribe had
    at: NDArray[np.int32]  # objects before each
    objects: pa.RecordBatch

    @property
    def tuples(self) -> int:
        """Objects, insertions and deletions."""
        return int(self.controls.num_rows + self.objects.num_rows)


@dataclass(slots=True)
class Stream:
    """What stands at the beginning, and what comes."""

    standing: list[pa.RecordBatch]  # REGIONS
    steps: list[Step]
    sample: Sample  # objects of the past, for plans
    small: list[Step] = field(default_factory=list)  # come last, to see the time of single tuples

    def survey(self) -> RegionSurvey:
        """The standing subscriptions, for plans."""
        return join([survey_of(c, id_hashes(c)) for c in self.standing])


def id_hashes(table: pa.RecordBatch) -> Words:
    """The hash of each id."""
    offsets, data = strings(table["id"])
    return hash_ids(data, offsets)


def sample_of(objects: pa.RecordBatch) -> Sample:
    """Objects as plans read them."""
    x, y = numbers(objects["x"]), numbers(objects["y"])
    return Sample(x, y, *lists(objects["words"], np.uint64))


@contextmanager
def timed(seconds: Reals, at: int = 0) -> Iterator[None]:
    """Add the processor's seconds of the block to `seconds[at]`."""
    started = clock()
    yield
    seconds[at] += clock() - started


# How dispatchers send objects: as the engine does, by place alone (which is what the engine does
# with a table that has no words), or only by words that queries there are posted under.
ENGINE, PLACE, H2, SUMMARIES = "engine", "place", "h2", "summaries"


class Dispatcher:
    """Deals by a router; unless as the engine, objects only by words that have postings."""

    def __init__(self, router: Router, dispatch: str) -> None:
        self.router = router
        self.dispatch = dispatch
        self.seconds = np.zeros(1)
        self.known: Registered | Summaries | None = self._none_known()

    def _none_known(self) -> Registered | Summaries | None:
        """H2, or summaries, without a subscription."""
        grid = getattr(self.router, "grid", None)
        if grid is None or self.dispatch in (ENGINE, PLACE):
            return None
        if self.dispatch == SUMMARIES:
            return Summaries(grid, self.router.shards)
        return Registered(grid, H2_SIDE)

    def place(self, controls: pa.RecordBatch) -> tuple[Numbers, Numbers]:
        """(rows, shards) of subscribes and unsubscribes; H2 learns of the former."""
        with timed(self.seconds):
            placed = self.router.place(controls, id_hashes(controls))
        self._register(controls, True)
        return placed.rows, placed.shards

    def route(self, step: Step) -> tuple[Numbers, Numbers]:
        """(rows, shards) of the objects of a step; H2 then forgets what it ended.

        Not before: the objects that came first may match it.
        """
        objects = step.objects
        if self.known is not None:
            with timed(self.seconds):
                pairs = self.known.wanted(*sample_of(objects))
        else:
            with timed(self.seconds):
                routes = self.router.route(objects)
            if routes is None:
                m, n = self.router.shards, objects.num_rows
                pairs = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
            else:
                pairs = routes.rows, routes.shards
        if not self.wants_reports:
            self._register(step.controls, False)
        return pairs

    @property
    def wants_reports(self) -> bool:
        """Whether evaluators shall report what ended there (Tornado 3.1)."""
        return isinstance(self.known, Summaries)

    def reported(self, worker: int, ended: RegionSurvey) -> None:
        """What was unsubscribed or replaced at an evaluator."""
        if isinstance(self.known, Summaries) and len(ended.conjunction):
            with timed(self.seconds):
                self.known.ended(worker, ended)

    def _register(self, controls: pa.RecordBatch, begin: bool) -> None:
        if self.known is None or controls.num_rows == 0:
            return
        rows = np.flatnonzero((numbers(controls["op"]) == SUBSCRIBE) == begin)
        some = controls.take(pa.array(rows))
        with timed(self.seconds):
            survey = survey_of(some, np.zeros(len(rows), np.uint64))
            if begin:
                self.known.add(survey)
            elif isinstance(self.known, Registered):
                self.known.remove(survey)

    def replaced(self, router: Router, held: Callable[[], RegionSurvey]) -> None:
        """Another table holds from now on; `held` reports the subscriptions there are."""
        self.router = router
        known, grid = self.known, getattr(router, "grid", None)
        if isinstance(known, Registered) and grid is not None and known.follow(grid):
            return
        self.known = self._none_known()
        if self.known is not None:
            self.known.add(held())

    @property
    def bytes(self) -> int:
        """Memory of the table and of H2."""
        grid = getattr(self.router, "grid", None)
        table = sum(array.nbytes for array in grid) if grid is not None else 0
        return table + (self.known.bytes if self.known is not None else 0)


@dataclass(slots=True)
class Reported:
    """Matches that a step reported: the number of the object, the hash of the subscription's id."""

    objects: Numbers
    ids: Words

    def checksum(self) -> int:
        """The same for the same matches, in whatever order, by whatever workers."""
        mixed = mix64_array(self.objects.astype(np.uint64) * _GOLDEN ^ self.ids)
        return int(np.sum(mixed, dtype=np.uint64))


@dataclass(slots=True)
class Done:
    """What a step took."""

    dispatcher: float  # seconds
    workers: Reals  # seconds of each
    sent: Numbers  # objects sent to each
    updates: Numbers  # insertions and deletions sent to each
    reported: Reported
    work: list[Work]  # of each
    routed: tuple[Numbers, Numbers]  # (object, worker)


class Cluster:
    """A dispatcher, and workers with an index each."""

    def __init__(self, router: Router, index: str, dispatch: str = ENGINE) -> None:
        self.dispatcher = Dispatcher(router, dispatch)
        self.workers: list[LocalIndex] = [
            index_of(index)(Space.GEOGRAPHIC, Memory()) for _ in range(router.shards)
        ]
        self.insert_seconds = np.zeros(router.shards)
        self.copies = 0  # of standing subscriptions

    def stand(self, standing: list[pa.RecordBatch]) -> None:
        """Insert what stands at the beginning."""
        for controls in standing:
            rows, shards = self.dispatcher.place(controls)
            self.copies += len(rows)
            for w, index in enumerate(self.workers):
                mine = controls.take(pa.array(rows[shards == w]))
                with timed(self.insert_seconds, w):
                    index.apply(mine, np.zeros(mine.num_rows, np.int32))
                    index.close()

    def run(self, step: Step) -> Done:
        """Let a step pass."""
        before = float(self.dispatcher.seconds[0])
        rows, shards = self.dispatcher.place(step.controls)
        objects, to = self.dispatcher.route(step)
        m = len(self.workers)
        done = Done(
            float(self.dispatcher.seconds[0]) - before,
            np.zeros(m),
            np.bincount(to, minlength=m),
            np.bincount(shards, minlength=m),
            Reported(np.empty(0, np.int64), np.empty(0, np.uint64)),
            [],
            (objects, to),
        )
        with no_collector():
            found = [
                self._work(w, step, rows[shards == w], objects[to == w], done.workers)
                for w in range(m)
            ]
        done.work = [work for _, work in found]
        done.reported.objects = np.concatenate([reported.objects for reported, _ in found])
        done.reported.ids = np.concatenate([reported.ids for reported, _ in found])
        return done

    def _work(
        self, w: int, step: Step, controls: Numbers, objects: Numbers, seconds: Reals
    ) -> tuple[Reported, Work]:
        """One worker's part of a step."""
        index = self.workers[w]
        mine = step.controls.take(pa.array(controls))
        at = np.searchsorted(objects, step.at[controls]).astype(np.int32)
        columns = object_columns(step.objects.take(pa.array(objects)))
        now = int(columns.time[-1]) if len(objects) else 0
        grid = getattr(self.dispatcher.router, "grid", None)
        with timed(seconds, w):
            index.apply(mine, at)
            over = index.ended() if self.dispatcher.wants_reports else _NONE
            changes = index.match(columns, columns.clock, now)
            if grid is not None:
                reported = reported_by(
                    grid, w, columns, changes.order, changes.slot, index.wanted_words
                )
            else:
                reported = index.reports(changes.slot)
            index.close()
        kept = changes.take(np.flatnonzero(reported))
        numbers_ = numbers(step.objects["pos"])[objects[kept.order]]
        found = Reported(numbers_, index.id_hashes(kept.slot))
        self.dispatcher.reported(w, survey_at(index, over))
        with timed(seconds, w):
            self._compact(index, now)
        return found, changes.work

    @staticmethod
    def _compact(index: LocalIndex, now: int) -> None:
        """Forget what has ended once it is most of an index, as the engine's shards do."""
        if len(index) > _WORTH_COMPACTING and 2 * len(index.living(now)) < len(index):
            index.compact(now)

    @property
    def worker_bytes(self) -> list[int]:
        """Memory of each worker's index."""
        return [int(w.storage.bytes) for w in self.workers]
