"""`bench balance --minutes`: the jumping hot spot as a log, through Spark, for a long time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.engine import Engine
from nearcast.engine.output.reports import BatchRecord, loads_by_batch
from nearcast.routing.balance import imbalance
from nearcast.workload.events import SCHEMA
from nearcast.workload.range_queries import Places, Queries, word_of
from nearcast.workload.shifting import Shifting
from nearcast_bench.balance.experiment import EVEN, WITHIN, Setting, after_jumps, check

BATCH_SECONDS = 1.0  # about what a batch takes on two cores
BATCH_OBJECTS = 10_000
SUBSCRIPTIONS = 100_000
PHASE = 12


def run_replay(
    setting: Setting, minutes: int, keep: str | None, say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """One long replay a strategy, with balance; then a check of a sample against a scan."""
    stream = Shifting(SUBSCRIPTIONS, BATCH_OBJECTS, PHASE, seed=setting.stream.seed)
    batches = int(minutes * 60 / BATCH_SECONDS)
    with tempfile.TemporaryDirectory(prefix="nearcast-balance-") as folder:
        log = Path(folder, "log.parquet")
        say(f"writing {batches * stream.batch:,} objects")
        write_log(stream, batches, log)
        for strategy in setting.strategies:
            out = Path(keep or folder, strategy)
            yield _replayed(setting, stream, batches, strategy, log, out, say)


def _replayed(
    setting: Setting,
    stream: Shifting,
    batches: int,
    strategy: str,
    log: Path,
    out: Path,
    say: Callable[[str], None],
) -> dict[str, Any]:
    engine = Engine(
        space="planar",
        shards=setting.shards,
        strategies={"range": strategy},
        warmup=stream.batch,
        balance={**setting.balance, "mode": "auto"},
        quiet=True,
    )
    records: list[BatchRecord] = []

    def on_batch(record: BatchRecord) -> None:
        records.append(record)
        if len(records) % 20 == 0:
            say(f"{strategy}: {len(records)} batches")

    started = time.perf_counter()
    summary = engine.replay([log], out, batch_events=stream.batch, on_batch=on_batch)
    seconds = time.perf_counter() - started
    first = -(-stream.queries // stream.batch)  # batches of subscribes alone
    loads = loads_by_batch(records, "range")
    ratios = [imbalance(loads[b]) for b in sorted(loads) if b >= first]
    reported = after_jumps(ratios, stream.phase)
    wrong = check(stream, batches, out / "notifications")
    return {
        "bench": "balance-replay",
        "strategy": strategy,
        "balance": "auto",
        "shards": setting.shards,
        "minutes": round(seconds / 60, 2),
        "events": summary["events"]["total"],
        "batches": summary["batches"],
        "phase_batches": stream.phase,
        "events_per_second": summary["events_per_second"],
        "notifications": summary["notifications"]["total"],
        "imbalance_after_jump": reported,
        "even_enough": max(reported[WITHIN:], default=0.0) <= EVEN,
        "adjustments": len(summary["balance"]["adjustments"]),
        "moved": sum(a["moved"] for a in summary["balance"]["adjustments"]),
        "wrong_notifications": wrong,
    }


def write_log(stream: Shifting, batches: int, path: Path) -> None:
    """The stream without churn as a log, a row group a batch."""
    words = np.array([word_of(i) for i in range(100_000)], object)
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        writer.write_table(_subscribes(stream.standing(), words))
        for n in range(batches):
            writer.write_table(_publishes(stream.objects(n), words, n, n * stream.batch))


def _table(n: int, **columns: Any) -> pa.Table:
    empty = {f.name: pa.nulls(n, f.type) for f in SCHEMA}
    return pa.table({**empty, **columns}, schema=SCHEMA)


def _subscribes(queries: Queries, words: NDArray[Any]) -> pa.Table:
    texts = []
    for box, queried in zip(queries.boxes.tolist(), queries.words.tolist(), strict=True):
        where = " AND ".join(words[[w for w in queried if w >= 0]])
        texts.append(f'{{"kind":"range","region":{{"bbox":{box}}},"where":"{where}"}}')
    n = len(texts)
    return _table(
        n,
        op=pa.array(["subscribe"] * n),
        id=pa.array([str(i) for i in range(n)]),
        time=pa.array(np.zeros(n, np.int64)),
        query=pa.array(texts),
    )


def _publishes(places: Places, words: NDArray[Any], batch: int, first: int) -> pa.Table:
    n = len(places.at)
    held = places.words >= 0
    offsets = np.concatenate([[0], np.cumsum(held.sum(1))]).astype(np.int32)
    keywords = pa.array(words[places.words[held]].tolist(), pa.string())
    return _table(
        n,
        op=pa.array(["publish"] * n),
        id=pa.array([str(i) for i in range(first, first + n)]),
        time=pa.array(np.full(n, batch + 1, np.int64)),
        at=pa.ListArray.from_arrays(
            np.arange(0, 2 * n + 1, 2, dtype=np.int32), pa.array(places.at.ravel())
        ),
        keywords=pa.ListArray.from_arrays(offsets, keywords),
    )
