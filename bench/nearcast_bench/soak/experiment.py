"""`nearcast bench soak`: so many batches, and what the run holds on the way.

The run is `testing.live_run`, in shared memory: the engine's own tailer, steps and sink, in one
process without a JVM, with range and knn subscriptions that move all the time, retention and
segments. At each sample it is started again, as after a crash. What is flat is judged by the second
quarter of the samples against the last one, so that what takes a while to be full counts.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from nearcast.engine.options.settings import Settings
from nearcast.engine.output.reports import Reports
from nearcast.testing.live_run import LiveRun
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.in_memory import folder_in_memory
from nearcast_bench.soak.stream import STEP_MS, events_of

SAMPLES = 40
_FILE = 200  # batches to a file of events
# What may be how much larger at the end: a factor, and what counts as nothing. Files and their
# bytes rise and fall with upkeep and snapshots, so the most that there was counts; of the others,
# what was usual.
_LIMITS: dict[str, tuple[Callable[..., float], float, float]] = {
    "files": (max, 1.15, 10),
    "bytes": (max, 1.3, 500_000),
    "descriptors": (max, 1.1, 5),
    "rss_mb": (median, 1.1, 10),
    "batch_ms": (median, 1.25, 1),
    "restart_ms": (median, 1.25, 5),
}


def run_soak(batches: int, samples: int, seed: int, say: Say) -> Iterator[Figure]:
    """A line per sample, then the claims."""
    rng = Random(seed)
    every = max(batches // samples, 1)
    taken: list[dict[str, Any]] = []
    with folder_in_memory() as folder:
        run = LiveRun(_settings(folder), folder / "run")
        began = time.process_time()
        for batch in range(batches):
            run.write(events_of(batch, rng))
            while run.step():
                pass
            if batch % _FILE == _FILE - 1:
                run.turn(keep=2)
            if (batch + 1) % every == 0:
                took = time.process_time() - began
                taken.append(_sample(run, batch + 1, took / every))
                say(f"{batch + 1:,} batches: {taken[-1]}")
                yield {"figure": "soak", **taken[-1]}
                began = time.process_time()
        totals = Reports(run.run.checkpoint).totals()
        run.tailer.stop()
    yield {
        "figure": "soak-total",
        "batches": totals.batches,
        "seed": seed,
        "events": totals.read,
        "notifications": sum(totals.notifications.values()),
        "rejects": totals.rejects,
        "moved": totals.moved,
    }
    yield from claims(taken)


def _settings(folder: Path) -> Settings:
    return Settings(
        order="arrival",
        only=("range", "knn"),
        strategies={"range": "random", "knn": "random"},
        manifests="files",
        keep="1s",
        retain_ms=20 * STEP_MS,
        lateness_ms=STEP_MS,
        arena=str(folder / "arena"),
    )


def _sample(run: LiveRun, batches: int, seconds: float) -> dict[str, Any]:
    """What the run holds now, and how long it takes to start again."""
    started = time.process_time()
    run.restart()
    Reports(run.run.checkpoint).totals()
    restart = time.process_time() - started
    gc.collect()
    found = run.files()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "batches": batches,
        "files": sum(files for files, _ in found.values()),
        "bytes": sum(size for _, size in found.values()),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "rss_mb": round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1),
        "batch_ms": round(seconds * 1e3, 2),
        "restart_ms": round(restart * 1e3, 2),
    }


def claims(taken: list[dict[str, Any]]) -> Iterator[Figure]:
    """Whether each figure is flat from the second quarter to the last."""
    quarter = len(taken) // 4
    if not quarter:
        return
    for name, (usual, factor, nothing) in _LIMITS.items():
        early = usual(s[name] for s in taken[quarter : 2 * quarter])
        late = usual(s[name] for s in taken[-quarter:])
        yield {
            "claim": f"{name} stay as they are",
            "value": late,
            "target": early,
            "held": bool(late <= early * factor + nothing),
        }
