"""Settings of a run: what may differ between runs, and what a checkpoint is bound to."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from nearcast.engine.formats import FIELD, FORMAT, check_format
from nearcast.engine.options.fitted import KeptWeights, digest_of
from nearcast.engine.options.run_options import DEFAULTS, RunOptions, checked, suggest
from nearcast.engine.options.spans import AUTO, keep_ms, window_of
from nearcast.kinds import Kind, kinds_of
from nearcast.kinds.strategies import Strategy, choose
from nearcast.model.errors import NearcastError
from nearcast.model.frame import UNFITTED, Frame, Weights, Window
from nearcast.model.space import Space
from nearcast.model.standing import Needs
from nearcast.routing import ROUTERS
from nearcast.routing.balance import Balance
from nearcast.wire.durable import write_atomic
from nearcast.wire.kind import needs_of

STORED = Needs.COUNTS | Needs.RANK | Needs.FIELDS
"""What objects must carry to be retained or archived."""


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
    keep: str = ""  # how long segments of results are kept; empty: there are none
    lateness_ms: int = DEFAULTS["lateness_ms"]  # of ends, for late objects (arrival)
    balance: Balance = Balance()  # noqa: RUF009 -- frozen
    plan: dict[str, float] = field(default_factory=dict)  # parameters of plans, by name
    warmup: int = 0  # objects that a plan is made from; 0: the usual number
    mail: str = ""  # folder for objects by reference, where all run on one machine; empty: none
    only: tuple[str, ...] = ()  # kinds of query that are taken; none: all
    plugins: tuple[str, ...] = ()  # modules that bring more kinds of query (`nearcast.kinds`)
    retain_ms: int = 0  # how far back objects are retained; 0: none, FOREVER: all
    store: str = DEFAULTS["store"]  # what retained objects rest in (`nearcast.objects`)
    archive: str = ""  # folder that keeps every object, as an absolute path; empty: none does
    window: str = DEFAULTS["window"]  # sliding window of the run, for kinds that have one
    maxdist: float | None = None  # of scores, where a query does not say it
    idf: str = ""  # file of the fitted table, as an absolute path; empty: none
    manifests: str = "spark"  # who remembers them between batches: files or spark
    arena: str = ""  # folder for the indexes, on each machine; empty: shared memory or /tmp

    def __post_init__(self) -> None:
        """Refuse nonsense with a line that says what to write."""
        for name in _OPTIONS:
            if getattr(self, name) != DEFAULTS[name]:
                object.__setattr__(self, name, checked(name, getattr(self, name)))
        if self.order not in ("time", "arrival"):
            raise NearcastError(f"order: {self.order!r}; use time or arrival")
        chosen = self.chosen
        object.__setattr__(self, "strategies", {k: s.name for k, s in chosen.items()})
        parameters = {n for s in chosen.values() for n in s.router.parameters}
        if unknown := sorted(set(self.plan) - parameters):
            none = "there are none: these strategies make no plan"
            there = suggest(unknown[0], sorted(parameters)) if parameters else none
            raise NearcastError(f"plan: no parameter {unknown[0]!r}; {there}")
        if self.balance.on and not any(s.router.balances for s in chosen.values()):
            able = [
                f"{name}={router}"
                for name, kind in self.kinds.items()
                for router in kind.routers
                if ROUTERS[router].balances
            ]
            raise NearcastError(
                f"balance: {self.balance.mode} needs a strategy that can balance, such as "
                f"{able[0]}; there are {', '.join(able)}"
            )

    @staticmethod
    def of(options: RunOptions, order: str = "time") -> Settings:
        """The settings of a run with these options."""
        return Settings(
            space=Space(options.space),
            order=order,
            balance=Balance.from_json(options.balance_settings()),
            only=options.kinds,
            retain_ms=options.retain_ms(order),
            archive=str(Path(options.archive).resolve()) if options.archive else "",
            idf=str(Path(options.idf).resolve()) if options.idf else "",
            **{name: getattr(options, name) for name in _OPTIONS},
        )

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds of query that this run takes, as it has them."""
        return _kinds_of_run(self.plugins, self.only, self.window, self.maxdist, self.idf)

    @property
    def weights(self) -> Weights:
        """How much keywords weigh."""
        return _weights(self.idf)

    @property
    def chosen(self) -> dict[str, Strategy]:
        """The strategy of each kind."""
        return choose(self.strategies, self.kinds)

    @property
    def kinds_to_find(self) -> tuple[str, ...]:
        """The kinds whose first subscription changes where objects go, or what they carry.

        None where all strategies send every object to every shard and no kind needs more of it.
        """
        selective = any(s.router.selective for s in self.chosen.values())
        return tuple(self.kinds) if selective or needs_of(self.kinds) else ()

    @property
    def from_start(self) -> tuple[str, ...]:
        """The kinds that need all objects, also those before their first subscription."""
        return tuple(name for name, kind in self.kinds.items() if kind.from_start)

    @property
    def begins_with(self) -> tuple[str, ...]:
        """The kinds that a replay has in use from the first object on.

        To these come those of `from_start` that a log of its first call names. A live run has
        none: it holds their windows in parts until then (`engine.shard.window_parts`).
        """
        live = self.order == "arrival"
        return tuple(name for name in self.from_start if not live and name in self.only)

    def awaited(self, in_use: Collection[str]) -> tuple[str, ...]:
        """The kinds whose window a live run holds in parts: they are not in use yet."""
        live = self.order == "arrival"
        return tuple(name for name in self.from_start if live and name not in in_use)

    @property
    def stored(self) -> Needs:
        """What objects must carry to be retained or archived, or held for a window, if they are."""
        stored = STORED if self.stores else Needs.NOTHING
        return stored | needs_of(self.kinds, self.awaited(()))

    @property
    def stores(self) -> bool:
        """Whether each object is kept on one shard, in memory or in the archive."""
        return bool(self.retain_ms or self.archive)

    @property
    def grace_ms(self) -> int:
        """How long after its end a subscription may still see a late object."""
        return self.lateness_ms if self.order == "arrival" else 0

    @property
    def keep_ms(self) -> int:
        """How long segments of results are kept; 0: for ever."""
        return keep_ms(self.keep)

    @property
    def in_object_order(self) -> bool:
        """Whether matches of a batch are reported in the order of its objects.

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
            "only": tuple(values.get("only", ())),
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


# Settings that are options as they stand.
_OPTIONS = (
    "bounds", "shards", "strategies", "changes", "format", "warmup", "plan", "lateness_ms", "arena",
    "plugins", "store", "window", "maxdist", "keep",
)  # fmt: skip

# What a checkpoint is bound to: its state means something else under other values.
BOUND = (
    "space", "shards", "strategies", "order", "lateness_ms", "window", "maxdist", "idf",
    "manifests",
)  # fmt: skip
# What a run says to its kinds (`model.frame`).
FRAME = ("window", "maxdist", "idf")


@lru_cache(maxsize=16)
def _kinds_of_run(
    plugins: tuple[str, ...],
    only: tuple[str, ...],
    window: str,
    maxdist: float | None,
    idf: str,
) -> Mapping[str, Kind]:
    frame = Frame(Window(*window_of(window)), maxdist, _weights(idf))
    return {name: kind.of_run(frame) for name, kind in kinds_of(plugins, only).items()}


@lru_cache(maxsize=4)
def _weights(path: str) -> Weights:
    return KeptWeights(Path(path)) if path else UNFITTED


def manifests_of(wanted: str, local: bool, folder: Path) -> str:
    """Who remembers the manifests of a checkpoint: as it began; a new one as it is `wanted`."""
    path = folder / "settings.json"
    then = None
    if path.exists():
        with suppress(ValueError, TypeError, KeyError):  # `check_bound` says what is wrong with it
            then = json.loads(path.read_text())["manifests"]
    if then is not None and wanted == AUTO:
        return str(then)
    return wanted if wanted != AUTO else "files" if local else "spark"


def check_bound(settings: Settings, folder: Path) -> None:
    """Write the settings into a new checkpoint; refuse one that was made with others."""
    path = folder / "settings.json"
    now = settings.to_json() | {"idf": digest_of(settings.idf)}
    if path.exists():
        try:
            then = json.loads(path.read_text())
        except ValueError as error:
            raise NearcastError(f"{path}: not a nearcast checkpoint ({error})") from error
        if not isinstance(then, dict):
            raise NearcastError(f"{path}: not a nearcast checkpoint (it holds no settings)")
        check_format(path, then)
        other = [n for n in BOUND if then.get(n) != json.loads(json.dumps(now[n]))]
        if bool(then.get("archive")) != bool(now["archive"]):  # it may have moved
            other.append("archive")
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
    write_atomic(path, json.dumps({FIELD: FORMAT} | now, indent=1).encode())
