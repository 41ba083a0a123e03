"""Settings of a run: what may differ between runs, and what a checkpoint is bound to."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from nearcast.engine.files import write_atomic
from nearcast.model.errors import NearcastError
from nearcast.model.space import Space
from nearcast.routing import ROUTERS, choose
from nearcast.routing.balance import Balance, CanBalance


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides what a run does. Frozen: a run never changes its mind."""

    space: Space = Space.GEOGRAPHIC
    shards: int = 2
    strategies: dict[str, str] = field(default_factory=dict)  # kind: router or router+index
    bounds: tuple[float, float, float, float] | None = None  # a hint, never a filter
    order: str = "time"  # time: a replayed log; arrival: a live stream
    changes: str = "every"  # every, net
    format: str = "jsonl"  # jsonl, parquet
    lateness_ms: int = 3_600_000  # how long an ended subscription waits for late objects (arrival)
    balance: Balance = Balance()  # noqa: RUF009 -- frozen
    plan: dict[str, float] = field(default_factory=dict)  # parameters of plans, by name
    warmup: int = 0  # objects that a plan is made from; 0: the usual number
    mail: str = ""  # folder for objects by reference, where all run on one machine; empty: none
    arena: str = ""  # folder for the indexes, on each machine; empty: shared memory or /tmp

    def __post_init__(self) -> None:
        """Refuse nonsense with a line that says what to write."""
        if not 1 <= self.shards <= 4096:
            raise NearcastError(f"shards: {self.shards} is not between 1 and 4096")
        for name, known in (
            ("order", ("time", "arrival")),
            ("changes", ("every", "net")),
            ("format", ("jsonl", "parquet")),
        ):
            if getattr(self, name) not in known:
                raise NearcastError(f"{name}: {getattr(self, name)!r}; use {' or '.join(known)}")
        if self.bounds is not None and not (
            self.bounds[0] < self.bounds[2] and self.bounds[1] < self.bounds[3]
        ):
            raise NearcastError("bounds: write minx,miny,maxx,maxy with min < max")
        if self.warmup < 0:
            raise NearcastError(f"warmup: {self.warmup} is less than 0")
        chosen = choose(self.strategies)
        object.__setattr__(self, "strategies", {k: s.name for k, s in chosen.items()})
        parameters = {n for s in chosen.values() for n in getattr(s.router, "parameters", ())}
        if unknown := sorted(set(self.plan) - parameters):
            there = ", ".join(sorted(parameters)) or "none: these strategies make no plan"
            raise NearcastError(f"plan: no parameter {unknown[0]!r}; there are {there}")
        if self.balance.on and not any(issubclass(s.router, CanBalance) for s in chosen.values()):
            able = [n for n, r in ROUTERS.items() if issubclass(r, CanBalance)]
            raise NearcastError(
                f"balance: {self.balance.mode} needs a strategy that can balance, such as "
                f"range={able[0]}; there are {', '.join(able)}"
            )

    @property
    def grace_ms(self) -> int:
        """How long after its end a subscription may still see a late object."""
        return self.lateness_ms if self.order == "arrival" else 0

    @property
    def told_in_order(self) -> bool:
        """Whether matches of a batch are told in the order of its objects.

        JSON lines are read as a log. Parquet is a table, whose rows have no order; neighbours are
        then matched one after the other, and their ids need half the room.
        """
        return self.format != "parquet"

    def to_json(self) -> dict[str, Any]:
        """As `from_json` reads it."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {"space": str(self.space), "balance": self.balance.to_json()}

    @staticmethod
    def from_json(values: dict[str, Any]) -> Settings:
        """The settings that `to_json` gave."""
        bounds = values.get("bounds")
        known = values | {
            "space": Space(values["space"]),
            "bounds": tuple(bounds) if bounds else None,
            "balance": Balance.from_json(values.get("balance", {})),
        }
        return Settings(**known)

    def arena_root(self) -> Path:
        """Where this machine keeps indexes: shared memory if there is much of it, else disk."""
        if self.arena:
            return Path(self.arena)
        memory = Path("/dev/shm")
        try:
            free = os.statvfs(memory)
            if os.access(memory, os.W_OK) and free.f_bavail * free.f_frsize > 2**32:
                return memory / f"nearcast-{os.getuid()}"
        except OSError:
            pass
        return Path(tempfile.gettempdir()) / "nearcast-arenas"


# What a checkpoint is bound to: its state means something else under other values.
BOUND = ("space", "shards", "strategies", "order", "lateness_ms")


def check_bound(settings: Settings, folder: Path) -> None:
    """Write the settings into a new checkpoint; refuse one that was made with others."""
    path = folder / "settings.json"
    now = settings.to_json()
    if path.exists():
        try:
            then = json.loads(path.read_text())
        except ValueError as error:
            raise NearcastError(f"{path}: not a nearcast checkpoint ({error})") from error
        if not isinstance(then, dict):
            raise NearcastError(f"{path}: not a nearcast checkpoint (it holds no settings)")
        other = [n for n in BOUND if then.get(n) != json.loads(json.dumps(now[n]))]
        if other:
            said = "; ".join(f"{n} was {then.get(n)!r}, now {now[n]!r}" for n in other)
            raise NearcastError(
                f"{folder}: this checkpoint was made with other settings ({said}); "
                "use those, or another --checkpoint"
            )
        return
    # A hidden file is what a crash in this very function leaves.
    if folder.exists() and any(not p.name.startswith(".") for p in folder.iterdir()):
        raise NearcastError(f"{folder}: not empty, and not a nearcast checkpoint")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(now, indent=1).encode())
