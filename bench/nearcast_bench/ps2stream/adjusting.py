"""A cluster of hybrid partitioning whose load is watched and adjusted while a stream passes.

After each period the workers' statistics are gathered, an adjustment is decided (section V-A),
subscriptions move between the indexes, and the next period goes by the new table. What is decided
follows from counts and constants alone, so that a course may be run several times, and of each
period and worker the least time taken.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.kernels.slots import SUBSCRIBE
from nearcast.routing.balance import imbalance
from nearcast.routing.grid.cells import refined
from nearcast.routing.grid.live import Period as Seen
from nearcast.routing.grid.router import GridRouter
from nearcast.routing.grid.survey import RegionSurvey, survey_of
from nearcast.routing.grid.table import pack
from nearcast.routing.ps2stream.adjust.decisions import Decision
from nearcast.routing.ps2stream.adjust.gather import gather_cells, join_samples
from nearcast.routing.ps2stream.adjust.local import adjust
from nearcast.routing.ps2stream.adjust.situation import Settings, Situation, loads_in
from nearcast.routing.ps2stream.adjust.stats import DEFINITION_3, Costs
from nearcast.routing.ps2stream.adjust.touched import touched_by, touched_of
from nearcast.routing.ps2stream.live import as_counted, fitted_to
from nearcast.routing.ps2stream.load import Constants
from nearcast.routing.sampling import taken
from nearcast.wire.tables import numbers
from nearcast_bench.common.cluster import (
    H2,
    Cluster,
    Done,
    Reals,
    Reported,
    Step,
    Stream,
    id_hashes,
    sample_of,
)
from nearcast_bench.common.cluster_run import Layout, planned
from nearcast_bench.common.moving import Moved, move, survey_by
from nearcast_bench.common.moving import held_by as all_held
from nearcast_bench.ps2stream.experiment import HYBRID, Setting

SIGMA = 1.2  # as in Algorithm 1
SIDE = 64  # cells of the grid^t along each axis: 2⁶ × 2⁶, the granularity of the paper's grids


class Way(NamedTuple):
    """How loads are adjusted."""

    name: str
    selector: str | None  # None: not at all
    phase1: bool = False
    stored: bool = False  # n_q as in Definition 3: all queries stored in a cell, not those read
    rounds: int = 1  # pairs of workers that one look may adjust


@dataclass(slots=True)
class Period:
    """What one period came to; seconds are the least of all passes."""

    tuples: int
    dispatcher: float  # seconds, of one
    workers: Reals  # seconds of each
    share: Reals  # of the tuples, those of each worker
    loads: Reals  # of each worker, counted: Definition 1 with what was read
    busy: Reals  # seconds of each worker with a migration
    copies: float  # of a query, on average
    select_seconds: float = 0.0
    looking: float = 0.0  # seconds of who looked longest for what leaves
    balance: float = 0.0  # L_max / L_min before the adjustment, by statistics
    decisions: list[Decision] = field(default_factory=list)
    moved: Moved | None = None

    @property
    def uneven(self) -> float:
        """The largest counted load to the mean."""
        return imbalance(self.loads.tolist())

    def seconds(self, dispatchers: int) -> float:
        """Of the slowest, dispatchers or a worker."""
        return max(float(self.workers.max()), self.dispatcher / dispatchers)


class Course(NamedTuple):
    """The same beginning and the same stream for all that is compared."""

    stream: Stream  # its first step compiles, and counts nowhere
    constants: Constants
    router: GridRouter


def course_of(setting: Setting, stream: Stream, constants: Constants) -> Course:
    """With the plan of hybrid partitioning for dispatchers with H2, in cells of `SIDE`."""
    known = constants._asdict() | {"discard": 1.0, "side": float(SIDE)}
    layout = Layout(HYBRID, setting.index, setting.workers, setting.dispatchers, H2,
                    tuple(known.items()))  # fmt: skip
    router, _ = planned(layout, stream, stream.survey())
    assert isinstance(router, GridRouter)
    assert router.grid is not None
    return Course(stream, constants, type(router)(router.shards, pack(refined(router.grid, SIDE))))


class Adjusting:
    """A cluster on a course, adjusted in a way."""

    def __init__(self, course: Course, index: str, way: Way) -> None:
        self.cluster = Cluster(course.router, index, H2)
        self.constants = course.constants
        self.way = way
        self.p = Settings(DEFINITION_3).p if way.phase1 else 0
        self.reported: list[Reported] = []
        self.standing = sum(c.num_rows for c in course.stream.standing)
        self.entry = 0.0  # microseconds of an entry read, by the first period
        self.cluster.stand(course.stream.standing)
        first = course.stream.steps[0]
        done = self.run(first)
        situation, settings = self.situation(first, done)
        self.decide(situation, settings)  # compiles, as does the next; nothing moves
        move(self.cluster, situation.table, 0)
        self.entry = 0.0  # so few objects say little

    def run(self, step: Step) -> Done:
        """Let a step pass, and count."""
        done = self.cluster.run(step)
        self.reported.append(done.reported)
        begun = int(np.count_nonzero(numbers(step.controls["op"]) == SUBSCRIBE))
        self.standing += 2 * begun - step.controls.num_rows
        read = sum(w.scanned for w in done.work)
        if not self.entry and read:
            # c1 is of all queries of an index; an entry costs such that all checks are c1·|O|·|Q|.
            self.entry = self.constants.c1 * step.objects.num_rows * self.standing / read
        return done

    def period(self, step: Step) -> Period:
        """A step, and then an adjustment."""
        done = self.run(step)
        now = int(numbers(step.objects["time"])[-1])
        tuples_of = done.sent + done.updates
        held = sum(len(w.living(now)) for w in self.cluster.workers)
        out = Period(
            step.tuples,
            done.dispatcher,
            done.workers,
            tuples_of / max(int(tuples_of.sum()), 1),
            self._loads(done),
            np.zeros(len(self.cluster.workers)),
            held / max(self.standing, 1),
        )
        if self.way.selector is None:
            return out
        situation, settings = self.situation(step, done)
        loads = loads_in(situation, settings)
        out.balance = float(loads.max() / max(loads.min(), 1e-12))
        after, out.decisions, out.select_seconds = self.decide(situation, settings)
        if out.decisions:
            out.moved = move(self.cluster, after.table, now)
            out.looking = float(out.moved.looking.max())
            out.busy += out.moved.moving + out.moved.looking
            # The paper's w_o chooses the cells, and is held up meanwhile.
            out.busy[out.decisions[0].origin] += out.select_seconds
        return out

    def _loads(self, done: Done) -> Reals:
        """Definition 1 of each worker, its terms counted: entries read, objects, updates."""
        c = self.constants
        read = np.array([w.scanned for w in done.work], np.float64)
        updates = 0.5 * (c.c3 + c.c4) * done.updates  # as many begin as end
        return np.asarray(self.entry * read + c.c2 * done.sent + updates, np.float64)

    def decide(
        self, situation: Situation, settings: Settings
    ) -> tuple[Situation, list[Decision], float]:
        """(the situation afterwards, decisions, seconds that it took to decide)."""
        started = time.thread_time()
        after, decisions = adjust(situation, settings, self.way.rounds)
        return after, decisions, time.thread_time() - started

    def situation(self, step: Step, done: Done) -> tuple[Situation, Settings]:
        """What the workers have to say after a step, and what to decide by.

        Constants are fitted as the engine does (`fitted_to`), to the loads of `_loads`.
        """
        router = self.cluster.dispatcher.router
        assert isinstance(router, GridRouter)
        assert router.grid is not None
        table, now = router.grid, int(numbers(step.objects["time"])[-1])
        sample = sample_of(step.objects)
        new, gone = _updates(step)
        reported = []
        for w, held in enumerate(survey_by(all_held(self.cluster, now))):
            mine = taken(sample, done.routed[0][done.routed[1] == w])
            seen = Seen(mine, held, new, gone)
            reported.append(gather_cells(table, w, seen, self.p, self.way.stored))
        read = [self.entry * w.scanned for w in done.work]
        stats = [s for s, _ in reported]
        if not self.way.stored:
            stats = as_counted(stats, read)
        c = self.constants
        costs = fitted_to(
            stats,
            sum(read),
            c.c2 * float(done.sent.sum()),
            0.5 * (c.c3 + c.c4) * float(done.updates.sum()),
        )
        came = sum(touched_by(table, w, s) for w in range(len(stats)) for s in (new, gone))
        touched = touched_of(table, stats, np.asarray(came), costs)
        samples = join_samples([objects for _, objects in reported])
        return Situation(table, stats, samples, touched=touched), self.settings(costs)

    def settings(self, costs: Costs) -> Settings:
        """What an adjustment is reported."""
        return Settings(costs, SIGMA, 1.0, self.p, self.way.selector or "GR", 1, discard=True)


def _updates(step: Step) -> tuple[RegionSurvey, RegionSurvey]:
    """(insertions, deletions) of a step."""
    begins = numbers(step.controls["op"]) == SUBSCRIBE
    rows = (step.controls.take(pa.array(np.flatnonzero(b))) for b in (begins, ~begins))
    new, gone = (survey_of(r, id_hashes(r)) for r in rows)
    return new, gone


def least(passes: list[list[Period]]) -> list[Period]:
    """The periods of several passes as one, with the least seconds of each."""
    out = []
    for same in zip(*passes, strict=True):
        p = same[0]
        p.dispatcher = min(q.dispatcher for q in same)
        p.select_seconds = min(q.select_seconds for q in same)
        p.looking = min(q.looking for q in same)
        p.workers = np.min([q.workers for q in same], axis=0)
        p.busy = np.min([q.busy for q in same], axis=0)
        out.append(p)
    return out
