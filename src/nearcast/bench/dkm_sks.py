"""`nearcast bench dkm-sks`: the experiment of the paper (section 5) on bare indexes.

Subscriptions are loaded against O_init at once, dealt to m workers by each algorithm, and then, a
time-stamp ("tick") at a time, get 1,000 objects, 100 insertions and 100 deletions. Workers are
measured one after another: update time is the slowest worker's, load balance the difference
between the slowest and the fastest. All algorithms must tell the same number of changes, and a
sample of the results is compared with a look at all objects, before any figure is told.
"""

from __future__ import annotations

import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.bench.chart import line_chart
from nearcast.bench.knn_source import Part, Source, everything
from nearcast.engine.planning import join_surveys, survey
from nearcast.index import INDEXES
from nearcast.index.arena import Memory
from nearcast.index.base import ENTER, Changes
from nearcast.index.compiled import CompiledIndex
from nearcast.kernels.hashing import hash_ids
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space, distance
from nearcast.routing import ROUTERS, CanPlan, Router, Sample, Survey, table_of_plan
from nearcast.wire.tables import ObjectColumns, lists, numbers, strings

TICK_OBJECTS, TICK_INSERTIONS, TICK_DELETIONS = 1000, 100, 100
# Table 1 of the paper: objects, distinct keywords, keywords an object.
DATASETS = {
    "place": {"objects": 9_356_750, "keywords": 53_931, "keywords_per_object": 2.94},
    "twitter": {"objects": 20_000_000, "keywords": 2_225_654, "keywords_per_object": 5.51},
}
# Table 2 and 3 of the paper, milliseconds with 20 workers and 10,000,000 subscriptions.
PAPER = {
    "ps2stream": {"balance": 27490.11, "knn": 32892.90, "insert": 1.51, "delete": 1.54},
    "kop": {"balance": 549.23, "knn": 7684.48, "insert": 1.59, "delete": 1.42},
    "sop": {"balance": 14037.33, "knn": 18549.04, "insert": 1110.65, "delete": 0.79},
    "dkm-sks": {"balance": 32.08, "knn": 471.00, "insert": 35.36, "delete": 1.10},
}
FIRST = "tables 2, 3; figure 7"
_SAMPLE = 200
Figure = dict[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A way to deal subscriptions, and the index of each worker."""

    name: str
    router: str  # of ROUTERS, or `space`
    index: str


ALGORITHMS = (
    Algorithm("ps2stream", "space", "inverted"),
    Algorithm("kop", "kop", "inverted"),
    Algorithm("sop", "sop", "rect-inverted"),
    Algorithm("dkm-sks", "dkm-sks", "grid-inverted"),
    Algorithm("dkm-sks+pyramid", "dkm-sks", "pyramid"),
)


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


@dataclass(slots=True)
class Measured:
    """Seconds of each worker (rows) at each tick (columns), and what they did."""

    knn: NDArray[np.float64]
    insert: NDArray[np.float64]
    delete: NDArray[np.float64]
    changes: int = 0
    examined: int = 0
    scanned: int = 0
    lookups: int = 0
    bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def update(self) -> NDArray[np.float64]:
        """Update time of each tick: of the slowest worker, all its work."""
        total: NDArray[np.float64] = (self.knn + self.insert + self.delete).max(axis=0)
        return total

    @property
    def balance(self) -> float:
        """Load balance: the mean difference between the slowest and the fastest kNN update."""
        return float((self.knn.max(axis=0) - self.knn.min(axis=0)).mean())


@dataclass(slots=True, weakref_slot=True)
class Loaded:
    """All subscriptions with their results on O_init, before they are dealt."""

    setting: Setting
    index: CompiledIndex
    sample: Sample
    survey: Survey
    ticks: list[Tick]
    seconds: dict[str, float]


def register(
    setting: Setting, source: Source, part: Part = everything
) -> tuple[CompiledIndex, ObjectColumns, dict[str, float]]:
    """Register subscriptions, then let them search O_init (`index.bulk`).

    (The index, O_init, and what it took: seconds, and objects visited by the searches.)
    """
    index = INDEXES["pyramid"]("knn", Space.GEOGRAPHIC, Memory())
    assert isinstance(index, CompiledIndex)
    started = time.perf_counter()
    for controls in source.subscriptions(setting.subscriptions, setting.k_max, part):
        index.apply(controls, np.zeros(controls.num_rows, np.int32))
    took = {"register": time.perf_counter() - started}
    objects = source.objects(setting.objects)
    started = time.perf_counter()
    took["visited"] = index.find_results(objects, False).examined
    index.close()
    took["search"] = time.perf_counter() - started
    check_results(index, objects)
    return index, objects, took


def post(index: CompiledIndex, objects: ObjectColumns) -> None:
    """Have all subscriptions on the lists: indexes post when objects come, here none do."""
    none = objects._replace(order=objects.order[:0])
    index.match(none, none.time[:0], 0)
    index.close()


def load(setting: Setting, source: Source) -> Loaded:
    """All subscriptions with their results, and the ticks that follow."""
    index, objects, seconds = register(setting, source)
    ticks = [make_tick(source, setting) for _ in range(setting.ticks)]
    slots = np.arange(len(index))
    sample = Sample(objects.x, objects.y, objects.word_offsets, objects.words)
    data = survey(*index.rows(slots), index.id_hashes(slots), index.space)
    held = join_surveys([data], sample)
    return Loaded(setting, index, sample, held, ticks, seconds)


def make_tick(source: Source, setting: Setting) -> Tick:
    """The next time-stamp of the stream."""
    objects = source.objects(TICK_OBJECTS)
    now = int(objects.time[-1])
    insertions = source.insertions(TICK_INSERTIONS, setting.k_max, now)
    deletions, deleted = source.deletions(TICK_DELETIONS, setting.subscriptions, now)
    return Tick(objects, insertions, deletions, deleted)


def check_results(index: CompiledIndex, objects: ObjectColumns) -> None:
    """Compare the results of a sample of subscriptions with a look at every object."""
    slots = np.random.default_rng(0).choice(len(index), min(_SAMPLE, len(index)), replace=False)
    controls, results = index.rows(np.sort(slots))
    # A single word stands in the program, several (OR) in the cover.
    asked = [c or p for c, p in zip(*(controls[n].to_pylist() for n in ("cover", "program")))]
    at, region = lists(controls["region"], np.float64)
    k = numbers(controls["k"])
    found = dict(zip(results["slot"].to_pylist(), results["distance"].to_pylist(), strict=True))
    rows = np.repeat(np.arange(len(objects.x)), np.diff(objects.word_offsets))
    for n in range(len(k)):
        holding = np.unique(rows[np.isin(objects.words, np.array(asked[n], np.uint64))])
        x, y = region[at[n]], region[at[n] + 1]
        away = [distance(0, x, y, objects.x[i], objects.y[i]) for i in holding.tolist()]
        if sorted(away)[: k[n]] != found.get(n, []):
            raise NearcastError(f"bench: wrong results for a subscription at {x}, {y}")


# -- dealing -----------------------------------------------------------------------------------


def plan(loaded: Loaded, algorithm: Algorithm, m: int) -> tuple[NDArray[np.int64], Router | None]:
    """(worker of each subscription, the router with its plan)."""
    if algorithm.router == "space":
        return _by_space(loaded.survey.x, loaded.survey.x, m), None
    router = ROUTERS[algorithm.router](m)
    assert isinstance(router, CanPlan)
    data, homes, costs = router.plan(loaded.sample, loaded.survey, {})
    with tempfile.NamedTemporaryFile(prefix="nearcast-plan-", delete=False) as file:
        file.write(data)
    weakref.finalize(loaded, Path(file.name).unlink, missing_ok=True)
    return homes, type(router)(m, table_of_plan(costs, path=file.name))


def _by_space(x: NDArray[np.float64], all_x: NDArray[np.float64], m: int) -> NDArray[np.int64]:
    """PS2Stream-style until its own issue: m strips of equal width."""
    low, high = all_x.min(), all_x.max()
    strips = (x - low) / max(high - low, 1e-9) * m
    homes: NDArray[np.int64] = np.clip(strips.astype(np.int64), 0, m - 1)
    return homes


def _deal_insertions(
    loaded: Loaded, router: Router | None, m: int
) -> tuple[list[NDArray[np.int64]], float]:
    """(worker of each insertion, a tick; seconds that dealing a tick takes)."""
    homes = []
    if isinstance(router, CanPlan):
        router.costs(loaded.ticks[0].insertions)  # so that no compiler is measured
    started = time.perf_counter()
    for tick in loaded.ticks:
        if router is None:
            _, region = lists(tick.insertions["region"], np.float64)
            homes.append(_by_space(region[::2], loaded.survey.x, m))
            continue
        offsets, data = strings(tick.insertions["id"])
        place = router.place(tick.insertions, hash_ids(data, offsets))
        homes.append(place.shards)
        if place.costs is not None:
            assert isinstance(router, CanPlan)
            added = np.bincount(place.shards, place.costs, m).astype(np.float64)
            table = router.adjusted(added)
            router = type(router)(m, table)
    return homes, (time.perf_counter() - started) / max(len(loaded.ticks), 1)


def measure(loaded: Loaded, algorithm: Algorithm, m: int) -> Measured:
    """Run the ticks on each of m workers in turn."""
    started = time.perf_counter()
    homes, router = plan(loaded, algorithm, m)
    planned = time.perf_counter() - started
    inserted, dealing = _deal_insertions(loaded, router, m)
    shape = (m, len(loaded.ticks))
    out = Measured(np.zeros(shape), np.zeros(shape), np.zeros(shape))
    out.seconds = {"plan": planned}
    for worker in range(m):
        index = _worker(loaded, algorithm.index, np.flatnonzero(homes == worker))
        out.bytes += index.storage.bytes
        for n, tick in enumerate(loaded.ticks):
            mine = np.flatnonzero(homes[tick.deleted] == worker)
            came = np.flatnonzero(inserted[n] == worker)
            times, changes = step(
                index,
                tick.objects,
                tick.insertions.take(pa.array(came)),
                tick.deletions.take(pa.array(mine)),
            )
            out.knn[worker, n], out.insert[worker, n], out.delete[worker, n] = times
            out.changes += int(np.count_nonzero(changes.event == ENTER))
            out.examined += changes.work.examined
            out.scanned += changes.work.scanned
            out.lookups += changes.work.lookups
    out.insert += dealing  # the main server's part
    return out


def _worker(loaded: Loaded, name: str, slots: NDArray[np.int64]) -> CompiledIndex:
    """An index with these subscriptions and their results, posted."""
    index = INDEXES[name]("knn", Space.GEOGRAPHIC, Memory())
    assert isinstance(index, CompiledIndex)
    controls, results = loaded.index.rows(slots)
    index.apply(controls, np.zeros(controls.num_rows, np.int32))
    index.restore(results)
    index.close()
    post(index, loaded.ticks[0].objects)
    return index


def step(
    index: CompiledIndex,
    objects: ObjectColumns,
    insertions: pa.RecordBatch,
    deletions: pa.RecordBatch,
) -> tuple[tuple[float, float, float], Changes]:
    """One tick of one worker: (seconds of kNN update, insertion, deletion; the changes)."""
    n = np.int32(len(objects.order))
    t0 = time.perf_counter()
    changes = index.match(objects, objects.time, int(objects.time[-1]))
    t1 = time.perf_counter()
    index.apply(insertions, np.full(insertions.num_rows, n))
    t2 = time.perf_counter()
    index.apply(deletions, np.full(deletions.num_rows, n))
    index.close()
    t3 = time.perf_counter()
    return (t1 - t0, t2 - t1, t3 - t2), changes


# -- the experiment ----------------------------------------------------------------------------


def _ms(seconds: Any) -> float:
    return round(float(seconds) * 1e3, 3)


def _dataset(loaded: Loaded, name: str) -> Figure:
    """Table 1 for the objects loaded."""
    sample = loaded.sample
    return {
        "figure": "table 1",
        "workload": name,
        "objects": len(sample.x),
        "keywords": len(np.unique(sample.words)),
        "keywords_per_object": round(len(sample.words) / max(len(sample.x), 1), 2),
        "paper": DATASETS.get(name),
    }


def run_point(setting: Setting, source: Source, say: Say, what: str) -> Iterator[Figure]:
    """All algorithms at one setting."""
    say(f"{what}: loading {setting.subscriptions:,} subscriptions, {setting.objects:,} objects …")
    loaded = load(setting, source)
    if what == FIRST:
        yield _dataset(loaded, source.name)
    told: dict[str, int] = {}
    for algorithm in ALGORITHMS:
        say(f"{what}: {algorithm.name}, {setting.workers} workers …")
        got = measure(loaded, algorithm, setting.workers)
        told[algorithm.name] = got.changes
        if len(set(told.values())) > 1:
            raise NearcastError(f"bench: the algorithms disagree on the changes: {told}")
        objects = TICK_OBJECTS * setting.ticks
        yield {
            "figure": what,
            "algorithm": algorithm.name,
            "index": algorithm.index,
            "workload": source.name,
            "subscriptions": setting.subscriptions,
            "objects": setting.objects,
            "workers": setting.workers,
            "k_max": setting.k_max,
            "update_ms": _ms(got.update.mean()),
            "update_ms_by_tick": [_ms(t) for t in got.update],
            "load_balance_ms": _ms(got.balance),
            "knn_ms": _ms(got.knn.max(axis=0).mean()),
            "insert_ms": _ms(got.insert.max(axis=0).mean()),
            "delete_ms": _ms(got.delete.max(axis=0).mean()),
            "work_ms_all_workers": _ms(got.knn.sum(axis=0).mean()),
            "changes_per_object": round(got.changes / objects, 2),
            "examined_per_change": round(got.examined / max(got.changes, 1), 2),
            "scanned_per_object": round(got.scanned / objects, 1),
            "lookups_per_object": round(got.lookups / objects, 1),
            "bytes_per_subscription": round(got.bytes / setting.subscriptions, 1),
            "plan_seconds": round(got.seconds["plan"], 2),
            "register_seconds": round(loaded.seconds["register"], 2),
            "search_seconds": round(loaded.seconds["search"], 2),
            "paper": PAPER.get(algorithm.name),
        }


def run(base: Setting, data: str | None, series: bool, say: Say) -> Iterator[Figure]:
    """Tables 2 and 3 and figure 7; with `series`, figures 8 to 10; then the paper's claims."""

    def source(setting: Setting) -> Source:
        return Source(setting.workload, setting.seed, data)

    points: list[Figure] = []
    names = ["place"] if data else [base.workload]
    if series and not data:
        names = ["place", "twitter"]
    for name in names:
        setting = replace(base, workload=name)
        for figure in run_point(setting, source(setting), say, FIRST):
            points.append(figure)
            yield figure
    n = base.subscriptions
    if series:
        for what, settings in (
            ("figure 8", [replace(base, workers=m) for m in (5, 10, 20, 40)]),
            ("figure 9", [replace(base, subscriptions=n * q // 4) for q in (1, 2, 4)]),
            ("figure 10", [replace(base, k_max=k) for k in (5, 10, 20)]),
        ):  # fmt: skip
            for setting in settings:
                for figure in run_point(setting, source(setting), say, what):
                    points.append(figure)
                    yield figure
    yield from claims(points)


_AXES = {"figure 8": "workers", "figure 9": "subscriptions", "figure 10": "k_max"}


def plots(points: list[Figure], folder: Path) -> list[Path]:
    """Draw what `run` told into `folder`; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for what, workload in sorted(
        {(p["figure"], p["workload"]) for p in points if "algorithm" in p}
    ):
        lines: dict[str, list[tuple[float, float]]] = {}
        axis = _AXES.get(what)
        for p in points:
            if (p.get("figure"), p.get("workload")) == (what, workload):
                line = lines.setdefault(p["algorithm"], [])
                if axis:
                    line.append((p[axis], p["update_ms"]))
                else:
                    line += list(enumerate(p["update_ms_by_tick"], 1))
        name = what.split("; ")[-1]
        path = folder / f"dkm-sks-{name.replace(' ', '-')}-{workload}.svg"
        title = f"DkM-SKS {name}, {workload}: update time"
        path.write_text(line_chart(title, axis or "time-stamp", "ms", lines, log_y=True))
        drawn.append(path)
    return drawn


def _of(points: list[Figure], what: str, algorithm: str) -> list[Figure]:
    return [p for p in points if (p["figure"], p.get("algorithm")) == (what, algorithm)]


def claims(points: list[Figure]) -> Iterator[Figure]:
    """What the paper claims, as shapes: each held or not."""
    for workload in sorted({p["workload"] for p in points}):
        by = {
            p["algorithm"]: p for p in points if (p["figure"], p["workload"]) == (FIRST, workload)
        }
        if not by:
            continue
        dkm, others = by["dkm-sks"], [by[a] for a in ("ps2stream", "kop", "sop")]

        def claim(text: str, held: bool, workload: str = workload, **more: Any) -> Figure:
            return {"claim": text, "workload": workload, "held": bool(held), **more}

        yield claim(
            "DkM-SKS has the least update time of the four",
            all(dkm["update_ms"] < o["update_ms"] for o in others),
            ratio_to_next=round(min(o["update_ms"] for o in others) / dkm["update_ms"], 2),
        )
        yield claim(
            "DkM-SKS is more than 10 times faster than the others",
            all(10 * dkm["update_ms"] < o["update_ms"] for o in others),
        )
        yield claim(
            "DkM-SKS has the best load balance of the four",
            all(dkm["load_balance_ms"] < o["load_balance_ms"] for o in others),
        )
        ticks = dkm["update_ms_by_tick"]
        half = max(len(ticks) // 2, 1)
        drift = float(np.median(ticks[half:]) / np.median(ticks[:half])) if len(ticks) > 1 else 1.0
        yield claim(
            "DkM-SKS's update time does not grow over time", drift < 1.25, drift=round(drift, 3)
        )
        yield claim(
            "kNN update is most of the update time of DkM-SKS",
            dkm["knn_ms"] > dkm["insert_ms"] + dkm["delete_ms"],
        )
        ours = by["dkm-sks+pyramid"]
        yield claim(
            "nearcast's index beats the paper's grid of inverted files",
            ours["knn_ms"] < dkm["knn_ms"],
            ratio=round(dkm["knn_ms"] / ours["knn_ms"], 2),
        )
        yield claim(
            "candidates examined per change at most 8 (nearcast's index)",
            ours["examined_per_change"] <= 8,
            value=ours["examined_per_change"],
        )
        share = ours["load_balance_ms"] / ours["update_ms"]
        yield claim("load balance at most 10% of update time (nearcast's index)", share <= 0.1,
                    value=round(share, 3))  # fmt: skip
    yield from _series_claims(points)


def _series_claims(points: list[Figure]) -> Iterator[Figure]:
    for what, text, grows in (
        ("figure 8", "update time falls as workers are added", False),
        ("figure 9", "update time grows with |S|", True),
        ("figure 10", "update time grows with k_max", True),
    ):
        for algorithm in ("kop", "dkm-sks", "dkm-sks+pyramid"):
            values = [p["update_ms"] for p in _of(points, what, algorithm)]
            if len(values) > 1:
                held = values[-1] > values[0] if grows else values[-1] < values[0]
                yield {
                    "claim": f"{text}: {algorithm}",
                    "figure": what,
                    "values": values,
                    "held": bool(held),
                }
