"""Routing versions and moves: one small file a batch says what changes with it.

At the end of batch n-1 the sink writes `control/n`: the routing tables valid from n on, what shards
export at the end of n, and which exports (made at the end of n-1) they take in before n. A batch
without a file goes by the latest one before it. Repeating a batch repeats its file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nearcast.engine.envelope import Directions
from nearcast.engine.files import write_atomic
from nearcast.engine.planning import ASK, TABLE, WARMUP, Samples, Surveyed, make_plan
from nearcast.engine.settings import Settings
from nearcast.routing import CanMove, CanPlan, GridRouter, Load, Router, choose

_KEEP = 5  # control files and exports of this many batches back are kept


class Control(msgspec.Struct):
    """What holds from a batch on."""

    tables: dict[str, bytes] = {}  # kind: routing table
    orders: dict[str, dict[str, Any]] = {}
    imports: dict[str, list[str]] = {}


class Export(msgspec.Struct):
    """What a shard gave away at the end of a batch."""

    kind: str
    path: str
    id_hash: list[int]
    shards: list[int]


class Controls:
    """The control files of a checkpoint."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder / "control"
        self.settings = settings

    def _batches(self) -> list[int]:
        try:
            return sorted(int(p.stem) for p in self.folder.glob("*.bin"))
        except FileNotFoundError:
            return []

    def _path(self, batch: int) -> Path:
        return self.folder / f"{batch:012d}.bin"

    def at(self, batch: int) -> tuple[Control, bool]:
        """(what holds in `batch`, whether it was written for exactly this batch)."""
        before = [b for b in self._batches() if b <= batch]
        if not before:
            return Control(), False
        control = msgspec.msgpack.decode(self._path(before[-1]).read_bytes(), type=Control)
        return control, before[-1] == batch

    def routers(self, batch: int) -> dict[str, Router]:
        """The routers of `batch`."""
        control, _ = self.at(batch)
        return make_routers(self.settings, control.tables)

    def directions(self, batch: int) -> Directions:
        """What shards must be told in `batch`."""
        control, now = self.at(batch)
        if not now:
            return Directions(batch, tables=control.tables)
        return Directions(batch, control.orders, control.imports, control.tables)

    def waits_for_objects(self, batch: int, routers: dict[str, Router], samples: Samples) -> bool:
        """Whether the objects of `batch` are to be kept for a plan."""
        waiting = any(
            isinstance(r, CanPlan | GridRouter) and not r.table and r.shards > 1
            for r in routers.values()
        )
        return waiting and samples.count(batch) < self._warmup

    @property
    def _warmup(self) -> int:
        return self.settings.warmup or WARMUP

    def decide(
        self,
        batch: int,
        exports: list[Export],
        loads: list[Load],
        surveys: list[Surveyed] | None = None,
        costs: dict[str, list[float]] | None = None,
    ) -> None:
        """After `batch`: publish what holds from the next one on.

        `costs` is what the batch added to each shard by a plan, less what it took away.
        """
        control, written = self.at(batch)
        routers = make_routers(self.settings, control.tables)
        following = Control(dict(control.tables))
        if not loads and written:  # no row, so no shard heard of it: the next batch is told
            following.orders, following.imports = control.orders, control.imports
        for export in exports:
            router = routers[export.kind]
            if isinstance(router, CanMove):
                ids = np.array(export.id_hash, np.uint64)
                table = router.moved(ids, np.array(export.shards, np.int64))
                routers[export.kind] = type(router)(self.settings.shards, table)
                following.tables[export.kind] = table
            following.imports.setdefault(export.kind, []).append(export.path)
        for kind, router in routers.items():
            if isinstance(router, CanMove) and (order := router.order(batch, loads)):
                following.orders[kind] = order
            if isinstance(router, CanPlan | GridRouter) and loads:
                order = control.orders.get(kind, {}) if written else {}
                paths = [s.path for s in surveys or [] if s.kind == kind]
                self._plan(batch, kind, router, order, paths, (costs or {}).get(kind), following)
        # Written also when it says nothing, if an earlier try of this batch said something.
        changed = following.tables != control.tables
        if following.orders or following.imports or changed or self._path(batch + 1).exists():
            write_atomic(self._path(batch + 1), msgspec.msgpack.encode(following))
        plans = [r for r in routers.values() if isinstance(r, CanPlan | GridRouter)]
        if plans and all(r.table for r in plans):
            Samples(self.folder.parent).forget(batch - _KEEP)
        self._forget(batch, {p for paths in following.imports.values() for p in paths})

    def _plan(
        self,
        batch: int,
        kind: str,
        router: CanPlan | GridRouter,
        order: dict[str, Any],
        surveys: list[str],
        costs: list[float] | None,
        following: Control,
    ) -> None:
        """The next step towards a plan of `kind`, or what keeps it up to date (`planning`)."""
        table = following.tables.get(kind, b"")
        if TABLE in order:  # shards exported by it: now it holds
            following.tables[kind] = order[TABLE]
        elif surveys:
            checkpoint = self.folder.parent
            following.orders[kind] = make_plan(router, checkpoint, batch, kind, surveys)
        elif not table and self.settings.shards > 1:
            if Samples(self.folder.parent).count(batch + 1) >= self._warmup:
                following.orders[kind] = {ASK: True}
        elif table and costs and any(costs) and isinstance(router, CanPlan):
            following.tables[kind] = router.adjusted(np.array(costs))

    def _forget(self, batch: int, wanted: set[str]) -> None:
        old = [b for b in self._batches() if b < batch - _KEEP]
        for b in old[:-1]:  # the newest of them still holds
            control = msgspec.msgpack.decode(self._path(b).read_bytes(), type=Control)
            for paths in control.imports.values():
                for path in set(paths) - wanted:
                    Path(path).unlink(missing_ok=True)
            self._path(b).unlink(missing_ok=True)


def make_routers(settings: Settings, tables: dict[str, bytes]) -> dict[str, Router]:
    """The routers of a run, with their tables."""
    chosen = choose(settings.strategies)
    return {k: s.router(settings.shards, tables.get(k, b"")) for k, s in chosen.items()}
