"""`nearcast bench dkm-sks --spark`: knn through the whole pipeline, beside the bare index.

A log of Place-like subscriptions and objects is replayed with every change and with net changes,
to Parquet. The same batches go through one index on one thread; it must report as many changes.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from nearcast.engine import Engine
from nearcast.index.arena import Memory
from nearcast.kinds import KINDS
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.wire.columns import decode_columns
from nearcast.wire.decode import no_collector
from nearcast.wire.notifications import net
from nearcast.workload import generate
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.replaying import (
    batches_of,
    by_kind,
    objects_of,
    plan_only,
    replay,
    split_log,
)

OBJECTS, NOTIFICATIONS = 20_000, 300_000  # a second: one of them must be reached


def run_spark(
    workload: str,
    subscriptions: int,
    objects: int,
    seed: int,
    batch_events: int,
    keep: str | None,
    say: Callable[[str], None],
) -> Iterator[Figure]:
    """Run both modes; one figure each, then the claims."""
    folder = Path(keep) if keep else Path(tempfile.mkdtemp(prefix="nearcast-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        say(f"generating {subscriptions:,} subscriptions and {objects:,} objects …")
        whole = folder / "all.parquet"
        generate(workload, objects, subscriptions, seed, whole)
        parts = [folder / n for n in ("0-warm.jsonl", "1-subscribes.parquet", "2-objects.parquet")]
        split_log(whole, *parts)
        worked_off = 0
        for changes in ("every", "net"):
            say(f"replaying, changes {changes} …")
            figure, sizes = _pipeline(parts, folder, changes, batch_events)
            say(f"the bare index, changes {changes} …")
            bare, reported = _bare(parts, sizes, changes)
            if reported != figure["notifications"]:
                raise NearcastError(
                    f"bench: {figure['notifications']:,} notifications, the index: {reported:,}"
                )
            worked_off = (
                worked_off or reported
            )  # the changes, also where only their sum is reported
            rates = figure["objects_per_second"], round(worked_off / figure["seconds"])
            yield figure | {
                "changes_per_second": rates[1],
                "bare_seconds": round(bare, 2),
                "ratio_to_bare": round(figure["seconds"] / bare, 2),
            }
            yield {
                "claim": f"{OBJECTS:,} objects or {NOTIFICATIONS:,} changes a second ({changes})",
                "value": rates,
                "held": rates[0] >= OBJECTS or rates[1] >= NOTIFICATIONS,
            }
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _pipeline(
    parts: list[Path], folder: Path, changes: str, batch_events: int
) -> tuple[Figure, list[int]]:
    """(figures of a replay, objects of each batch)."""
    engine = Engine(quiet=True, master="local[2]", changes=changes, format="parquet")
    out, checkpoint = folder / f"out-{changes}", folder / f"checkpoint-{changes}"
    for stale in (out, checkpoint):
        shutil.rmtree(stale, ignore_errors=True)
    for part in parts:
        plan_only(engine, part, checkpoint, batch_events)
    records, summary, _ = replay(engine, list(parts), out, batch_events, checkpoint)
    subscribes, objects = by_kind(records)
    sizes = [r.reports[0].events["publish"] for r in objects]
    seconds = sum(r.seconds for r in objects)
    reported = sum(r.notifications for r in objects)
    shards = range(len(objects[0].reports))
    figure = {
        "figure": f"spark, changes {changes}",
        "objects": sum(sizes),
        "batches": len(objects),
        "notifications": reported,
        "seconds": round(seconds, 2),
        "objects_per_second": round(sum(sizes) / seconds),
        "notifications_per_second": round(reported / seconds),
        "subscribes_per_second": round(
            sum(r.reports[0].events["subscribe"] for r in subscribes)
            / sum(r.seconds for r in subscribes)
        ),
        "match_seconds": [
            round(sum(r.reports[s].match_seconds for r in objects), 2) for s in shards
        ],
        "shard_seconds": [round(sum(r.reports[s].seconds for r in objects), 2) for s in shards],
        "batch_seconds": [round(r.seconds, 2) for r in objects],
        "state_bytes": summary["state_bytes"],
        "arena_bytes": summary["arena_bytes"],
    }
    return figure, sizes


def _bare(parts: list[Path], sizes: list[int], changes: str) -> tuple[float, int]:
    """(seconds of one index on one thread for the same batches, changes that it reported)."""
    knn = KINDS["knn"]
    index = knn.index("pyramid")(Space.GEOGRAPHIC, Memory())
    for batch in batches_of(parts[1]):
        with no_collector():
            controls = decode_columns(batch, Space.GEOGRAPHIC, KINDS).of(knn)
        index.apply(controls, np.zeros(controls.num_rows, np.int32))
    index.close()
    objects = objects_of(parts[2])
    first, reported, seconds = 0, 0, 0.0
    for n in sizes:
        some = objects._replace(order=objects.order[first : first + n])
        clock = objects.time[some.order]
        started = time.perf_counter()
        found = index.match(some, clock, int(clock[-1]), changes == "net")
        found = net(found, knn.events) if changes == "net" else found
        index.close()
        seconds += time.perf_counter() - started
        reported += len(found)
        first += n
    return seconds, reported
