"""`nearcast bench dkm-sks --full`: the paper's full setting on two workers at once.

Each worker is a process with its half of the subscriptions (by id: the default strategy for knn)
in nearcast's index. All see the same objects; a tick begins for all of them when the slowest has
finished the one before, and its wall-clock time is that of the slowest. Ticks are made and decoded
before the first one runs: the paper does not count that, and it would leave cold caches. The
first ticks are kept apart: memory that was just filled is slow at first.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.index.arena import Memory
from nearcast.index.base import ENTER
from nearcast.kernels.hashing import hash_ids
from nearcast.wire.tables import strings
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.together import Together
from nearcast_bench.dkm_sks.load import TICK_OBJECTS, Setting, make_tick, post, register, step
from nearcast_bench.dkm_sks.source import Part, Source

WARM = 20  # ticks that are kept apart
TICK_MS = 47.0  # a tenth of the paper's 471 ms on twenty cores
EXAMINED = 8.0
LOAD_SECONDS = 600.0
BYTES = 12e9


def _part(worker: int, workers: int) -> Part:
    """The ids of a worker."""

    def mine(ids: pa.Array) -> NDArray[np.bool_]:
        offsets, data = strings(ids.cast(pa.large_binary()))
        held: NDArray[np.bool_] = hash_ids(data, offsets) % np.uint64(workers) == np.uint64(worker)
        return held

    return mine


def _work(setting: Setting, data: str | None, worker: int, pipe: Connection) -> None:
    """A worker: load its part, then a tick at each word of the parent."""
    source = Source(setting.workload, setting.seed, data)
    part = _part(worker, setting.workers)
    index, objects, took = register(setting, source, part)
    started = time.perf_counter()
    post(index, objects)
    posted = time.perf_counter() - started
    del objects
    ticks = []
    for _ in range(WARM + setting.ticks):
        tick = make_tick(source, setting)
        came = tick.insertions.filter(pa.array(part(tick.insertions["id"])))
        gone = tick.deletions.filter(pa.array(part(tick.deletions["id"])))
        ticks.append(replace(tick, insertions=came, deletions=gone))
    assert isinstance(index.storage, Memory)
    index.storage.settle()
    gc.collect()
    gc.freeze()  # else the collector looks through what was loaded in the middle of some tick
    pipe.send(
        {
            "register_seconds": round(took["register"], 1),
            "search_seconds": round(took["search"], 1),
            "post_seconds": round(posted, 1),
            "cpu_seconds": round(time.process_time(), 1),  # other work may be on the machine
            "visited_per_subscription": round(took["visited"] / len(index), 1),
            "index_bytes_per_subscription": round(index.storage.bytes / len(index), 1),
        }
    )
    for n in range(WARM + setting.ticks):
        pipe.recv()
        tick = ticks[n]
        times, changes = step(index, tick.objects, tick.insertions, tick.deletions)
        entered = int(np.count_nonzero(changes.event == ENTER))
        pipe.send((*times, entered, changes.work.examined, changes.work.scanned))
    pipe.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def run_full(setting: Setting, data: str | None, say: Callable[[str], None]) -> Iterator[Figure]:
    """Load, run the ticks, report."""
    say(f"loading {setting.subscriptions:,} subscriptions against {setting.objects:,} objects …")
    started = time.perf_counter()
    workers = Together(_work, setting.workers, (setting, data))
    loads = workers.answers()
    seconds = time.perf_counter() - started
    name = Path(data).stem if data else setting.workload
    yield {
        "figure": "load",
        "workload": name,
        "subscriptions": setting.subscriptions,
        "objects": setting.objects,
        "seconds": round(seconds, 1),
        "workers": loads,
    }
    warm, walls, rows = [], [], []
    for n in range(WARM + setting.ticks):
        say(f"tick {n - WARM + 1} of {setting.ticks} …")
        wall, answers = workers.step()
        if n >= WARM:
            walls.append(wall)
            rows.append(answers)
        else:
            warm.append(wall)
    memory = sum(workers.answers())
    workers.join()
    times = np.array(rows)  # [ticks, workers, 6]
    entered, examined, scanned = times[:, :, 3].sum(), times[:, :, 4].sum(), times[:, :, 5].sum()
    objects = TICK_OBJECTS * len(rows)
    figures = {
        "tick_ms": float(np.mean(walls)) * 1e3,
        "examined_per_change": float(examined / max(entered, 1)),
        "load_seconds": seconds,
        "bytes": float(memory),
    }
    yield {
        "figure": "tick",
        "workload": name,
        "subscriptions": setting.subscriptions,
        "workers": setting.workers,
        "wall_ms": round(figures["tick_ms"], 2),
        "wall_ms_of_first_ticks": [round(w * 1e3, 2) for w in warm],
        "wall_ms_by_tick": [round(w * 1e3, 2) for w in walls],
        "knn_ms": round(float(times[:, :, 0].max(axis=1).mean()) * 1e3, 2),
        "insert_ms": round(float(times[:, :, 1].max(axis=1).mean()) * 1e3, 3),
        "delete_ms": round(float(times[:, :, 2].max(axis=1).mean()) * 1e3, 3),
        "changes_per_object": round(float(entered / objects), 2),
        "examined_per_change": round(figures["examined_per_change"], 2),
        "scanned_per_object": round(float(scanned / objects), 1),
        "gigabytes": round(memory / 1e9, 2),
    }
    for key, target in (
        ("tick_ms", TICK_MS),
        ("examined_per_change", EXAMINED),
        ("load_seconds", LOAD_SECONDS),
        ("bytes", BYTES),
    ):
        value = figures[key]
        yield {"claim": key, "value": round(value, 2), "target": target, "held": value <= target}
