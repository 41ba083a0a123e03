"""Live balance on the driver: when to ask shards, what to decide, and a record of each decision.

It goes by batches and files like a plan (`engine.planning`):

1. after a batch whose largest load is too far above the mean, shards are asked for statistics;
2. at the end of the next batch each writes them down, and the router decides on them;
3. at the end of the batch after that, shards export what the new table puts elsewhere;
4. from the next batch on the new table holds. No batch waits for any of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nearcast.engine.files import write_atomic
from nearcast.engine.planning import table_order
from nearcast.routing import GridRouter, Router
from nearcast.routing.balance import Balance, CanBalance, Counts, imbalance
from nearcast.routing.dkm.arrays import unpack
from nearcast.routing.grid.cells import refined
from nearcast.routing.grid.table import GridTable, pack

STATS = "stats"  # in an order: shards shall write statistics
HOLDS_AFTER = 2  # batches from a decision to the first one in which its table holds
_DRAWN = 64  # cells along each axis that a record keeps of a table, at most


class Rest(msgspec.Struct):
    """A look that found nothing to do: none is taken until then, unless loads get worse."""

    until: int
    ratio: float  # largest load over the mean


class Record(msgspec.Struct):
    """One adjustment: why, what, and what was expected of it."""

    batch: int
    kind: str
    loads: list[float]  # counted in the batch that it was decided on
    decisions: list[dict[str, Any]]
    expected_before: list[float]  # loads as the router estimates them
    expected_after: list[float]
    bounds: list[float]
    cells_before: list[list[int]]  # shard of each cell, -1: several, by text; lowest line first
    cells_after: list[list[int]]


class Balancer:
    """What a run decides for the balance of its shards, and has decided."""

    def __init__(self, checkpoint: Path, balance: Balance) -> None:
        self.checkpoint = checkpoint
        self.folder = checkpoint / "balance"
        self.balance = balance

    def look(
        self, batch: int, router: Router, counts: list[Counts], rest: Rest | None
    ) -> dict[str, Any] | None:
        """The order to ask shards, if their loads differ too much."""
        loads = [c.load for c in counts]
        if not self.balance.on or not isinstance(router, CanBalance) or len(loads) < 2:
            return None
        ratio = imbalance(loads)
        if max(loads) < self.balance.least or ratio <= self.balance.threshold:
            return None
        if rest and batch < rest.until and ratio < 1.1 * rest.ratio:
            return None
        return {STATS: True}

    def decide(
        self, batch: int, kind: str, router: Router, told: list[str], counts: list[Counts]
    ) -> dict[str, Any] | Rest:
        """The order to export by a new table, or a rest where there is nothing to gain."""
        assert isinstance(router, CanBalance)
        assert isinstance(router, GridRouter)
        assert router.grid is not None
        path = self._path(batch, kind)
        found = router.rebalance([unpack(Path(p).read_bytes()) for p in told], counts, self.balance)
        if found is None:
            path.unlink(missing_ok=True)
            ratio = imbalance([c.load for c in counts])
            return Rest(batch + 1 + self.balance.wait, ratio)
        record = Record(
            batch,
            kind,
            [c.load for c in counts],
            found.decisions,
            found.before.tolist(),
            found.after.tolist(),
            router.grid.bounds.tolist(),
            drawn(refined(router.grid, len(found.table.cells))),
            drawn(found.table),
        )
        write_atomic(path, msgspec.json.encode(record))
        name = f"{batch:012d}-{kind}-balance.bin"
        return table_order(pack(found.table), self.checkpoint / "plans" / name)

    def _path(self, batch: int, kind: str) -> Path:
        return self.folder / f"{batch:012d}-{kind}.json"

    def records(self) -> list[Record]:
        """All adjustments so far, in order."""
        if not self.folder.is_dir():
            return []
        files = sorted(p for p in self.folder.iterdir() if p.suffix == ".json")
        return [msgspec.json.decode(p.read_bytes(), type=Record) for p in files]


def drawn(table: GridTable) -> list[list[int]]:
    """The shard of each cell for a picture, every n-th cell of a fine grid."""
    step = -(-len(table.cells) // _DRAWN)
    cells: list[list[int]] = np.maximum(table.cells[::step, ::step], -1).tolist()
    return cells
