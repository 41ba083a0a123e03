"""`nearcast bench range-index --spark`: PS2Stream's Q2 through the whole pipeline.

Standing queries, then objects with an insertion or deletion after every fifth, replayed to Parquet.
What was reported to a sample of the standing queries is compared with a look at every object.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.engine import Engine
from nearcast.engine.options.run_options import BATCH_EVENTS
from nearcast.index.base import wanted_words
from nearcast.kernels.ragged import gather
from nearcast.kinds import KINDS
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.wire.columns import decode_columns
from nearcast.wire.tables import lists
from nearcast.workload.corpora import TWEETS_US
from nearcast.workload.events import START_MS, write_parquet
from nearcast.workload.mix import mix
from nearcast_bench.common.figures import Figure
from nearcast_bench.common.replaying import batches_of, objects_of, plan_only, replay, write_warm

TUPLES = 100_000  # per second
_SAMPLED = 200  # queries


@dataclass(frozen=True, slots=True)
class Setting:
    """One run; the strategy is the default one unless it is named."""

    queries: int = 1_000_000
    objects: int = 1_000_000
    seed: int = 7
    batch_events: int = BATCH_EVENTS
    shards: int = 2
    strategy: str | None = None
    keep: str | None = None


def run_spark(setting: Setting, say: Callable[[str], None]) -> Iterator[Figure]:
    """Generate, replay, check, report."""
    folder = Path(setting.keep or tempfile.mkdtemp(prefix="nearcast-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        say(f"generating {setting.queries:,} queries and {setting.objects:,} objects …")
        parts = _write_log(setting, folder)
        say("replaying …")
        figure = _pipeline(setting, parts, folder)
        say("checking …")
        figure["checked"] = _check(parts[1], parts[2], folder / "out")
        yield figure
        rate = figure["tuples_per_second"]
        yield {
            "claim": "tuples per second through Spark",
            "value": rate,
            "target": TUPLES,
            "held": rate >= TUPLES,
        }
    finally:
        if not setting.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _write_log(setting: Setting, folder: Path) -> list[Path]:
    """A first log that does nothing, the standing queries, and the stream."""
    parts = [folder / n for n in ("0-warm.jsonl", "1-standing.parquet", "2-stream.parquet")]
    write_warm(parts[0], START_MS - 1)
    events = mix(
        TWEETS_US, setting.objects, setting.queries, np.random.default_rng(setting.seed), "Q2"
    )

    def standing() -> Iterator[pa.RecordBatch]:
        left = setting.queries
        while left > 0:
            batch = next(events)
            left -= batch.num_rows
            yield batch

    write_parquet(parts[1], standing())
    write_parquet(parts[2], events)
    return parts


def _pipeline(setting: Setting, parts: list[Path], folder: Path) -> Figure:
    """Figures of a replay; rates are those of the batches that are not full of standing queries."""
    strategies = {"range": setting.strategy} if setting.strategy else {}
    engine = Engine(
        quiet=True,
        master="local[2]",
        format="parquet",
        shards=setting.shards,
        strategies=strategies,
    )
    out, checkpoint = folder / "out", folder / "checkpoint"
    for stale in (out, checkpoint):
        shutil.rmtree(stale, ignore_errors=True)
    for part in parts:
        plan_only(engine, part, checkpoint, setting.batch_events)
    records, summary, _ = replay(engine, parts, out, setting.batch_events, checkpoint)
    stream = [r for r in records if r.reports[0].events.get("publish")]
    loading = [r for r in records[1:] if not r.reports[0].events.get("publish")]
    seconds = sum(r.seconds for r in stream)
    tuples = sum(sum(r.reports[0].events.values()) for r in stream)
    reported = sum(r.notifications for r in stream)
    copies = sum(load.objects for r in stream for load in r.loads())
    shards = range(setting.shards)
    return {
        "figure": "range-spark",
        "group": "Q2",
        "queries": setting.queries,
        "strategy": setting.strategy or "default",
        "shards": setting.shards,
        "copies_per_object": round(copies / setting.objects, 3),
        "tuples": tuples,
        "batches": len(stream),
        "notifications": reported,
        "notifications_per_object": round(reported / setting.objects, 2),
        "seconds": round(seconds, 2),
        "tuples_per_second": round(tuples / seconds),
        "notifications_per_second": round(reported / seconds),
        "standing_per_second": round(setting.queries / sum(r.seconds for r in loading)),
        "batch_seconds": [round(r.seconds, 2) for r in stream],
        "match_seconds": [
            round(sum(r.reports[s].match_seconds for r in stream), 2) for s in shards
        ],
        "shard_seconds": [round(sum(r.reports[s].seconds for r in stream), 2) for s in shards],
        "arena_bytes": summary["arena_bytes"],
        "state_bytes": summary["state_bytes"],
    }


def _check(standing: Path, stream: Path, out: Path) -> int:
    """Matches of a sample of queries that stand to the end; raises unless each came once."""
    chunk = next(batches_of(standing))
    ended = pq.read_table(stream, columns=["id"], filters=[("op", "=", "unsubscribe")])["id"]
    stays = pc.invert(pc.is_in(chunk["id"], pc.unique(ended)))
    some = chunk.filter(stays).slice(0, _SAMPLED)
    wanted = _truth(some, stream)
    ids = pc.unique(some["id"])
    reported: Counter[tuple[str, str]] = Counter()
    for path in sorted((out / "notifications").glob("*.parquet")):
        table = pq.read_table(path, columns=["id", "object"])
        mine = table.filter(pc.is_in(table["id"], ids))
        reported.update(zip(mine["id"].to_pylist(), mine["object"].to_pylist(), strict=True))
    if reported != wanted:
        lost, extra = wanted - reported, reported - wanted
        raise NearcastError(
            f"bench: wrong answer: {lost.total()} matches lost, {extra.total()} too many"
        )
    return wanted.total()


def _truth(events: pa.RecordBatch, stream: Path) -> Counter[tuple[str, str]]:
    """(query, object) of all matches, by looking at every object for every query."""
    controls = decode_columns(events, Space.GEOGRAPHIC, KINDS).of(KINDS["range"])
    boxes = lists(controls["region"], np.float64)[1].reshape(-1, 4)
    offsets, words, conjunction = wanted_words(controls)
    objects = objects_of(stream)
    names = objects.id_bytes.tobytes()
    lengths = np.diff(objects.word_offsets)
    found: Counter[tuple[str, str]] = Counter()
    for n, name in enumerate(controls["id"].to_pylist()):
        a, b, c, d = boxes[n]
        x, y = objects.x, objects.y
        near = np.flatnonzero((a <= x) & (x <= c) & (b <= y) & (y <= d))
        queried = words[offsets[n] : offsets[n + 1]]
        starts, held = gather(objects.words, objects.word_offsets[near], lengths[near])
        common = np.add.reduceat(np.append(np.isin(held, queried), False), starts[:-1])
        common[lengths[near] == 0] = 0
        for row in near[common >= (len(queried) if conjunction[n] else 1)]:
            start, stop = objects.id_offsets[row], objects.id_offsets[row + 1]
            found[name.decode(), names[start:stop].decode()] += 1
    return found
