"""One round of the campaign: a live run with settings drawn at random, which crashes many times.

The run is `testing.live_run`: the engine's own tailer, steps and sink, without Spark. A crash
raises at a named point (`engine.faults`), sometimes twice in a batch; then all that is in memory is
forgotten, sometimes the arenas too, and the run goes on from what the disk has.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from nearcast.engine import faults, upkeep
from nearcast.engine.options.settings import Settings
from nearcast.engine.output import rolling
from nearcast.engine.shard import merging
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.model.standing import FOREVER
from nearcast.testing.live_run import LiveRun
from nearcast.testing.logs import random_log
from nearcast.testing.oracle import replay
from nearcast.wire.told import Told

EVENTS = 160  # of a round
_EVERY = 4  # batches from one upkeep to the next, so that a short run has much of it
_SMALL = ((upkeep, "EVERY", _EVERY), (upkeep, "KEPT", 12), (rolling, "LARGE", 4),
          (merging, "MANY", 4))  # fmt: skip
_PIECES = 10  # batches from a segment's last to the upkeep that writes it (`engine.output.rolling`)


@dataclass(slots=True)
class Outcome:
    """What a round did."""

    settings: dict[str, Any]
    crashed: Counter[str] = field(default_factory=Counter)  # by point
    batches: int = 0
    notifications: int = 0
    lost: int = 0
    twice: int = 0  # or reported though it should not be


def run_round(seed: int, folder: Path, most: int) -> Outcome:
    """A round of at most so many crashes; the same for the same seed."""
    rng, sizes = Random(seed), Random(f"sizes of {seed}")  # batches do not depend on crashes
    settings, chosen = _settings(rng, folder)
    outcome = Outcome(chosen)
    events: list[Any] = random_log(seed, settings.space, EVENTS, kinds=settings.kinds)
    scripts = folder / "faults"
    scripts.mkdir(parents=True)
    with _small(), _scripted(scripts):
        run = LiveRun(settings, folder / "run", 10)
        at = 0
        while at < len(events):
            size = sizes.choice((1, 3, 5, 9))
            run.write(events[at : at + size])
            at += size
            if outcome.crashed.total() < most:
                _script(rng, scripts, run.next, chosen)
            _until_done(rng, run, outcome)
            for path in scripts.iterdir():  # a point that this batch did not reach
                path.unlink()
            if rng.random() < 0.1:
                run.restart()
        run.tailer.stop()
        outcome.batches = run.next
    wanted = Counter(map(_text, _right(settings, events)))
    found = Counter(_text(json.loads(line)) for _, line in Told(run.run.out).read())
    outcome.notifications = wanted.total()
    outcome.lost, outcome.twice = (wanted - found).total(), (found - wanted).total()
    return outcome


def _settings(rng: Random, folder: Path) -> tuple[Settings, dict[str, Any]]:
    """Settings drawn at random, and what of them is worth to be reported."""
    kinds = tuple(rng.sample(list(KINDS), rng.choice((1, 2, len(KINDS)))))
    moving = {name: rng.choice(_still_or_moving(name)) for name in kinds}
    chosen: dict[str, Any] = {
        "manifests": rng.choice(("files", "spark")),
        "kinds": list(kinds),
        "strategies": moving,
        "space": rng.choice((Space.GEOGRAPHIC, Space.PLANAR)).value,
        "keep": rng.choice(("", "all")),
        "retain_ms": rng.choice((0, 50, FOREVER)),
        "archive": rng.random() < 0.3,
    }
    settings = Settings(
        space=Space(chosen["space"]),
        order="arrival",
        only=kinds,
        strategies=moving,
        manifests=chosen["manifests"],
        keep=chosen["keep"],
        retain_ms=chosen["retain_ms"],
        archive=str(folder / "archive") if chosen["archive"] else "",
        arena=str(folder / "arena"),
        maxdist=50.0 if chosen["space"] == "planar" else None,
    )
    return settings, chosen


def _still_or_moving(kind: str) -> list[str]:
    """The default of a kind, and the strategy that moves subscriptions all the time if it may."""
    return [KINDS[kind].default, *(["random"] if "random" in KINDS[kind].routers else [])]


def _script(rng: Random, scripts: Path, batch: int, chosen: dict[str, Any]) -> None:
    """One or two crashes for a batch."""
    for _ in range(rng.choice((1, 1, 2))):
        number = batch
        if (batch + 1) % _EVERY == 0 and rng.random() < 0.5:
            point = rng.choice(faults.OF_UPKEEP)
            if point in ("upkeep-rolling", "upkeep-rolled"):  # they say the segment's last batch
                number -= _PIECES
        elif chosen["archive"] and rng.random() < 0.3:
            point = rng.choice(faults.OF_ARCHIVES)
        else:
            point = rng.choice(faults.POINTS)
        (scripts / f"{point}@{number}").write_text("raise")


def _until_done(rng: Random, run: LiveRun, outcome: Outcome) -> None:
    """Step until there is nothing left to do, through all crashes."""
    while True:
        try:
            if run.step() is None:
                return
        except RuntimeError as error:
            if not str(error).startswith("scripted failure at "):
                raise
            outcome.crashed[str(error).split()[3]] += 1
            if rng.random() < 0.3:
                run.lose_arenas()
            run.restart()


def _right(settings: Settings, events: Iterable[Any]) -> list[dict[str, Any]]:
    """What the oracle reports."""
    retain = FOREVER if settings.archive else settings.retain_ms
    kinds = settings.kinds
    right = replay(events, settings.space, "arrival", kinds=kinds, retain=retain)
    return list(right.notifications)


def _text(row: dict[str, Any]) -> str:
    """A notification, written so that equal ones are equal; JSON has no number for infinity."""
    if row.get("distance") == math.inf:
        row = row | {"distance": None}
    if "objects" in row:
        row = row | {"objects": [json.loads(_text(o)) for o in row["objects"]]}
    return json.dumps(row, sort_keys=True)


@contextmanager
def _scripted(folder: Path) -> Iterator[None]:
    """Failures are scripted in a folder."""
    before = os.environ.get("NEARCAST_FAULTS")
    os.environ["NEARCAST_FAULTS"] = str(folder)
    try:
        yield
    finally:
        del os.environ["NEARCAST_FAULTS"]
        if before is not None:
            os.environ["NEARCAST_FAULTS"] = before


@contextmanager
def _small() -> Iterator[None]:
    """Upkeep comes early and often."""
    before = [getattr(module, name) for module, name, _ in _SMALL]
    for module, name, value in _SMALL:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(_SMALL, before, strict=True):
            setattr(module, name, value)
