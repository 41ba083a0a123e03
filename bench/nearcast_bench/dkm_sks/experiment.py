"""`nearcast bench dkm-sks`: the experiment of the paper (section 5) on bare indexes.

Subscriptions are loaded against O_init at once, dealt to m workers by each algorithm, and then, a
time-stamp ("tick") at a time, get 1,000 objects, 100 insertions and 100 deletions. Workers are
measured one after another: update time is the slowest worker's, load balance the difference
between the slowest and the fastest. All algorithms must report the same number of changes, and a
sample of the results is compared with a look at all objects, before any figure is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from nearcast.model.errors import NearcastError
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.dkm_sks.claims import claims
from nearcast_bench.dkm_sks.deal import Algorithm
from nearcast_bench.dkm_sks.load import TICK_OBJECTS, Loaded, Setting, load
from nearcast_bench.dkm_sks.measure import (
    CHANGES,
    EXAMINED,
    LOOKUPS,
    SCANNED,
    WARM,
    Measured,
    measure,
)
from nearcast_bench.dkm_sks.paper import DATASETS, FIRST, PAPER, SERIES
from nearcast_bench.dkm_sks.source import Source

_WORKERS = (5, 10, 15, 20, 25)
_QUARTERS = (1, 2, 3, 4)  # of |S|
_K_MAX = (5, 10, 15, 20, 25)


def points(base: Setting, series: str | None) -> Iterator[tuple[str, Setting]]:
    """(figure, setting) of all that is measured; those that load the same follow each other."""
    if series is None:
        yield FIRST, base
        return
    if series in ("m", "all"):
        yield from ((SERIES["m"], replace(base, workers=m)) for m in _WORKERS)
    if series in ("subscriptions", "all"):
        n = base.subscriptions
        for q in _QUARTERS:
            yield SERIES["subscriptions"], replace(base, subscriptions=n * q // 4)
    if series in ("k", "all"):
        yield from ((SERIES["k"], replace(base, k_max=k)) for k in _K_MAX)


def run(
    base: Setting,
    data: str | None,
    algorithms: tuple[Algorithm, ...],
    series: str | None,
    say: Say,
) -> Iterator[Figure]:
    """Tables 1 to 3 and figure 7, or figures 8 to 10 (`series`); then the paper's claims."""
    reported: list[Figure] = []
    loaded: Loaded | None = None
    for what, setting in points(base, series):
        if loaded is None or replace(loaded.setting, workers=setting.workers) != setting:
            loaded = None  # before the next one takes its place in memory
            say(
                f"{what}: loading {setting.subscriptions:,} subscriptions, "
                f"{setting.objects:,} objects …"
            )
            source = Source(setting.workload, setting.seed, data)
            loaded = load(setting, source, WARM + setting.ticks)
            if what == FIRST:
                yield _dataset(loaded, source.name)
        for figure in _point(loaded, replace(setting, workload=source.name), what, algorithms, say):
            reported.append(figure)
            yield figure
    yield from claims(reported)


def _point(
    loaded: Loaded, setting: Setting, what: str, algorithms: tuple[Algorithm, ...], say: Say
) -> Iterator[Figure]:
    """All algorithms at one setting."""
    changes: dict[str, int] = {}
    for algorithm in algorithms:
        say(f"{what}: {algorithm.name}, {setting.workers} workers …")
        got = measure(loaded, algorithm, setting.workers, say)
        changes[algorithm.name] = got.changes
        if len(set(changes.values())) > 1:
            raise NearcastError(f"bench: the algorithms disagree on the changes: {changes}")
        yield _figure(got, loaded, setting, what, algorithm)


def _figure(
    got: Measured, loaded: Loaded, setting: Setting, what: str, algorithm: Algorithm
) -> Figure:
    objects = TICK_OBJECTS * got.knn.shape[1]
    total = got.counts.sum(axis=(0, 1))
    return {
        "figure": what,
        "algorithm": algorithm.name,
        "index": algorithm.index,
        "workload": setting.workload,
        "subscriptions": setting.subscriptions,
        "objects": setting.objects,
        "workers": setting.workers,
        "k_max": setting.k_max,
        "update_ms": _ms(got.update.mean()),
        "update_ms_by_tick": [_ms(t) for t in got.update],
        "load_balance_ms": _ms(got.balance),
        "load_balance_lasting_ms": _ms(got.lasting_balance),
        "knn_ms": _ms(got.knn.max(axis=0).mean()),
        "insert_ms": _ms(got.insert.max(axis=0).mean()),
        "delete_ms": _ms(got.delete.max(axis=0).mean()),
        "knn_ms_all_workers": _ms(got.knn.sum(axis=0).mean()),
        "knn_ms_by_worker": [_ms(t) for t in np.median(got.knn, axis=1)],
        "changes_spread": round(got.spread(CHANGES), 4),
        "examined_spread": round(got.spread(EXAMINED), 4),
        "changes_per_object": round(total[CHANGES] / objects, 2),
        "examined_per_change": round(total[EXAMINED] / max(total[CHANGES], 1), 2),
        "scanned_per_object": round(total[SCANNED] / objects, 1),
        "lookups_per_object": round(total[LOOKUPS] / objects, 1),
        "bytes_per_subscription": round(got.bytes / setting.subscriptions, 1),
        "plan_seconds": round(got.seconds["plan"], 2),
        "register_seconds": round(loaded.seconds["register"], 2),
        "search_seconds": round(loaded.seconds["search"], 2),
        "paper": PAPER.get(algorithm.name) if what == FIRST else None,
    }


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
