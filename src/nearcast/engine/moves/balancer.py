"""Live balance on the driver: when to order statistics, what to decide, a record of it all.

It goes by batches and files like a plan (`engine.moves.planning`):

1. after a batch whose largest load is far above the mean, shards are ordered to write statistics;
2. at the end of the next batch each writes them down, and the router decides on them;
3. at the end of the batch after that, shards export what the new table puts elsewhere;
4. from the next batch on the new table holds. No batch waits for any of it.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nearcast.routing import Router
from nearcast.routing.arrays import unpack
from nearcast.routing.balance import PLAN, Balance, Change, Counts, Rest, imbalance
from nearcast.routing.orders import TABLE, Order
from nearcast.wire.durable import write_atomic

STATS = "stats"  # in an order: what shards shall write statistics for
HOLDS_AFTER = 2  # batches from a decision to the first one in which its table holds
NOTHING = "nothing"  # the kind of a decision to leave things as they are
LOG = "balance.jsonl"  # in the folder of results: every decision, a line each
_LOOKS = 200  # records of decisions that are kept
_LINES = 10_000  # of the log of decisions
_logger = logging.getLogger("nearcast.balance")


class Record(msgspec.Struct):
    """One adjustment, or one look that found nothing to gain: why, what, and what was expected."""

    batch: int
    kind: str
    loads: list[float]  # counted in the batch that it was decided on
    decisions: list[dict[str, Any]]
    expected_before: list[float]  # loads as the router estimates them
    expected_after: list[float]
    bounds: list[float]
    cells_before: list[list[int]]  # shard of each cell, -1: several, by text; lowest line first
    cells_after: list[list[int]]

    @property
    def changes(self) -> bool:
        """Whether anything changes by it."""
        return any(d["kind"] != NOTHING for d in self.decisions)

    def lines(self) -> list[dict[str, Any]]:
        """Its decisions, each a line of the log."""
        ratio = round(imbalance(self.loads), 3)
        head = {"batch": self.batch, "kind": self.kind, "imbalance": ratio}
        return [head | {"decision": d["kind"], "reason": d["reason"]} for d in self.decisions]


class Balancer:
    """What a run decides for the balance of its shards, and has decided."""

    def __init__(self, checkpoint: Path, balance: Balance) -> None:
        self.checkpoint = checkpoint
        self.folder = checkpoint / "balance"
        self.balance = balance

    def first_counts(self, batch: int, counts: dict[str, list[Counts]]) -> dict[str, list[Counts]]:
        """The counts of the first try of a batch: by them a repeated one decides the same.

        An index that was built anew since then has other lists, and so counts otherwise.
        """
        if not self.balance.on or not counts:
            return counts
        path = self.folder / "counts.bin"
        if path.exists():
            before, first = msgspec.msgpack.decode(
                path.read_bytes(), type=tuple[int, dict[str, list[Counts]]]
            )
            if before == batch:
                return first
        write_atomic(path, msgspec.msgpack.encode((batch, counts)))
        return counts

    def look(
        self, batch: int, kind: str, router: Router, counts: list[Counts], rest: Rest | None
    ) -> Order | None:
        """The order for statistics, or to go over to another table, if the router finds it time."""
        if not self.balance.on or not router.balances or len(counts) < 2:
            return None
        found = router.look(batch, counts, self.balance, rest)
        if found is None:
            self._path(batch, kind).unlink(missing_ok=True)
            return None
        if found.change is None:
            return {STATS: found.question}
        return self._change(batch, kind, router, counts, found.change)

    def decide(
        self, batch: int, kind: str, router: Router, order: str, reported: list[str],
        counts: list[Counts],
    ) -> tuple[Order, Rest | None]:  # fmt: skip
        """The order to export by a new table, or a rest where there is nothing to gain."""
        read = [unpack((self.checkpoint / path).read_bytes()) for path in reported]
        change = router.decide(order, read, counts, self.balance)
        if change is not None:
            return self._change(batch, kind, router, counts, change), None
        loads = [c.load for c in counts]
        ratio = imbalance(loads)
        rest = Rest(batch + 1 + self.balance.wait, ratio, order)
        what = "no new strategy" if order == PLAN else "no move"
        why = f"{what} is worth it at {ratio:.2f} times the mean; rest until batch {rest.until}"
        decision = {"kind": NOTHING, "reason": why, "before": loads, "after": loads}
        as_it_is = Change([decision], np.array(loads), np.array(loads), router.picture())
        self._keep(batch, kind, counts, as_it_is)
        return {}, rest

    def _change(
        self, batch: int, kind: str, router: Router, counts: list[Counts], change: Change
    ) -> Order:
        """Keep a record of a change; the order to export by its table."""
        self._keep(batch, kind, counts, change)
        name = f"plans/{batch:012d}-{kind}-balance.bin"
        if change.data:
            write_atomic(self.checkpoint / name, change.data)
        return {TABLE: router.table_after(change, name, batch + HOLDS_AFTER)}

    def _keep(self, batch: int, kind: str, counts: list[Counts], found: Change) -> None:
        """A record of an adjustment; a repeated batch writes the same again."""
        record = Record(
            batch,
            kind,
            [c.load for c in counts],
            found.decisions,
            found.before.tolist(),
            found.after.tolist(),
            *found.picture,
        )
        data = msgspec.json.encode(record)
        write_atomic(self._path(batch, kind), data)
        for decision in found.decisions:
            why = decision["reason"]
            _logger.info("batch %d, %s: %s: %s", batch, kind, decision["kind"], why)

    def _path(self, batch: int, kind: str) -> Path:
        return self.folder / f"{batch:012d}-{kind}.json"

    def looks(self) -> list[Record]:
        """All decisions so far, in order, those to do nothing included."""
        if not self.folder.is_dir():
            return []
        files = sorted(p for p in self.folder.iterdir() if p.suffix == ".json")
        return [msgspec.json.decode(p.read_bytes(), type=Record) for p in files]

    def records(self) -> list[Record]:
        """All adjustments so far, in order."""
        return [record for record in self.looks() if record.changes]

    def write_log(self, batch: int, out: Path) -> None:
        """Add what `batch` decided to the log in `out`; a repeated batch replaces its own lines."""
        made = sorted(self.folder.glob(self._path(batch, "*").name))
        if not made:
            return
        log = out / LOG
        reported = log.read_bytes().splitlines()[-_LINES:] if log.exists() else []
        lines = [line for line in map(msgspec.json.decode, reported) if line["batch"] < batch]
        for path in made:
            lines += msgspec.json.decode(path.read_bytes(), type=Record).lines()
        write_atomic(log, msgspec.json.Encoder().encode_lines(lines))


def forget_looks(checkpoint: Path) -> None:
    """Remove the records of old decisions; the log in the folder of results has them still."""
    folder = checkpoint / "balance"
    for path in sorted(folder.glob("*.json"))[:-_LOOKS]:
        path.unlink(missing_ok=True)
