"""What Spark promises a query, without Spark: versioned state, repeated batches, an ordered feed.

Runs the real route step, shard step and sink of the engine in this process, so that thousands of
batches and crashes cost seconds. The tests on Spark show that Spark keeps these promises.
"""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow.parquet as pq

from nearcast.engine.feed.source import Feed
from nearcast.engine.feed.starting import begins_with
from nearcast.engine.feed.tailer import Tailer
from nearcast.engine.moves.balancer import Balancer, Record
from nearcast.engine.moves.control import Controls
from nearcast.engine.options.settings import Settings
from nearcast.engine.shard.state import Manifest
from nearcast.kinds import KINDS, Kind
from nearcast.model.standing import FOREVER
from nearcast.testing.one_process import OneProcess
from nearcast.testing.oracle import Order, replay
from nearcast.wire.decode import Decoded
from nearcast.wire.logs import open_log
from nearcast.wire.plan import Planner
from nearcast.wire.read_split import read_split
from nearcast.wire.split import Split

Json = dict[str, Any]


@dataclass(slots=True)
class Miniature:
    """A run in a folder: `plan` a log, then `batch` after `batch`, any of them again."""

    settings: Settings
    folder: Path
    states: dict[int, list[Manifest]] = field(default_factory=dict)  # before each batch
    next: int = 0

    @property
    def run(self) -> OneProcess:
        return OneProcess(self.settings, self.folder)

    @property
    def checkpoint(self) -> Path:
        return self.run.checkpoint

    @property
    def out(self) -> Path:
        return self.run.out

    @property
    def arenas(self) -> Path:
        return self.settings.arena_root() / "run"

    def plan(self, log: Path, batch_events: int, splits: int = 2) -> int:
        """Plan a log behind what is planned; the number of batches in all."""
        feed, spool = Feed(self.checkpoint, self.settings.kinds_to_find), self.checkpoint / "spool"
        logs = [open_log(str(log), False, spool)]
        feed.begin_with(begins_with(logs, self.settings))
        for splits_ in Planner(logs, batch_events, splits, spool).batches():
            feed.add(len(feed), feed.with_kinds(splits_))
        return len(feed)

    def feed(self, events: Iterable[Json | str], batch_events: int, splits: int = 2) -> int:
        """Write a log and plan it in the order of the settings; the number of batches."""
        (self.folder / "in").mkdir(parents=True)
        log = write_log(self.folder / "in" / "log.jsonl", events)
        if self.settings.order == "time":
            return self.plan(log, batch_events, splits)
        kinds = self.settings.kinds_to_find
        Tailer([log.parent], self.checkpoint, batch_events, splits, kinds=kinds).poll()
        return len(Feed(self.checkpoint))

    def batch(self, n: int) -> None:
        """Run batch `n`; it counts only when the sink has returned."""
        before = self.states.get(n, [Manifest()] * self.settings.shards)
        planned = Feed(self.checkpoint).read(n)
        splits = [(self._read(split, number), split.final) for number, split in enumerate(planned)]
        self.states[n + 1] = self.run.batch(n, splits, before, planned[0].kinds).states
        self.next = n + 1

    def _read(self, split: Split, number: int) -> Decoded:
        chosen = self.settings
        return read_split(split, chosen.space, chosen.kinds, number, chosen.stored)

    def more(self, n: int) -> bool:
        """Whether there is a batch `n`; at the end of the log, one more for what waits for it."""
        feed = Feed(self.checkpoint, self.settings.kinds_to_find)
        if feed.has(n):
            return True
        if Controls(self.checkpoint, self.settings).first_results_wait(n):
            feed.add_empty(n)
        return feed.has(n)

    def finish(self) -> None:
        """All batches that are left."""
        while self.more(self.next):
            self.batch(self.next)

    def decided(self) -> list[Record]:
        """All decisions on the balance so far."""
        return Balancer(self.checkpoint, self.settings.balance).records()

    def kinds(self) -> Counter[str]:
        """How often each kind of decision on the balance was made."""
        return Counter(d["kind"] for record in self.decided() for d in record.decisions)


