"""`nearcast bench past`: what it costs to retain objects, to ask about them, and to restart.

Standing range queries, then objects, from Parquet; once retaining nothing, once retaining all, in
turn. Then, from the checkpoint of the last run, batches of asks beside batches of nothing. Answers
are compared with a look at every object first.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.engine import Engine
from nearcast.engine.output.reports import BatchRecord
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space, distance
from nearcast.workload import generate
from nearcast_bench.common.figures import Figure, Say
from nearcast_bench.common.replaying import by_kind, plan_only, replay, split_log

STORED_A_SECOND, ASKS_SECONDS = 150_000, 0.3
_AREA = 1e-4  # of the whole of it: regions of asks
_K = 10
_CHECKED = 20  # asks of each kind
_ALL_MS = 10**15


@dataclass(frozen=True, slots=True)
class Setting:
    """One run."""

    objects: int = 1_000_000
    subscriptions: int = 200_000
    asks: int = 200
    rounds: int = 3
    seed: int = 7
    batch_events: int | None = None


def run_past(setting: Setting, keep: str | None, say: Say) -> Iterator[Figure]:
    """Run the experiment; one figure at a time."""
    folder = Path(keep or tempfile.mkdtemp(prefix="nearcast-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        say("generating the workload …")
        parts = [folder / n for n in ("0-warm.jsonl", "1-subscribes.parquet", "2-objects.parquet")]
        log = folder / "all.parquet"
        generate("pipeline", setting.objects, setting.subscriptions, setting.seed, log)
        split_log(log, *parts)
        yield from _storing(setting, parts, folder, say)
        yield from _asking(setting, parts[2], folder, say)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _engine(retain: str) -> Engine:
    return Engine(quiet=True, master="local[2]", retain=retain)


def _storing(setting: Setting, parts: list[Path], folder: Path, say: Say) -> Iterator[Figure]:
    """Objects a second with and without a memory of them."""
    rates: dict[str, list[int]] = {"off": [], "all": []}
    bytes_each = 0.0
    for n in range(setting.rounds):
        for retain, found in rates.items():
            say(f"round {n + 1}: retaining {retain} …")
            engine, checkpoint = _engine(retain), folder / "checkpoint"
            for stale in (folder / "out", checkpoint):
                shutil.rmtree(stale, ignore_errors=True)
            for part in parts:
                plan_only(engine, part, checkpoint, setting.batch_events)
            records, summary, _ = replay(
                engine, parts, folder / "out", setting.batch_events, checkpoint
            )
            _, objects = by_kind(records)
            done = sum(r.reports[0].events["publish"] for r in objects)
            found.append(round(done / sum(r.seconds for r in objects)))
            if retain == "off":
                bytes_each = -summary["arena_bytes"]
            else:
                bytes_each = (bytes_each + summary["arena_bytes"]) / setting.objects
    off, stored = (statistics.median(rates[name]) for name in ("off", "all"))
    yield {
        "figure": "stored_objects_per_second",
        "value": stored,
        "rounds": rates["all"],
        "without_retaining": rates["off"],
        "ratio": round(stored / off, 3),
        "arena_bytes_per_object": round(bytes_each, 1),
        "objects": setting.objects,
        "subscriptions": setting.subscriptions,
    }
    yield _claim("stored_objects_per_second", stored, STORED_A_SECOND, stored >= STORED_A_SECOND)


def _asking(setting: Setting, objects: Path, folder: Path, say: Say) -> Iterator[Figure]:
    """Batches of asks beside batches of nothing, behind the last run, which retained all."""
    table = pq.read_table(objects, columns=["id", "time", "at", "keywords"]).combine_chunks()
    now = table["time"][-1].as_py() + 1
    engine, checkpoint = _engine("all"), folder / "checkpoint"
    asked: list[dict[str, Any]] = []
    for n in range(setting.rounds + 1):  # in the first batches stores are rebuilt
        nothing = folder / f"3-nothing-{n}.jsonl"
        nothing.write_text(json.dumps({"op": "unsubscribe", "id": "nobody", "time": now}) + "\n")
        asks = _asks(setting, table, now, n)
        path = folder / f"3-nothing-{n}-asks.jsonl"
        path.write_text("".join(json.dumps(ask) + "\n" for ask in asks))
        asked += asks
        for part in (nothing, path):
            plan_only(engine, part, checkpoint, setting.batch_events)
    say(f"{len(asked)} asks in {setting.rounds + 1} batches …")
    logs = sorted(folder.glob("3-nothing-*"))
    records, _, _ = replay(engine, logs, folder / "out", setting.batch_events, checkpoint)
    _check(table, asked, folder / "out", say)
    empty, full = records[2::2], records[3::2]
    batch_of_nothing, batch_of_asks = (
        statistics.median(r.seconds for r in some) for some in (empty, full)
    )
    yield {
        "figure": "restart_seconds",
        "value": round(max(r.attach_seconds for r in records[0].reports), 2),
        "rebuilt": [r.rebuilt for r in records[0].reports],
        "objects": setting.objects,
    }
    more = round(batch_of_asks - batch_of_nothing, 3)
    yield {
        "figure": "asks_batch_seconds",
        "value": more,
        "with_asks": _seconds(full),
        "with_nothing": _seconds(empty),
        "asks": setting.asks,
        "objects": setting.objects,
    }
    yield _claim("asks_batch_seconds", more, ASKS_SECONDS, more <= ASKS_SECONDS)


def _seconds(records: list[BatchRecord]) -> list[float]:
    return [round(r.seconds, 3) for r in records]


def _claim(name: str, value: float, target: float, held: bool) -> Figure:
    return {"claim": name, "value": value, "target": target, "held": bool(held)}


def _asks(setting: Setting, table: pa.Table, now: int, seed: int) -> list[dict[str, Any]]:
    """Asks at places of objects, with a word of theirs."""
    rng = np.random.default_rng([setting.seed, seed])
    rows = table.take(pa.array(rng.integers(0, len(table), setting.asks))).to_pylist()
    side = (360 * 180 * _AREA) ** 0.5 / 2
    asks = []
    for n, row in enumerate(rows):
        x, y = row["at"]
        where = f'"{row["keywords"][0]}"' if row["keywords"] else ""
        if n % 2:
            query: dict[str, Any] = {"kind": "knn", "at": [x, y], "k": _K, "where": where}
        else:
            box = [max(x - side, -180), max(y - side, -90), min(x + side, 180), min(y + side, 90)]
            query = {"kind": "range", "region": {"bbox": box}, "where": where}
        asks.append(
            {"op": "ask", "id": f"q{seed}-{n}", "time": now, "last": _ALL_MS, "query": query}
        )
    return asks


def _check(table: pa.Table, asked: list[dict[str, Any]], out: Path, say: Say) -> None:
    """Raise unless answers are what a look at every object finds."""
    say("checking …")
    answers = {}
    for path in (out / "notifications").glob("*-answers.jsonl"):
        for line in path.read_text().splitlines():
            answer = json.loads(line)
            answers[answer["id"]] = answer["objects"]
    if answers.keys() != {ask["id"] for ask in asked}:
        raise NearcastError(f"bench: {len(answers)} answers to {len(asked)} asks")
    posts = _Posts(table)
    for ask in asked[: 2 * _CHECKED]:
        if [o["id"] for o in answers[ask["id"]]] != posts.answer(ask["query"]):
            raise NearcastError(f"bench: wrong answer to {json.dumps(ask)}")


class _Posts:
    """All posts as flat arrays, for a look at every one of them."""

    def __init__(self, table: pa.Table) -> None:
        table = table.combine_chunks()
        at, held = (_one(table[name]) for name in ("at", "keywords"))
        self._ids = table["id"]
        self._x, self._y = at.flatten().to_numpy().reshape(-1, 2).T
        words = held.flatten().dictionary_encode()
        self._words = words.dictionary
        self._codes = words.indices.to_numpy()
        self._owner = np.repeat(np.arange(len(table)), np.diff(held.offsets.to_numpy()))

    def answer(self, query: dict[str, Any]) -> list[str]:
        """The ids that it asks for."""
        has = np.arange(len(self._x))
        if word := query["where"].strip('"'):
            code = pa.compute.index(self._words, word).as_py()
            has = np.unique(self._owner[self._codes == code])
        x, y = self._x[has], self._y[has]
        if query["kind"] == "range":
            west, south, east, north = query["region"]["bbox"]
            rows = has[(west <= x) & (x <= east) & (south <= y) & (y <= north)]
        else:
            rows = np.array(_nearest(query["at"], has, x, y), np.int64)
        found: list[str] = self._ids.take(pa.array(rows)).to_pylist()
        return found


def _one(column: pa.ChunkedArray) -> pa.ListArray:
    """A column of lists as one array whose offsets begin at 0."""
    chunks = column.chunks
    return pa.concat_arrays(chunks) if len(chunks) != 1 or chunks[0].offset else chunks[0]


def _nearest(
    centre: list[float], has: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]
) -> list[int]:
    """The posts nearest to a place; those about as near as the k-th are looked at exactly."""
    lon, lat = centre
    dx, dy, to, of = (np.radians(v) for v in (x - lon, y - lat, y, lat))
    h = np.sin(dy / 2) ** 2 + np.cos(of) * np.cos(to) * np.sin(dx / 2) ** 2
    kth = np.partition(h, _K - 1)[_K - 1] if len(h) > _K else np.inf
    near = np.flatnonzero(h <= kth * (1 + 1e-6) + 1e-18)
    code = Space.GEOGRAPHIC.code
    found = sorted((float(distance(code, lon, lat, x[n], y[n])), int(has[n])) for n in near)
    return [n for _, n in found[:_K]]
