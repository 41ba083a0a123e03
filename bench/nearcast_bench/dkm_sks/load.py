"""What an experiment of DkM-SKS starts from: subscriptions with their results on O_init, and ticks.

Subscriptions are registered and searched a part at a time, and put into files: so 10,000,000 of
them take no more memory than the survey that a plan needs, and the share of one worker.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Memory
from nearcast.index.balls.index import BallIndex
from nearcast.kinds import KINDS
from nearcast.model.errors import NearcastError
from nearcast.model.jit import njit
from nearcast.model.space import GEOGRAPHIC_CODE, Space, distance
from nearcast.routing import Sample
from nearcast.routing.dkm.survey import Survey, join_surveys, survey
from nearcast.wire.changes import Changes
from nearcast.wire.tables import ObjectColumns, numbers
from nearcast_bench.dkm_sks.source import Part, Source, everything

TICK_OBJECTS, TICK_INSERTIONS, TICK_DELETIONS = 1000, 100, 100
_SAMPLE = 200  # subscriptions whose results are checked
_AT_ONCE = 1_000_000  # subscriptions in memory while they search O_init


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of an experiment."""

    workload: str = "place"
    subscriptions: int = 200_000
    objects: int = 100_000
    workers: int = 20
    k_max: int = 10
    ticks: int = 10
    seed: int = 1


@dataclass(slots=True)
class Tick:
    """What happens at one time-stamp."""

    objects: ObjectColumns
    insertions: pa.RecordBatch
    deletions: pa.RecordBatch
    deleted: NDArray[np.int64]  # numbers of the subscriptions


def make_tick(source: Source, setting: Setting) -> Tick:
    """The next time-stamp of the stream."""
    objects = source.objects(TICK_OBJECTS)
    now = int(objects.time[-1])
    insertions = source.insertions(TICK_INSERTIONS, setting.k_max, now)
    deletions, deleted = source.deletions(TICK_DELETIONS, setting.subscriptions, now)
    return Tick(objects, insertions, deletions, deleted)


