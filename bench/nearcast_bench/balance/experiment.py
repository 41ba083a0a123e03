"""`bench balance`: a hot spot that jumps, with and without live balance, on the engine's own steps.

The route step, every shard step and the sink of the engine run one after the other in this process:
with fewer cores than shards, only so can the time of each shard be reported. The time of a batch is
the processor time of its slowest shard, statistics and moves included (processor time, because
other work on the machine must not count); what Spark adds is the same with and without balance
(`--minutes` runs all of it together).
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.engine.moves.balancer import Balancer
from nearcast.engine.options.settings import Settings
from nearcast.engine.shard.state import Manifest
from nearcast.kernels.slots import SUBSCRIBE
from nearcast.model.space import Space
from nearcast.routing.balance import Balance, imbalance
from nearcast.testing.one_process import OneProcess
from nearcast.wire.decode import Decoded
from nearcast.wire.tables import ENDS, REGIONS, REJECTS, empty, join, numbers
from nearcast.workload.range_queries import (
    Places,
    Queries,
    object_table,
    subscribe_table,
    unsubscribe_table,
    word_hashes,
)
from nearcast.workload.shifting import Shifting

SPLITS = 2
EVEN, WITHIN = 1.3, 10  # the largest load over the mean, and batches after a jump until then
FASTER = 1.5
SAMPLED = 300  # subscriptions whose notifications are checked


@dataclass(frozen=True, slots=True)
class Setting:
    """One experiment."""

    stream: Shifting = field(default_factory=Shifting)
    batches: int = 60  # three jumps
    shards: int = 4
    strategies: tuple[str, ...] = ("ps2stream", "tornado")
    modes: tuple[str, ...] = ("off", "auto")
    balance: dict[str, Any] = field(default_factory=dict)


def splits_of(stream: Shifting, batch: int, hashes: NDArray[np.uint64]) -> list[Decoded]:
    """The events of a batch, all of one instant after the batch before: controls first."""
    controls = [empty(REGIONS)]
    now = np.int64(batch + 1)
    if batch == 0:
        standing = stream.standing()
        controls.append(_subscribes(standing, hashes, 0, now))
    if stream.churn and batch > 0:
        gone = stream.leaving(batch - 1)
        controls.append(unsubscribe_table(gone, np.full(len(gone), now)))
        first = stream.queries + (batch - 1) * stream.churn
        controls.append(_subscribes(stream.arriving(batch), hashes, first, now))
    places = stream.objects(batch)
    objects = object_table(places, hashes, np.full(stream.batch, now), first=batch * stream.batch)
    table = join(controls, REGIONS)
    table = table.set_column(0, REGIONS.field(0), pa.array(np.arange(table.num_rows)))
    begins = numbers(table["op"]) == SUBSCRIBE
    subscribes = {"range": table.filter(pa.array(begins))} if begins.any() else {}
    ends = table.filter(pa.array(~begins)).select(ENDS.names)
    events = Counter({"subscribe": table.num_rows, "publish": 0})
    none = empty(REJECTS)
    out = []
    for n in range(SPLITS):
        a, b = stream.batch * n // SPLITS, stream.batch * (n + 1) // SPLITS
        mine = (subscribes, ends) if n == 0 else ({}, empty(ENDS))
        part = objects.slice(a, b - a)
        counted = (events if n == 0 else Counter[str]()) + Counter({"publish": b - a})
        out.append(Decoded(part, *mine, none, int(now), counted))
    return out


def _subscribes(
    queries: Queries, hashes: NDArray[np.uint64], first: int, now: np.int64
) -> pa.RecordBatch:
    return subscribe_table(queries, hashes, first, np.full(len(queries.boxes), now))


class Running:
    """One run in a folder, batch by batch: seconds of the slowest shard, loads, moves."""

    def __init__(self, setting: Setting, strategy: str, mode: str, folder: Path) -> None:
        self.setting, self.strategy, self.mode = setting, strategy, mode
        self.settings = Settings(
            space=Space.PLANAR,
            shards=setting.shards,
            strategies={"range": strategy},
            only=("range",),  # else shards keep the window of kinds that perhaps are in use
            warmup=setting.stream.batch,
            balance=Balance.from_json({**setting.balance, "mode": mode}),
            arena=str(folder / "arena"),
        )
        self.process = OneProcess(self.settings, folder)
        self.states = [Manifest()] * setting.shards
        self.loads: list[list[float]] = []
        self.slowest: list[float] = []
        self.moved: list[int] = []
        self.moved_bytes: list[int] = []

    def batch(self, n: int, splits: list[Decoded], say: Callable[[str], None]) -> None:
        """Work batch n off."""
        final = [(split, False) for split in splits]
        self.states, reports, seconds = self.process.batch(n, final, self.states)
        self.loads.append([r.counts["range"].load for r in reports])
        self.slowest.append(max(seconds))
        self.moved.append(sum(r.moved for r in reports))
        self.moved_bytes.append(sum(r.moved_bytes for r in reports))
        each = ", ".join(f"{s:.3f}" for s in seconds)
        ratio = imbalance(self.loads[-1])
        say(f"{self.strategy} {self.mode} batch {n}: {ratio:.2f}; seconds {each}")

    def figure(self) -> dict[str, Any]:
        """What came out, and whether it was right; the first phase has the start and the plan."""
        setting, stream = self.setting, self.setting.stream
        records = Balancer(self.process.checkpoint, self.settings.balance).records()
        timed, jumps = self.slowest[stream.phase :], (setting.batches - 1) // stream.phase
        kinds = Counter(d["kind"] for r in records for d in r.decisions)
        ratios = [imbalance(x) for x in self.loads]
        moved = sum(self.moved[stream.phase :])
        return {
            "bench": "balance",
            "strategy": self.strategy,
            "balance": self.mode,
            "shards": setting.shards,
            "subscriptions": stream.queries,
            "objects": stream.batch * setting.batches,
            "batch_objects": stream.batch,
            "phase_batches": stream.phase,
            "jumps": jumps,
            "objects_per_second": round(stream.batch * len(timed) / sum(timed)),
            "imbalance_after_jump": after_jumps(ratios, stream.phase),
            "adjustments": len(records),
            "decisions": dict(kinds),
            "moved": moved,
            "moved_bytes": sum(self.moved_bytes[stream.phase :]),
            "moved_share_a_jump": round(moved / max(jumps, 1) / stream.queries, 3),
            "wrong_notifications": check(
                stream, setting.batches, self.process.out / "notifications"
            ),
        }


def _load(setting: Setting, strategy: str, folder: Path, hashes: NDArray[np.uint64]) -> None:
    """Run something small, so that no batch waits for kernels; the engine does so at its start."""
    stream = Shifting(queries=400, batch=300, phase=3, side_max=0.2, churn=setting.stream.churn)
    small = replace(setting, stream=stream, balance={"least": 0, "threshold": 1.0, "beta": 0.0})
    running = Running(small, strategy, "auto", folder)
    for n in range(3 * stream.phase):
        running.batch(n, splits_of(stream, n, hashes), lambda _: None)


def measure(
    setting: Setting, strategy: str, say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """All modes side by side, batch by batch: what the machine does else falls on all of them."""
    hashes = word_hashes()
    with tempfile.TemporaryDirectory(prefix="nearcast-balance-") as folder:
        _load(setting, strategy, Path(folder, "first"), hashes)
        running = [Running(setting, strategy, m, Path(folder, m)) for m in setting.modes]
        for n in range(setting.batches):
            splits = splits_of(setting.stream, n, hashes)
            for one in running if n % 2 == 0 else running[::-1]:
                one.batch(n, splits, say)
        for one in running:
            yield one.figure()


def after_jumps(ratios: list[float], phase: int) -> list[float]:
    """By batches after a jump: the worst over all jumps but the start."""
    jumps = [ratios[i : i + phase] for i in range(phase, len(ratios), phase)]
    return [round(max(j[n] for j in jumps if n < len(j)), 3) for n in range(max(map(len, jumps)))]


def check(stream: Shifting, batches: int, folder: Path) -> int:
    """Notifications of a sample of subscriptions that a scan of all objects does not have, or
    the other way round."""
    wanted: Counter[tuple[str, str]] = Counter()
    rng = np.random.default_rng([stream.seed, 9])
    total = stream.queries + stream.churn * (batches - 1)
    sample = np.sort(rng.choice(total, min(SAMPLED, total), replace=False))
    known = _known(stream, batches, sample)
    for n in range(batches):
        places = stream.objects(n)
        for number, (box, words, begins, ends) in known.items():
            if begins <= n < ends:
                for row in _inside(places, box, words):
                    wanted[str(number), str(n * stream.batch + row)] += 1
    names = {str(n) for n in sample.tolist()}
    reported: Counter[tuple[str, str]] = Counter()
    for path in sorted(folder.glob("*.jsonl")):
        with path.open() as file:
            for line in file:
                if line[7 : line.index('"', 7)] in names:  # after {"id":"
                    note = json.loads(line)
                    reported[note["id"], note["object"]] += 1
    return ((reported - wanted) + (wanted - reported)).total()


_Known = tuple[NDArray[np.float64], NDArray[np.int64], int, int]


def _known(stream: Shifting, batches: int, sample: NDArray[np.int64]) -> dict[int, _Known]:
    """Box, words, first and last batch of each sampled subscription."""
    out: dict[int, _Known] = {}
    standing = stream.standing()
    for number in sample.tolist():
        if number < stream.queries:
            queries, row, begins = standing, number, 0
        else:
            begins, row = divmod(number - stream.queries, stream.churn)
            begins += 1
            queries = stream.arriving(begins)
        words = queries.words[row]
        ends = number // stream.churn + 1 if stream.churn else batches
        out[number] = queries.boxes[row], words[words >= 0], begins, ends
    return out


def _inside(places: Places, box: NDArray[np.float64], words: NDArray[np.int64]) -> list[int]:
    x, y = places.at[:, 0], places.at[:, 1]
    rows = np.flatnonzero((x >= box[0]) & (y >= box[1]) & (x <= box[2]) & (y <= box[3]))
    found: list[int] = rows[
        [bool(np.isin(words, places.words[row]).all()) for row in rows.tolist()]
    ].tolist()
    return found


def run(setting: Setting, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """All strategies with all modes; last, for each strategy, whether balance is worth it."""
    for strategy in setting.strategies:
        started = time.perf_counter()
        figures = {}
        for figure in measure(setting, strategy, say):
            figures[figure["balance"]] = figure
            yield figure
        say(f"{strategy}: {time.perf_counter() - started:.0f} s")
        if "off" in figures:
            for mode in [m for m in setting.modes if m != "off"]:
                yield verdict(figures["off"], figures[mode])


def verdict(off: dict[str, Any], on: dict[str, Any]) -> dict[str, Any]:
    """Throughput with balance over that without, and how soon shards are even."""
    ratio = on["objects_per_second"] / off["objects_per_second"]
    late = max(on["imbalance_after_jump"][WITHIN:], default=None)
    return {
        "bench": "balance",
        "strategy": on["strategy"],
        "balance": on["balance"],
        "times_faster": round(ratio, 2),
        "fast_enough": ratio >= FASTER,
        "worst_imbalance_from_10_batches_on": late,
        "even_enough": late is not None and late <= EVEN,
    }
