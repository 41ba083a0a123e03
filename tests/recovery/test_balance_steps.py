"""Crashes at every step of every kind of adjustment: asking, deciding, exporting, taking in."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.contract import Miniature, difference, expected, told, write_log
from tests.recovery.crashing import at_every_step, run_through

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


@dataclass(frozen=True, slots=True)
class Case:
    """A run, and what must come out of it."""

    kind: str
    run: Miniature
    wanted: Counter[str]

    def adjusted(self) -> list[int]:
        """The batches after which it was decided."""
        return [r.batch for r in Balancer(self.run.checkpoint, self.run.settings.balance).records()]

    def check(self) -> None:
        """Every notification once."""
        assert difference(told(self.run.out), self.wanted) == ""


def start(folder: Path, kind: str, memory: Path) -> Case:
    """A run with its log planned."""
    strategy, balance, seed = KINDS[kind]
    events = random_log(seed, Space.GEOGRAPHIC, 160)
    settings = Settings(
        shards=3, strategies={"range": strategy}, warmup=5, balance=balance, arena=str(memory)
    )
    folder.mkdir()
    run = Miniature(settings, folder)
    run.plan(write_log(folder / "log.jsonl", events), 10)
    return Case(kind, run, expected(events, "geographic"))


@pytest.fixture(scope="module", params=KINDS)
def repeated(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, module_memory: Path
) -> Case:
    """A run in which batches come again: the sink had returned, Spark had not noted it."""
    folder = tmp_path_factory.mktemp("repeated") / "run"
    kind: str = request.param
    case = start(folder, kind, module_memory / str(list(KINDS).index(kind)))
    rng = Random(kind)
    for n in range(len(Feed(case.run.checkpoint))):
        for _ in range(rng.choice((1, 2, 3))):
            case.run.batch(n)
    return case


def test_batches_repeated_as_a_whole(repeated: Case) -> None:
    assert repeated.adjusted()
    repeated.check()


def test_crashes_at_every_step(repeated: Case, tmp_path: Path, memory: Path, faults: Path) -> None:
    """Each decision is made once, the same as without crashes."""
    case = start(tmp_path / "run", repeated.kind, memory)
    decided = repeated.adjusted()
    whole = [n for n in decided if n + HOLDS_AFTER < len(Feed(case.run.checkpoint))]
    run_through(case.run, faults, at_every_step(whole, points.POINTS))
    assert case.adjusted() == decided
    case.check()
