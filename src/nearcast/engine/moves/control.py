"""Routing versions and moves: one small file per batch says what changes with it.

At the end of batch n-1 the sink writes `control/n`: the routing tables valid from n on, what shards
export at the end of n, and which exports (made at the end of n-1) they take in before n. A batch
without a file goes by the latest one before it. Repeating a batch repeats its file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nearcast.engine import faults
from nearcast.engine.files import inside
from nearcast.engine.formats import read_binary, write_binary
from nearcast.engine.moves.balancer import STATS, Balancer
from nearcast.engine.moves.planning import SURVEY, WARMUP, Samples, Surveyed, make_plan
from nearcast.engine.options.settings import Settings
from nearcast.engine.route.envelope import Directions
from nearcast.routing import Load, Router
from nearcast.routing.arrays import FOLDER
from nearcast.routing.balance import Counts, Rest
from nearcast.routing.orders import TABLE, Order

_KEEP = 5  # control files and exports of this many batches back are kept
_LASTING = ("tables", "rests", "reach", "parts")  # what holds until another file says otherwise


class Control(msgspec.Struct):
    """What holds from a batch on."""

    tables: dict[str, bytes] = {}  # kind: routing table
    orders: dict[str, dict[str, Any]] = {}
    imports: dict[str, list[str]] = {}
    rests: dict[str, Rest] = {}  # kind: a look at the balance that found nothing to do
    reach: dict[str, int] = {}  # kind: how far back its subscriptions look, on any shard
    firsts: list[str] = []  # what shards found for first results in the batch before
    parts: dict[str, list[str]] = {}  # kind not in use yet: the files of its window, of all shards


class Export(msgspec.Struct):
    """What a shard gave away at the end of a batch."""

    kind: str
    path: str  # relative to the checkpoint
    copies: int  # that went
    id_hash: list[int] = []  # which ones, for routers that keep ids
    shards: list[int] = []  # and where
    drops: int = 0  # copies that end there
    bytes: int = 0


def control_path(checkpoint: Path, batch: int) -> Path:
    """The control file of a batch, if it has one."""
    return checkpoint / "control" / f"{batch:012d}.bin"


def read_control(path: Path) -> Control:
    """What a control file says."""
    return msgspec.msgpack.decode(read_binary(path, "control"), type=Control)


class Controls:
    """The control files of a checkpoint."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder / "control"
        self.settings = settings
        self.balancer = Balancer(folder, settings.balance)

    def _batches(self) -> list[int]:
        try:
            return sorted(int(p.stem) for p in self.folder.glob("*.bin"))
        except FileNotFoundError:
            return []

    def _path(self, batch: int) -> Path:
        return control_path(self.folder.parent, batch)

    def at(self, batch: int) -> tuple[Control, bool]:
        """(what holds in `batch`, whether it was written for exactly this batch)."""
        before = [b for b in self._batches() if b <= batch]
        if not before:
            return Control(), False
        return self._read(before[-1]), before[-1] == batch

    def _read(self, batch: int) -> Control:
        return read_control(self._path(batch))

    def routers(self, batch: int) -> dict[str, Router]:
        """The routers of `batch`."""
        FOLDER.set(self.folder.parent)
        control, _ = self.at(batch)
        return make_routers(self.settings, control.tables)

    def directions(self, batch: int) -> Directions:
        """What shards must know in `batch`."""
        control, now = self.at(batch)
        if not now:
            return Directions(batch, tables=control.tables, reach=control.reach)
        return Directions(
            batch, control.orders, control.imports, control.tables, control.reach, control.firsts
        )

    def first_results_wait(self, batch: int) -> bool:
        """Whether subscriptions begin with `batch` that must look back first."""
        control, now = self.at(batch)
        return now and bool(control.firsts)

    def waits_for_objects(self, batch: int, routers: dict[str, Router], samples: Samples) -> bool:
        """Whether the objects of `batch` are to be kept for a plan."""
        waiting = any(r.plans and not r.table and r.shards > 1 for r in routers.values())
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
        counts: dict[str, list[Counts]] | None = None,
        reach: dict[str, int] | None = None,
        firsts: list[str] | None = None,
        parts: dict[str, list[str]] | None = None,
    ) -> None:
        """After `batch`: publish what holds from the next one on.

        `surveys` are answers to an order, be it for a plan or for the balance; `costs` is what the
        batch added to each shard by a plan, less what it took away; `counts` what each shard did;
        `reach` how far back each kind that keeps objects looks; `firsts` the files of what shards
        found for first results; `parts` those of windows that are held in parts.
        """
        FOLDER.set(self.folder.parent)
        control, written = self.at(batch)
        counts = self.balancer.first_counts(batch, counts or {})
        routers = make_routers(self.settings, control.tables)
        following = Control(
            dict(control.tables),
            rests=dict(control.rests),
            reach=control.reach if reach is None or not loads else reach,
            firsts=firsts or [],
            parts=parts or {} if loads else control.parts,
        )
        if not loads and written:  # no row reached a shard: the next batch repeats what was ordered
            following.orders, following.imports = control.orders, control.imports
            following.firsts = control.firsts
        _send_on(exports, routers, following)
        for kind, router in routers.items():
            if move := router.order(batch, loads):
                following.orders[kind] = move
            if router.plans and loads:
                order = control.orders.get(kind, {}) if written else {}
                paths = [s.path for s in surveys or [] if s.kind == kind]
                if STATS in order:
                    done = counts[kind]
                    self._balance(batch, kind, router, order[STATS], paths, done, following)
                else:
                    spent = (costs or {}).get(kind)
                    self._plan(batch, kind, router, order, paths, spent, following)
                    done = counts.get(kind, [])
                    self._look(batch, kind, router, order, done, following)
        faults.reach("sink-decided", batch)
        self._write(batch + 1, control, following)
        plans = [r for r in routers.values() if r.plans]
        if plans and all(r.table for r in plans):
            Samples(self.folder.parent).forget(batch - _KEEP)
        wanted = {p for paths in following.imports.values() for p in paths}
        self._forget(batch, wanted | set(following.firsts))

    def _write(self, batch: int, before: Control, now: Control) -> None:
        """The control file of `batch`, unless what held before still holds.

        Written also when it says nothing, if an earlier try said something.
        """
        changed = any(getattr(now, name) != getattr(before, name) for name in _LASTING)
        changed |= bool(now.orders or now.imports or now.firsts)
        if changed or self._path(batch).exists():
            write_binary(self._path(batch), "control", msgspec.msgpack.encode(now))

    def _plan(
        self,
        batch: int,
        kind: str,
        router: Router,
        order: Order,
        surveys: list[str],
        costs: list[float] | None,
        following: Control,
    ) -> None:
        """The next step towards a plan of `kind`, or what keeps it up to date (`planning`)."""
        table = following.tables.get(kind, b"")
        if TABLE in order:  # shards exported by it: now it holds
            table = following.tables[kind] = order[TABLE]
        elif surveys:
            checkpoint = self.folder.parent
            following.orders[kind] = make_plan(
                router, checkpoint, batch, kind, surveys, self._warmup
            )
        elif not table and self.settings.shards > 1 and self._enough(batch):
            following.orders[kind] = {SURVEY: True}
        if table and costs and any(costs) and router.keeps_costs:
            following.tables[kind] = router.with_table(table).adjusted(np.array(costs))

    def _enough(self, batch: int) -> bool:
        """Whether the objects up to `batch` are enough for a plan."""
        return Samples(self.folder.parent).count(batch + 1) >= self._warmup

    def _look(
        self,
        batch: int,
        kind: str,
        router: Router,
        order: dict[str, Any],
        counts: list[Counts],
        following: Control,
    ) -> None:
        """Order statistics from shards, if a table holds, nothing moves and loads differ much."""
        if router.table and not order and kind not in following.orders:
            queried = self.balancer.look(batch, kind, router, counts, following.rests.get(kind))
            if queried:
                following.orders[kind] = queried

    def _balance(
        self,
        batch: int,
        kind: str,
        router: Router,
        order: str,
        reported: list[str],
        counts: list[Counts],
        following: Control,
    ) -> None:
        """Decide by what shards reported."""
        made, rest = self.balancer.decide(batch, kind, router, order, sorted(reported), counts)
        following.rests.pop(kind, None)
        if rest is not None:
            following.rests[kind] = rest
        else:
            following.orders[kind] = made

    def _forget(self, batch: int, wanted: set[str]) -> None:
        checkpoint = self.folder.parent
        moved = _aged(checkpoint / "moves", batch - _KEEP - 1)  # taken in one batch later
        for path in [*moved, *_aged(checkpoint / "firsts", batch - _KEEP - 1)]:
            if inside(checkpoint, path) not in wanted:
                path.unlink(missing_ok=True)
        plans = _aged(checkpoint / "plans", batch - _KEEP)
        if plans:  # those that a control file names are in use, or may be again
            kept = [self._path(b).read_bytes() for b in self._batches()]
            for path in plans:
                if not any(path.name.encode() in data for data in kept):
                    path.unlink(missing_ok=True)
        old = [b for b in self._batches() if b < batch - _KEEP]
        for b in old[:-1]:  # the newest of them still holds
            for paths in self._read(b).imports.values():
                for name in set(paths) - wanted:
                    (checkpoint / name).unlink(missing_ok=True)
            self._path(b).unlink(missing_ok=True)


def _send_on(exports: list[Export], routers: dict[str, Router], following: Control) -> None:
    """Have shards take in what others gave away; a router that keeps ids learns where they are."""
    for export in exports:
        router = routers[export.kind]
        if router.keeps_ids:
            ids = np.array(export.id_hash, np.uint64)
            table = router.moved(ids, np.array(export.shards, np.int64))
            routers[export.kind] = router.with_table(table)
            following.tables[export.kind] = table
        following.imports.setdefault(export.kind, []).append(export.path)


def _aged(folder: Path, before: int) -> list[Path]:
    """The files of a folder that batches before `before` wrote, by their names."""
    if not folder.is_dir():
        return []
    return [p for p in folder.iterdir() if p.name[:12].isdigit() and int(p.name[:12]) < before]


def make_routers(settings: Settings, tables: dict[str, bytes]) -> dict[str, Router]:
    """The routers of a run, with their tables."""
    routers = {}
    for kind, strategy in settings.chosen.items():
        router = routers[kind] = strategy.router(settings.shards, tables.get(kind, b""))
        router.tune(settings.plan, settings.bounds)
    return routers