def run_log(
    folder: Path,
    events: Sequence[Json | str],
    settings: Settings,
    batch_events: int = 10,
    trouble: Random | None = None,
    splits: int = 2,
) -> Miniature:
    """Run a whole log and compare with the oracle; the run.

    With `trouble` some batches come again, some of them on lost arenas: they decide the same.
    """
    run = Miniature(settings, folder)
    run.feed(events, batch_events, splits)
    n = -1
    while run.more(n := n + 1):
        run.batch(n)
        if trouble and trouble.random() < 0.3:
            once = _plans(run.checkpoint)
            if trouble.random() < 0.3:
                shutil.rmtree(run.arenas)
            run.batch(n)
            again = _plans(run.checkpoint)  # some are forgotten by now
            assert again == {name: once[name] for name in again}
    order = cast(Order, settings.order)
    retain = settings.retain_ms or FOREVER  # of a log without asks it makes no difference
    if settings.archive:  # which has what is not retained
        retain = FOREVER
    right = expected(events, settings.space, order, settings.kinds, retain)
    why = difference(reported(run.out), right)
    assert not why, why
    assert len(list((run.checkpoint / "plans").glob("*"))) <= 10  # old tables are forgotten
    return run


def _plans(checkpoint: Path) -> dict[str, bytes]:
    """What was planned and decided, by file."""
    found = [*(checkpoint / "balance").glob("*"), *(checkpoint / "plans").glob("*")]
    return {p.name: p.read_bytes() for p in sorted(found)}


def write_log(path: Path, events: Iterable[Json | str]) -> Path:
    """A log of JSON lines."""
    lines = [e if isinstance(e, str) else json.dumps(e) for e in events]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def reported(out: Path) -> Counter[str]:
    """All notifications of a run, whatever their format."""
    found: Counter[str] = Counter()
    for path in sorted((out / "notifications").glob("*")):
        if path.suffix == ".parquet":
            rows = pq.read_table(path).to_pylist()
            found.update(as_text(_from_columns(row)) for row in rows)
        else:
            found.update(as_text(json.loads(line)) for line in path.read_text().splitlines())
    return found


def _from_columns(row: Json) -> Json:
    row = {k: v for k, v in row.items() if v is not None}
    return row | {
        name: json.loads(row[name]) for name in ("meta", "objects", "terms") if name in row
    }


def as_text(row: Json) -> str:
    """A notification, written so that equal ones are equal."""
    if row.get("distance") == math.inf:  # between places 1e200 apart; JSON has no number for it
        row = row | {"distance": None}
    if "objects" in row:
        row = row | {"objects": [json.loads(as_text(o)) for o in row["objects"]]}
    return json.dumps(row, sort_keys=True)


def refused(out: Path) -> list[Json]:
    """All rejects of a run, by file and line."""
    rows = [
        json.loads(line)
        for path in (out / "rejected").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return sorted(rows, key=lambda r: (r["file"], r["line"]))


def expected(
    events: Iterable[Json | str],
    space: str,
    order: Order = "time",
    kinds: Mapping[str, Kind] = KINDS,
    retain: int = FOREVER,
) -> Counter[str]:
    """What the oracle reports."""
    right = replay(events, space, order, kinds=kinds, retain=retain)
    return Counter(as_text(n) for n in right.notifications)


def difference(found: Counter[str], wanted: Counter[str]) -> str:
    """Why two notification logs differ, empty if they do not: short enough to be read."""
    lost, extra = wanted - found, found - wanted
    if not lost and not extra:
        return ""
    some = [f"lost {n}x {t}" for t, n in lost.most_common(5)]
    some += [f"extra {n}x {t}" for t, n in extra.most_common(5)]
    return f"{lost.total()} lost, {extra.total()} extra\n" + "\n".join(some)
