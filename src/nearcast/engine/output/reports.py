"""What a run did: one record per batch, and the summary over all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from nearcast.engine.formats import check_format
from nearcast.engine.moves.balancer import HOLDS_AFTER, Record
from nearcast.engine.options.settings import Settings
from nearcast.engine.output.totals import Totals
from nearcast.engine.shard.report import Report
from nearcast.routing import Load
from nearcast.routing.balance import Balance, imbalance
from nearcast.wire.durable import write_atomic


class BatchRecord(msgspec.Struct):
    """One batch, all shards."""

    batch: int
    seconds: float  # since the batch before it ended
    reports: list[Report]
    manifests: dict[int, bytes] = {}  # of the shards, after the batch, where files remember them

    @property
    def events(self) -> int:
        """Events of the batch, refused ones included."""
        return sum(sum(r.events.values()) for r in self.reports)

    @property
    def notifications(self) -> int:
        """Notifications of the batch."""
        return sum(sum(r.notifications.values()) for r in self.reports)

    def loads(self) -> list[Load]:
        """For routers that move subscriptions."""
        return [
            Load(r.shard, r.subscriptions, r.objects, r.examined, r.seconds) for r in self.reports
        ]


class Reports:
    """The records of a checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self.folder = checkpoint / "reports"

    def add(self, record: BatchRecord) -> None:
        """Keep a record; a repeated batch replaces its own."""
        lean = [
            msgspec.structs.replace(
                r, exports=[], parts={}, files=dict.fromkeys(r.files, ""), manifest=b""
            )
            for r in record.reports
        ]
        data = msgspec.json.encode(msgspec.structs.replace(record, reports=lean))
        write_atomic(self._path(record.batch), data)

    def _path(self, batch: int) -> Path:
        return self.folder / f"{batch:012d}.json"

    def kept(self) -> list[int]:
        """The batches whose records are kept, in order."""
        try:
            names = [path.name for path in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        numbers = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return sorted(int(number) for number in numbers if number.isdigit())

    def count(self) -> int:
        """How many batches are done."""
        return max([n + 1 for n in self.kept()], default=0)

    def all(self) -> list[BatchRecord]:
        """The records that are kept and in no sum, in order."""
        first = self.folded().batches
        return [self.read(n) for n in self.kept() if n >= first]

    def read(self, batch: int) -> BatchRecord:
        """The record of a batch."""
        return msgspec.json.decode(self._path(batch).read_bytes(), type=BatchRecord)

    def folded(self) -> Totals:
        """The sums over all batches whose records need not be kept."""
        path = self.folder / "totals"
        if not path.exists():
            return Totals()
        values = msgspec.json.decode(path.read_bytes())
        check_format(path, values)
        return msgspec.convert(values, Totals, strict=False)  # JSON has no whole numbers as keys

    def totals(self) -> Totals:
        """The sums over all batches."""
        return self.folded().add(self.all())

    def fold(self, before: int) -> None:
        """Add the records of batches before that one to the sums, and remove them."""
        kept = self.kept()
        totals = self.folded()
        old = [n for n in kept if n < min(before, kept[-1])]
        fresh = [n for n in old if n >= totals.batches]
        if fresh:
            totals.add(self.read(n) for n in fresh)
            write_atomic(self.folder / "totals", msgspec.json.encode(totals))
        for n in old:
            self._path(n).unlink(missing_ok=True)


def loads_by_batch(records: list[BatchRecord], kind: str) -> dict[int, list[float]]:
    """The counted load of each shard in each batch, as far as it had events."""
    return {
        r.batch: [p.counts[kind].load for p in r.reports]
        for r in records
        if r.reports and all(kind in p.counts for p in r.reports)
    }


def describe_balance(
    looks: Sequence[Record], records: list[BatchRecord], balance: Balance
) -> dict[str, Any]:
    """What was done for the balance, with loads as they were counted and as they became."""
    by_batch = {r.batch: r for r in records}
    reported = []
    for a in looks:
        if not a.changes:
            continue
        loads = loads_by_batch(records, a.kind)
        exporting = by_batch.get(a.batch + 1)
        after = loads.get(a.batch + HOLDS_AFTER)
        reported.append(
            {
                "batch": a.batch,
                "holds_from": a.batch + HOLDS_AFTER,
                "kind": a.kind,
                "loads_before": a.loads,
                "loads_expected": a.expected_after,
                "loads_after": after,
                "imbalance_before": round(imbalance(a.loads), 3),
                "imbalance_expected": round(imbalance(a.expected_after), 3),
                "imbalance_after": round(imbalance(after), 3) if after else None,
                "moved": sum(r.moved for r in exporting.reports) if exporting else 0,
                "bytes": sum(r.moved_bytes for r in exporting.reports) if exporting else 0,
                "decisions": a.decisions,
            }
        )
    left = [line for look in looks if not look.changes for line in look.lines()]
    return {**balance.to_json(), "adjustments": reported, "left_alone": left}


def summarise(
    records: list[BatchRecord],
    seconds: float,
    settings: Settings,
    looks: Sequence[Record] = (),
    done: int = 0,
    folded: Totals | None = None,
    read_before: int | None = None,
) -> dict[str, Any]:
    """`summary.json` (docs/spec.md section 7), over all batches of a checkpoint.

    `seconds`, and so the rate, are of this call: of the batches after the first `done`. `folded`
    are sums over batches before those of `records`; `read_before` are the events of the first
    `done`, if that is known.
    """
    if read_before is None:
        read_before = sum(record.events for record in records[:done])
    sums = (folded or Totals()).add(records)
    reported: dict[str, dict[str, int]] = {}
    for name, n in sums.notifications.items():
        kind, _, event = name.partition(".")
        reported.setdefault(kind, {})[event] = n
    last = {r.shard: r for r in records[-1].reports} if records else {}
    events = {op: n for op, n in sorted(sums.events.items()) if op != "reject"}
    rejects, ran = sums.rejects, sums.read - read_before
    total = sum(events.values()) + rejects
    return {
        "events": {**events, "rejected": rejects, "total": total},
        "notifications": {
            **{k: dict(sorted(v.items())) for k, v in sorted(reported.items())},
            "total": sum(sum(v.values()) for v in reported.values()),
        },
        "rejects": rejects,
        "rejects_by_kind": dict(sorted(sums.reject_kinds.items())),
        "seconds": round(seconds, 3),
        "events_per_second": round(ran / seconds, 1) if seconds > 0 else None,
        "batches": sums.batches,
        "resumed_after_batches": done,
        "shards": [
            {
                "shard": shard,
                "subscriptions": last[shard].subscriptions if shard in last else 0,
                **{k: round(v, 3) for k, v in load.items()},
                "state_bytes": last[shard].state_bytes if shard in last else 0,
                "arena_bytes": last[shard].arena_bytes if shard in last else 0,
            }
            for shard, load in sorted(sums.loads.items())
        ],
        "state_bytes": sum(r.state_bytes for r in last.values()),
        "arena_bytes": sum(r.arena_bytes for r in last.values()),
        "balance": describe_balance(looks, records, settings.balance),
        "settings": settings.to_json(),
    }


def write_summary(out: Path, summary: dict[str, Any]) -> None:
    """`DIR/summary.json`."""
    write_atomic(out / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())
