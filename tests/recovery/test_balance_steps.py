"""Crashes at every step of every kind of adjustment: asking, deciding, exporting, taking in."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.contract import Miniature, difference, expected, told, write_log
from tests.recovery.story import script

from nearcast.engine import faults as points
from nearcast.engine.balance import HOLDS_AFTER, Balancer
from nearcast.engine.settings import Settings
from nearcast.engine.source import Feed
from nearcast.model.space import Space
from nearcast.routing.balance import Balance
from nearcast.testing.logs import random_log

pytestmark = pytest.mark.slow

EAGER: dict[str, Any] = {"threshold": 1.0, "least": 0, "wait": 0}
# kind of move: (strategy, balance, seed of the log)
KINDS = {
    "local adjustment": ("ps2stream", Balance(mode="local", side=16, slack=1.0, **EAGER), 3),
    "shift, split/merge": ("tornado", Balance(mode="local", beta=0.0, **EAGER), 4),
    "two strategies": (
        "ps2stream",
        Balance(mode="global", side=16, gain=0.0, few=0.4, every=4, **EAGER),
        6,
    ),
    "new partitions": ("tornado", Balance(mode="global", beta=0.0, **EAGER), 5),
}


def start(folder: Path, kind: str, memory: Path) -> tuple[Miniature, Counter[str]]:
    """A run with its log planned, and what must come out of it."""
    strategy, balance, seed = KINDS[kind]
    events = random_log(seed, Space.GEOGRAPHIC, 160)
    settings = Settings(
        shards=3, strategies={"range": strategy}, warmup=5, balance=balance, arena=str(memory)
    )
    folder.mkdir()
    run = Miniature(settings, folder)
    run.plan(write_log(folder / "log.jsonl", events), 10)
    return run, expected(events, "geographic")


def adjusted(run: Miniature) -> list[int]:
    """The batches after which it was decided."""
    return [r.batch for r in Balancer(run.checkpoint, run.settings.balance).records()]


@pytest.mark.parametrize("point", points.POINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_crashes_at_every_step(
    kind: str, point: str, tmp_path: Path, memory: Path, faults: Path
) -> None:
    """In one run a crash at `point` in the batch that leads to an adjustment, in the one that it
    is decided on, in the one that exports and in the one that takes in; then all arenas are lost.
    """
    still, wanted = start(tmp_path / "still", kind, memory / "still")
    still.finish()
    decided = adjusted(still)
    assert decided
    first = decided[len(decided) // 2]
    batches = range(first - 1, first + HOLDS_AFTER + 1)
    run, _ = start(tmp_path / "run", kind, memory / "run")
    script(faults, [(point, n, "raise") for n in batches])
    crashes = 0
    while run.next < len(Feed(run.checkpoint)):
        try:
            run.batch(run.next)
        except RuntimeError as error:
            assert point in str(error)
            crashes += 1
            if crashes == 2:
                shutil.rmtree(run.arenas, ignore_errors=True)
    assert crashes == len(batches)
    assert adjusted(run) == decided  # each decision once, the same as without crashes
    assert difference(told(run.out), wanted) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_batches_repeated_as_a_whole(kind: str, tmp_path: Path, memory: Path) -> None:
    """The sink had returned, Spark had not noted it: the batch comes once more."""
    rng = Random(kind)
    run, wanted = start(tmp_path / "run", kind, memory)
    for n in range(len(Feed(run.checkpoint))):
        for _ in range(rng.choice((1, 2, 3))):
            run.batch(n)
    assert adjusted(run)
    assert difference(told(run.out), wanted) == ""