@dataclass(slots=True, weakref_slot=True)
class Loaded:
    """All subscriptions with their results on O_init, before they are dealt."""

    setting: Setting
    folder: Path  # gone when nobody refers to this any more
    sample: Sample = field(init=False)
    survey: Survey = field(init=False)
    ticks: list[Tick] = field(init=False)
    seconds: dict[str, float] = field(default_factory=lambda: {"register": 0.0, "search": 0.0})
    parts: list[Path] = field(default_factory=list)

    def shares(
        self, homes: NDArray[np.int64], worker: int
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """(BALLS, NEAREST) of the subscriptions whose home is `worker`, a part at a time."""
        first = 0
        for path in self.parts:
            controls, results = _read(path)
            mine = homes[first : first + controls.num_rows] == worker
            first += controls.num_rows
            slots = numbers(results["slot"])
            results = results.filter(pa.array(mine[slots]))
            renumbered = pa.array((np.cumsum(mine) - 1)[slots[mine[slots]]])
            results = results.set_column(0, results.schema.field("slot"), renumbered)
            yield controls.filter(pa.array(mine)), results

    def controls(self, wanted: NDArray[np.int64]) -> pa.RecordBatch:
        """BALLS of subscriptions by number, in ascending order."""
        found, first = [], 0
        for path in self.parts:
            controls, _ = _read(path)
            here = (wanted >= first) & (wanted < first + controls.num_rows)
            found.append(controls.take(pa.array(np.sort(wanted[here]) - first)))
            first += controls.num_rows
        return pa.concat_batches(found)


def _write(path: Path, controls: pa.RecordBatch, results: pa.RecordBatch) -> None:
    for name, batch in (("controls", controls), ("results", results)):
        with pa.ipc.new_file(path.with_suffix(f".{name}"), batch.schema) as file:
            file.write_batch(batch)


def _read(path: Path) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """What `_write` wrote, mapped."""
    controls, results = (
        pa.ipc.open_file(pa.memory_map(str(path.with_suffix(f".{name}")))).get_batch(0)
        for name in ("controls", "results")
    )
    return controls, results


def new_index(name: str) -> BallIndex:
    """An empty index in the memory of this process."""
    index = KINDS["knn"].index(name)(Space.GEOGRAPHIC, Memory())
    assert isinstance(index, BallIndex)
    return index


def search(index: BallIndex, objects: ObjectColumns) -> tuple[float, int]:
    """Let what is registered search O_init; (seconds, objects visited)."""
    started = time.perf_counter()
    visited = index.find_results(objects, False).examined
    index.close()
    return time.perf_counter() - started, visited


def register(
    setting: Setting, source: Source, part: Part = everything
) -> tuple[BallIndex, ObjectColumns, dict[str, float]]:
    """Register subscriptions, then let them search O_init (`index.balls.bulk`).

    (The index, O_init, and what it took: seconds, and objects visited by the searches.)
    """
    index = new_index("pyramid")
    started = time.perf_counter()
    for controls in source.subscriptions(setting.subscriptions, setting.k_max, part):
        index.apply(controls, np.zeros(controls.num_rows, np.int32))
    took = {"register": time.perf_counter() - started}
    objects = source.objects(setting.objects)
    took["search"], took["visited"] = search(index, objects)
    check_results(index, objects)
    return index, objects, took


def post(index: BallIndex, objects: ObjectColumns) -> None:
    """Have all subscriptions on the lists: indexes post when objects come, here none do."""
    none = objects._replace(order=objects.order[:0])
    index.match(none, none.time[:0], 0)
    index.close()


def load(setting: Setting, source: Source, ticks: int) -> Loaded:
    """All subscriptions with their results, and so many ticks to follow."""
    folder = Path(tempfile.mkdtemp(prefix="nearcast-bench-"))
    out = Loaded(setting, folder)
    weakref.finalize(out, shutil.rmtree, folder, ignore_errors=True)
    objects = source.objects(setting.objects)
    out.sample = Sample(objects.x, objects.y, objects.word_offsets, objects.words)
    surveys = []
    left = source.subscriptions(setting.subscriptions, setting.k_max)
    while True:
        started = time.perf_counter()
        index = new_index("pyramid")
        for controls in left:
            index.apply(controls, np.zeros(controls.num_rows, np.int32))
            if len(index) >= _AT_ONCE:
                break
        if len(index) == 0:
            break
        out.seconds["register"] += time.perf_counter() - started
        out.seconds["search"] += search(index, objects)[0]
        check_results(index, objects)
        slots = np.arange(len(index))
        rows = index.rows(slots)
        surveys.append(survey(*rows, index.id_hashes(slots), index.space))
        out.parts.append(folder / f"part-{len(out.parts)}")
        _write(out.parts[-1], *rows)
    out.ticks = [make_tick(source, setting) for _ in range(ticks)]
    out.survey = join_surveys(surveys, out.sample)
    return out


def check_results(index: BallIndex, objects: ObjectColumns) -> None:
    """Compare the results of a sample of subscriptions with a look at every object."""
    slots = np.random.default_rng(0).choice(len(index), min(_SAMPLE, len(index)), replace=False)
    controls, results = index.rows(np.sort(slots))
    # A single word stands in the program, several (OR) in the cover.
    queried = [c or p for c, p in zip(*(controls[n].to_pylist() for n in ("cover", "program")))]
    xs, ys = numbers(controls["x"]).tolist(), numbers(controls["y"]).tolist()
    k = numbers(controls["k"])
    found = dict(zip(results["slot"].to_pylist(), results["distance"].to_pylist(), strict=True))
    for n in range(len(k)):
        x, y = xs[n], ys[n]
        away = _distances(objects, np.array(queried[n], np.uint64), x, y)
        if np.sort(away)[: k[n]].tolist() != found.get(n, []):
            raise NearcastError(f"bench: wrong results for a subscription at {x}, {y}")


@njit
def _distances(
    o: ObjectColumns, queried: NDArray[np.uint64], x: float, y: float
) -> NDArray[np.float64]:
    """How far all objects with one of the words `queried` are from (x, y)."""
    away = np.empty(len(o.x))
    n = 0
    for i in range(len(o.x)):
        holds = len(queried) == 0  # then any object will do
        for t in range(o.word_offsets[i], o.word_offsets[i + 1]):
            for word in queried:
                holds |= o.words[t] == word
        if holds:
            away[n] = distance(GEOGRAPHIC_CODE, x, y, o.x[i], o.y[i])
            n += 1
    return away[:n]


def step(
    index: BallIndex,
    objects: ObjectColumns,
    insertions: pa.RecordBatch,
    deletions: pa.RecordBatch,
) -> tuple[tuple[float, float, float], Changes]:
    """One tick of one worker: (seconds of kNN update, insertion, deletion; the changes).

    Seconds that this thread computed: a worker of the paper has a core of its own, and here other
    work may be on it.
    """
    n = np.int32(len(objects.order))
    t0 = time.thread_time()
    changes = index.match(objects, objects.time, int(objects.time[-1]))
    t1 = time.thread_time()
    index.apply(insertions, np.full(insertions.num_rows, n))
    t2 = time.thread_time()
    index.apply(deletions, np.full(deletions.num_rows, n))
    index.close()
    t3 = time.thread_time()
    return (t1 - t0, t2 - t1, t3 - t2), changes
