"""`bench dskype --full`: hash+reach as it would run on this machine, one process per shard.

Each process has the subscriptions of its shard and all messages. They run side by side; a run is as
fast as the slower one. Results of a sample of the subscriptions are compared with a scan.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.index.arena import Memory
from nearcast.index.tops.reach.index import Reach
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.routing.hash import home_of
from nearcast.wire.carried import Carried
from nearcast.wire.changes import Changes
from nearcast.wire.tables import ObjectColumns
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.dskype.distributed import new_store
from nearcast_bench.dskype.load import Load, controls, id_hashes, load_of
from nearcast_bench.dskype.scanning import scanned
from nearcast_bench.dskype.setting import TWEETS

_CHUNK = 250_000  # subscriptions that are made at once


@dataclass(frozen=True, slots=True)
class Full:
    """Sizes."""

    subscriptions: int = 5_000_000
    window: int = 1_000_000
    messages: int = 50_000  # timed, half as many before them are not
    step: int = 10_000
    shards: int = 2
    k: int = 20
    data: tuple[str, ...] = (TWEETS,)
    seed: int = 7
    checked: int = 10  # subscriptions per process


def run_full(full: Full, say: Say) -> Iterator[Figure]:
    """One line per workload."""
    for data in full.data:
        say(f"{data}: {full.subscriptions:,} subscriptions, a window of {full.window:,} …")
        yield _run(full, data)


def _run(full: Full, data: str) -> Figure:
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(full.shards)
    pipes, running = [], []
    for shard in range(full.shards):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(full, data, shard, together, theirs))
        process.start()
        theirs.close()
        pipes.append(ours)
        running.append(process)
    try:
        found: list[dict[str, Any]] = []
        for pipe in pipes:
            try:
                found.append(pipe.recv())
            except EOFError:
                raise NearcastError("bench dskype: a process ended; see its error above") from None
    finally:
        for process in running:
            if any("error" in f for f in found) or len(found) < full.shards:
                process.terminate()
            process.join()
    for f in found:
        if "error" in f:
            raise NearcastError(f["error"])
    m, n = full.messages, sum(f["subscriptions"] for f in found)
    return {
        "figure": "full", "data": data, "strategy": "hash+reach", "subscriptions": n,
        "window": full.window, "messages": m, "k": full.k, "processes": full.shards,
        "seed": full.seed,
        "messages_per_second": round(m / max(f["wall"] for f in found)),
        "messages_per_second_by_cpu": round(m / max(f["cpu"] for f in found)),
        "first_results_seconds_cpu": round(max(f["begin"] for f in found), 1),
        "entering_per_message": round(sum(f["entering"] for f in found) / m, 2),
        "examined_per_message": round(sum(f["examined"] for f in found) / m, 1),
        "scanned_per_message": round(sum(f["scanned"] for f in found) / m, 1),
        "refills_per_message": round(sum(f["refills"] for f in found) / m, 3),
        "bytes_per_subscription": round(sum(f["bytes"] for f in found) / n, 1),
        "log_bytes": sum(f["log_bytes"] for f in found),
        "store_bytes": max(f["store_bytes"] for f in found),
        "compared_with_scan": sum(f["compared"] for f in found),
    }  # fmt: skip


def _work(full: Full, data: str, shard: int, together: Any, pipe: Connection) -> None:
    """One process; what goes wrong is said by the one that waits."""
    try:
        pipe.send(_measure(full, data, shard, together))
    except Exception as error:
        together.abort()
        pipe.send({"error": f"bench dskype: shard {shard}: {error!r}"})
    finally:
        pipe.close()


def _measure(full: Full, data: str, shard: int, together: Any) -> dict[str, Any]:
    warm = max(full.messages // 2 // full.step, 1) * full.step
    load = load_of(data, full.window, warm + full.messages, full.seed)
    storage = Memory()
    index = Reach(Space.PLANAR, storage, load.frame)
    index.past = new_store(load)
    for first in range(0, full.window, 1 << 17):
        index.past.add(load.part(first, min(1 << 17, full.window - first)))
    held, chosen = 0, []
    rng = np.random.default_rng([full.seed, 6, shard])
    for first in range(0, full.subscriptions, _CHUNK):
        table = controls(load, first, min(_CHUNK, full.subscriptions - first), full.k, full.seed)
        mine = np.flatnonzero(home_of(id_hashes(table), full.shards) == shard)
        table = table.take(pa.array(mine))
        index.apply(table, np.zeros(len(mine), np.int32))
        if len(mine):
            row = int(rng.integers(len(mine)))
            chosen.append((held + row, table.slice(row, 1)))
        held += len(mine)
    results: dict[int, set[int]] = {slot: set() for slot, _ in chosen}
    started = time.process_time()
    entering = refills = 0
    work = np.zeros(2, np.int64)
    index.ranked, index.now = full.window, int(load.objects.time[full.window]) - 1
    wall = cpu = begin = 0.0
    end = full.window + warm + full.messages
    for first in range(full.window, end, full.step):
        if first == full.window + full.step:
            begin = time.process_time() - started
        if first == full.window + warm:
            entering, refills = 0, index.refills.filled
            work[:] = 0
            together.wait()
            wall, cpu = time.perf_counter(), time.process_time()
        changes = _batch(
            index, load, first, min(full.step, full.window + warm + full.messages - first)
        )
        entering += int((changes.event == 0).sum())
        work += changes.work.examined, changes.work.scanned
        _follow(results, index, changes)
        index.close()
        index.past.expire(int(load.objects.time[first]), index.first_rank(first + full.step))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    some = chosen[: full.checked]
    table = pa.concat_batches([row for _, row in some])
    right = scanned(load, table, end)
    for (slot, _), wanted in zip(some, right, strict=True):
        if results[slot] != {rank for _, rank in wanted}:
            raise NearcastError(f"a wrong result in slot {slot}")
    log = sum(len(storage.array(n, t, w, 0)) * w * s for n, t, w, s in
              (("log", np.int64, 3, 8), ("log.names", np.uint8, 1, 1)))  # fmt: skip
    return {
        "subscriptions": held, "wall": wall, "cpu": cpu, "begin": begin, "entering": entering,
        "examined": int(work[0]), "scanned": int(work[1]),
        "refills": index.refills.filled - refills, "bytes": storage.bytes - log, "log_bytes": log,
        "store_bytes": index.past.bytes, "compared": len(some),
    }  # fmt: skip


def _batch(index: Reach, load: Load, first: int, n: int) -> Changes:
    """Store a batch of messages and match it, as a shard does."""
    o = load.part(first, n)
    index.past.add(o)
    columns = ObjectColumns(
        np.arange(n), o.time, o.time, o.time, o.x, o.y, o.id_offsets, o.id_bytes, o.word_offsets,
        o.words,
    )  # fmt: skip
    index.carry(Carried(o.counts, o.firsts, o.rank))
    changes = index.match(columns, o.time, int(o.time[-1]))
    index.changed()
    return changes


def _follow(results: dict[int, set[int]], index: Reach, changes: Changes) -> None:
    """Let changes change some of the results."""
    mine = np.flatnonzero(np.isin(changes.slot, list(results)))
    some = changes.take(mine)
    ranks, _ = index.named(some)
    for slot, event, rank in zip(
        some.slot.tolist(), some.event.tolist(), ranks.tolist(), strict=True
    ):
        if event == 0:
            results[slot].add(rank)
        else:
            results[slot].remove(rank)
