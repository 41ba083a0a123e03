"""Live balance on the driver: when to ask shards, what to decide, and a record of each decision.

It goes by batches and files like a plan (`engine.planning`):

1. after a batch whose largest load is too far above the mean, shards are asked for statistics;
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

from nearcast.engine.files import write_atomic
from nearcast.engine.planning import TABLE, table_order
from nearcast.routing import GridRouter, Router
from nearcast.routing.balance import (
    AUTO,
    GLOBAL,
    LOCAL,
    Adjustment,
    Balance,
    CanBalance,
    CanReplan,
    Counts,
    imbalance,
)
from nearcast.routing.dkm.arrays import unpack
from nearcast.routing.grid.both import Both, pack_both
from nearcast.routing.grid.cells import refined
from nearcast.routing.grid.table import GridTable, pack
from nearcast.routing.ps2stream.adjust.decisions import RETIRE
from nearcast.routing.ps2stream.adjust.strategies import Strategies, retire
from nearcast.wire.tables import KINDS

STATS = "stats"  # in an order: shards shall write statistics, of CELLS or for a PLAN
CELLS, PLAN = "cells", "plan"
HOLDS_AFTER = 2  # batches from a decision to the first one in which its table holds
NOTHING = "nothing"  # the kind of a decision to leave things as they are
LOG = "balance.jsonl"  # in the folder of results: every decision, a line each
_DRAWN = 64  # cells along each axis that a record keeps of a table, at most


_logger = logging.getLogger("nearcast.balance")


class Rest(msgspec.Struct):
    """A look that found nothing to do: none is taken until then, unless loads get worse."""

    until: int
    ratio: float  # largest load over the mean
    order: str = CELLS  # what it looked at


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
    ) -> dict[str, Any] | None:
        """The order to ask shards, if their loads differ too much or a new strategy is due.

        While two strategies are in use: the order that ends the old one, if it is time.
        """
        if not self.balance.on or not isinstance(router, CanBalance) or len(counts) < 2:
            return None
        assert isinstance(router, GridRouter)
        loads = [c.load for c in counts]
        ratio = imbalance(loads)
        uneven = max(loads) >= self.balance.least and ratio > self.balance.threshold
        if router.old is not None:
            return self._end_old(batch, kind, router, counts, ratio if uneven else 0.0)
        replans = isinstance(router, CanReplan) and self.balance.mode != LOCAL
        age = batch - router.both.since
        # Something may have been moving when it was due; then it is looked at a little later.
        late = age % self.balance.every if age >= self.balance.every else self.balance.every
        due = late <= min(self.balance.wait, self.balance.every - 1)
        looked = rest is not None and rest.order == PLAN and batch < rest.until
        if replans and due and not looked:
            return {STATS: PLAN}
        resting = rest is not None and batch < rest.until and ratio < 1.1 * rest.ratio
        if not uneven or resting:
            return None
        return {STATS: PLAN if replans and self.balance.mode == GLOBAL else CELLS}

    def _end_old(
        self, batch: int, kind: str, router: GridRouter, counts: list[Counts], uneven: float
    ) -> dict[str, Any] | None:
        """Let the old strategy go when it has few subscriptions, has had its time, or is in the
        way of a local adjustment."""
        assert router.grid is not None
        held, old = sum(c.held for c in counts), sum(c.old for c in counts)
        loads = [c.load for c in counts]
        few = retire(Strategies(1, 0), old, held, 0, self.balance.few, np.array(loads))
        if few is not None:
            why = few.reason
        elif batch + 1 - router.both.since >= self.balance.every:
            why = f"{old} of {held} subscriptions are left after {self.balance.every} batches"
        elif uneven and self.balance.mode == AUTO:
            why = (
                f"the largest load is {uneven:.2f} times the mean; {old} of {held} subscriptions "
                "of the old strategy move, then the new one is adjusted"
            )
        else:
            self._path(batch, kind).unlink(missing_ok=True)
            return None
        self._keep_as_it_is(batch, kind, counts, router.grid, RETIRE, why)
        both = msgspec.structs.replace(router.both, old=b"")
        return {TABLE: pack_both(both)}

    def decide(
        self, batch: int, kind: str, router: Router, order: str, told: list[str],
        counts: list[Counts],
    ) -> dict[str, Any] | Rest:  # fmt: skip
        """The order to export by a new table, or a rest where there is nothing to gain."""
        assert isinstance(router, GridRouter)
        assert router.grid is not None
        read = [unpack(Path(p).read_bytes()) for p in told]
        if order == PLAN:
            assert isinstance(router, CanReplan)
            found = router.replan(read, counts, self.balance)
        else:
            assert isinstance(router, CanBalance)
            found = router.rebalance(read, counts, self.balance)
        if found is None:
            ratio = imbalance([c.load for c in counts])
            rest = Rest(batch + 1 + self.balance.wait, ratio, order)
            what = "no new strategy" if order == PLAN else "no move"
            why = f"{what} is worth it at {ratio:.2f} times the mean; rest until batch {rest.until}"
            self._keep_as_it_is(batch, kind, counts, router.grid, NOTHING, why)
            return rest
        self._keep(batch, kind, counts, router.grid, found.table, found)
        path = self.checkpoint / "plans" / f"{batch:012d}-{kind}-balance.bin"
        made = table_order(pack(found.table), path)
        if order == PLAN:  # it moves nobody: what is there stays with the old table
            parity, since = not router.both.parity, batch + HOLDS_AFTER
            both = Both(made[TABLE], router.both.new, parity, since)
        else:
            both = msgspec.structs.replace(router.both, new=made[TABLE])
        return {TABLE: pack_both(both)}

    def _keep_as_it_is(
        self, batch: int, kind: str, counts: list[Counts], table: GridTable, what: str, why: str
    ) -> None:
        """A record of a decision after which cells and words stay where they are."""
        loads = [c.load for c in counts]
        decision = {"kind": what, "reason": why, "before": loads, "after": loads}
        found = Adjustment(table, [decision], np.array(loads), np.array(loads))
        self._keep(batch, kind, counts, table, table, found)

    def _keep(
        self,
        batch: int,
        kind: str,
        counts: list[Counts],
        before: GridTable,
        after: GridTable,
        found: Adjustment,
    ) -> None:
        """A record of an adjustment; a repeated batch writes the same again."""
        record = Record(
            batch,
            kind,
            [c.load for c in counts],
            found.decisions,
            found.before.tolist(),
            found.after.tolist(),
            before.bounds.tolist(),
            drawn(refined(before, len(after.cells))),
            drawn(after),
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
        made = [path for kind in KINDS if (path := self._path(batch, kind)).exists()]
        if not made:
            return
        log = out / LOG
        told = log.read_bytes().splitlines() if log.exists() else []
        lines = [line for line in map(msgspec.json.decode, told) if line["batch"] < batch]
        for path in made:
            lines += msgspec.json.decode(path.read_bytes(), type=Record).lines()
        write_atomic(log, msgspec.json.Encoder().encode_lines(lines))


def drawn(table: GridTable) -> list[list[int]]:
    """The shard of each cell for a picture, every n-th cell of a fine grid."""
    step = -(-len(table.cells) // _DRAWN)
    cells: list[list[int]] = np.maximum(table.cells[::step, ::step], -1).tolist()
    return cells
