"""`bench sstd --full`: tens of millions of posts in memory, and the time of each kind of ask.

Each store by itself: loaded and sealed as a shard does it, then asks over 72 hours of it, one
thread, one ask at a time. What a plain scan of all posts finds for some of the asks is counted
while they are loaded; a store that says anything else has no times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from nearcast.index.arena import Memory
from nearcast.model.space import Space
from nearcast.objects import STORES
from nearcast.objects.base import Slicing
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.sstd.asking import (
    HOUR_MS,
    HOURS,
    NEAREST,
    RANGE,
    TERMS,
    Asks,
    asks_from,
    batches,
    timed_asks,
)
from nearcast_bench.sstd.scanning import Scanned
from nearcast_bench.sstd.source import Source

AREAS = (1e-6, 1e-4, 1e-2)
# Milliseconds at most (issue 15): of medians, by kind and area.
TARGETS = {
    (RANGE, 1e-6): 1.0, (RANGE, 1e-4): 2.0, (RANGE, 1e-2): 8.0, (NEAREST, None): 3.0,
    (TERMS, 1e-4): 10.0, (TERMS, 1e-2): 30.0,
}  # fmt: skip
BYTES, LOADED = 180, 300_000
OBJECTS = 50_000_000
POOL = (
    40  # chunks of posts that come again, moved a little: making new ones takes longer than storing
)
_PEAK = {"curve": 230, "rtree": 600, "scan": 2000}  # bytes of memory a post while a slice is sealed
_SAY = 2_000_000


@dataclass(frozen=True, slots=True)
class Full:
    """A measurement of stores."""

    objects: int
    stores: tuple[str, ...]
    asks: int = 200
    checked: int = 3  # asks of each kind that are compared with a scan of everything
    delta_hours: float = 6.0
    hours: float = HOURS
    passes: int = 3
    seed: int = 7


def run_full(setting: Full, source: Source, say: Say) -> Iterator[Figure]:
    """Each store: loading, then asks."""
    whole = asks_from(source, setting.objects, setting.asks, round(setting.hours * HOUR_MS),
                      setting.seed)  # fmt: skip
    warm = Full(min(setting.objects, 60_000), setting.stores, 3, 1, setting.delta_hours,
                setting.hours, 1)  # fmt: skip
    if setting.objects > warm.objects:  # compiles
        for _ in run_full(warm, source, lambda _: None):
            pass
    for name in setting.stores:
        yield from _store(name, setting, source, whole, say)


def _store(name: str, setting: Full, source: Source, whole: Asks, say: Say) -> Iterator[Figure]:
    by_area = {a: whole.but(area=a) for a in AREAS}
    scanned = Scanned(
        {RANGE: list(by_area.values()), NEAREST: [whole], TERMS: list(by_area.values())},
        setting.checked,
    )
    delta = round(setting.delta_hours * HOUR_MS)
    store = STORES[name](Space.GEOGRAPHIC, Memory(), Slicing(delta_ms=delta))
    wall = cpu = 0.0
    first = 0
    for posts, times in batches(source, setting.objects, setting.hours):
        scanned.look_at(posts, times, first)
        objects = posts.objects(first, times)
        started, busy = time.perf_counter(), time.thread_time()
        store.add(objects)
        store.seal(int(times[-1]))
        cpu += time.thread_time() - busy
        wall += time.perf_counter() - started
        first += len(times)
        if first % _SAY == 0:
            say(f"{name}: {first:,} posts, {first / cpu:,.0f} a second of the processor …")
    started, busy = time.perf_counter(), time.thread_time()
    store.seal(round(2 * setting.hours * HOUR_MS))
    cpu += time.thread_time() - busy
    wall += time.perf_counter() - started
    usual: Figure = {
        "figure": "full", "data": source.name, "store": name, "objects": first,
        "slices": len(store.slices()), "seed": setting.seed,
    }  # fmt: skip
    compared = scanned.compare(store)
    yield usual | {
        "kind": "load",
        "bytes_per_object": round(store.bytes / first, 1),
        "objects_per_second": round(first / cpu),
        "objects_per_second_wall": round(first / wall),
        "answers_compared_with_scan": compared,
    }
    todo: list[tuple[str, float | None, Asks]] = [
        *((RANGE, a, q) for a, q in by_area.items()),
        (NEAREST, None, whole),
        *((TERMS, a, q) for a, q in by_area.items()),
    ]
    for kind, area, asks in todo:
        say(f"{name}: {kind} {'' if area is None else format(area, '.4%')} …")
        took = timed_asks(store, kind, asks, setting.passes)
        yield usual | {
            "kind": kind, "area": area, "hours": asks.hours, "k": asks.k,
            "keywords": 0 if kind == TERMS else asks.keywords, **took.figures(),
        }  # fmt: skip


def safe(wanted: int, stores: tuple[str, ...]) -> int:
    """As many posts as fit into three quarters of the memory that is free, in whole millions."""
    each = max(_PEAK.get(name, max(_PEAK.values())) for name in stores)
    with open("/proc/meminfo") as lines:
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    fit = int(0.75 * 1024 * free / each)
    return wanted if wanted <= fit else max(fit // 1_000_000 * 1_000_000, 1)
