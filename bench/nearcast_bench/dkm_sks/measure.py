"""The ticks of an experiment of DkM-SKS on m workers, one worker after another.

They take turns at every tick: what slows the machine down for a while then slows all of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Memory
from nearcast.index.balls.index import BallIndex
from nearcast.index.base import ENTER
from nearcast.wire.decode import no_collector
from nearcast_bench.common.figures import Say
from nearcast_bench.dkm_sks.deal import Algorithm, Homes, MainServer, main_server
from nearcast_bench.dkm_sks.load import Loaded, new_index, post, step

WARM = 3  # first ticks that are not counted: memory that was just filled is slow
CHANGES, EXAMINED, SCANNED, LOOKUPS = range(4)  # places in `Measured.counts`
Times = NDArray[np.float64]


@dataclass(slots=True)
class Measured:
    """Seconds of each worker (rows) at each tick (columns), and what they did."""

    knn: Times
    insert: Times
    delete: Times
    counts: NDArray[np.int64]  # [workers, ticks, 4]
    bytes: int = 0
    changes: int = 0  # of all ticks, also those that are not counted
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def update(self) -> Times:
        """Update time of each tick: of the slowest worker, all its work."""
        total: Times = (self.knn + self.insert + self.delete).max(axis=0)
        return total

    @property
    def balance(self) -> float:
        """Load balance of the paper: slowest less fastest kNN update of a tick, in the mean."""
        return float((self.knn.max(axis=0) - self.knn.min(axis=0)).mean())

    @property
    def lasting_balance(self) -> float:
        """Load balance of the workers' usual (median) kNN updates.

        What is left of the paper's when the chances of single ticks are taken out: the objects of
        one tick change more on this worker, those of the next on another.
        """
        usual = np.median(self.knn, axis=1)
        return float(usual.max() - usual.min())

    def spread(self, count: int) -> float:
        """Most less fewest of a count over all ticks, as a share of the mean worker's."""
        of_workers = self.counts[:, :, count].sum(axis=1)
        return float((of_workers.max() - of_workers.min()) / max(of_workers.mean(), 1.0))


def measure(loaded: Loaded, algorithm: Algorithm, m: int, say: Say) -> Measured:
    """Deal S to m workers, then run the ticks, each on all of them in turn."""
    started = time.perf_counter()
    server = main_server(loaded, algorithm, m)
    planned = time.perf_counter() - started
    dealt = _deal(loaded, server, m)
    shape = (m, len(loaded.ticks))
    knn, insert, delete = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    counts = np.zeros((*shape, 4), np.int64)
    workers = [_worker(loaded, algorithm.index, server.homes, worker) for worker in range(m)]
    say(f"{algorithm.name}: {len(loaded.ticks)} ticks …")
    with no_collector():
        for n, tick in enumerate(loaded.ticks):
            for worker, index in enumerate(workers):
                mine = np.flatnonzero(server.homes[tick.deleted] == worker)
                came = np.flatnonzero(dealt.homes[n] == worker)
                times, changes = step(
                    index,
                    tick.objects,
                    tick.insertions.take(pa.array(came)),
                    tick.deletions.take(pa.array(mine)),
                )
                knn[worker, n], insert[worker, n], delete[worker, n] = times
                work = changes.work
                entered = np.count_nonzero(changes.event == ENTER)
                counts[worker, n] = entered, work.examined, work.scanned, work.lookups
    warm = min(WARM, shape[1] - 1)
    return Measured(
        knn[:, warm:],
        (insert + dealt.insert)[:, warm:],
        (delete + dealt.delete)[:, warm:],
        counts[:, warm:],
        bytes=sum(index.storage.bytes for index in workers),
        changes=int(counts[:, :, CHANGES].sum()),
        seconds={"plan": planned},
    )


@dataclass(slots=True)
class _Dealt:
    """Workers of the insertions of each tick, and seconds that this takes."""

    homes: list[Homes]
    insert: Times  # [ticks]: the main server's, for which all workers wait
    delete: Times  # [workers, ticks]: each reports what it takes from its C(w)


def _deal(loaded: Loaded, server: MainServer, m: int) -> _Dealt:
    """What is done for C(w) at each tick."""
    ticks = loaded.ticks
    gone = [loaded.controls(tick.deleted) for tick in ticks]
    homes, insert, delete = [], np.zeros(len(ticks)), np.zeros((m, len(ticks)))
    for n, tick in enumerate(ticks):
        started = time.thread_time()
        homes.append(server.insert(tick.insertions))
        insert[n] = time.thread_time() - started
        at = server.homes[np.sort(tick.deleted)]
        for worker in np.unique(at):
            mine = gone[n].take(pa.array(np.flatnonzero(at == worker)))
            started = time.thread_time()
            server.delete(mine, int(worker))
            delete[worker, n] = time.thread_time() - started
    return _Dealt(homes, insert, delete)


def _worker(loaded: Loaded, name: str, homes: Homes, worker: int) -> BallIndex:
    """An index with the subscriptions of a worker and their results, posted."""
    index = new_index(name)
    for controls, results in loaded.shares(homes, worker):
        first = pa.array(np.asarray(results["slot"]) + len(index))
        index.apply(controls, np.zeros(controls.num_rows, np.int32))
        index.restore(results.set_column(0, results.schema.field("slot"), first))
    index.close()
    post(index, loaded.ticks[0].objects)
    assert isinstance(index.storage, Memory)
    index.storage.settle()
    return index
