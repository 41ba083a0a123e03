"""Crashes at every step towards a plan for kNN: querying, planning, exporting, taking in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from tests.engine.contract import Miniature, difference, expected, reported, write_log
from tests.recovery.crashing import batches_of, run_through

from nearcast.engine import faults as points
from nearcast.engine.moves.balancer import HOLDS_AFTER
from nearcast.engine.moves.control import Controls
from nearcast.engine.options.settings import Settings
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.routing.dkm.plan import PlannedRouter
from nearcast.testing.logs import random_log

pytestmark = pytest.mark.slow

ROUTERS = ("dkm-sks", "kop", "sop")  # they differ in how they plan, not in the steps


def start(folder: Path, strategy: str, memory: Path) -> tuple[Miniature, Counter[str]]:
    """A run with its log planned, and what must come out of it."""
    kinds = {name: KINDS[name] for name in ("range", "knn")}
    events = random_log(11, Space.GEOGRAPHIC, 100, crowd=True, kinds=kinds)
    settings = Settings(shards=3, strategies={"knn": strategy}, warmup=20, arena=str(memory))
    folder.mkdir()
    run = Miniature(settings, folder)
    run.plan(write_log(folder / "log.jsonl", events), 10)
    return run, expected(events, "geographic")


def planned(run: Miniature) -> list[int]:
    """The batch after which the plan was made."""
    return [int(p.name[:12]) for p in (run.checkpoint / "plans").glob("*-knn.bin")]


def exports(run: Miniature) -> list[str]:
    """The files by which subscriptions moved."""
    batch = planned(run)[0] + HOLDS_AFTER
    return Controls(run.checkpoint, run.settings).directions(batch).imports["knn"]


def costs(run: Miniature) -> list[float]:
    """C(w) at the end of a run."""
    router = Controls(run.checkpoint, run.settings).routers(run.next)["knn"]
    assert isinstance(router, PlannedRouter)
    return router._table.costs


@pytest.mark.parametrize("router", ROUTERS)
def test_crashes_at_every_step(router: str, tmp_path: Path, memory: Path, faults: Path) -> None:
    """The routers share the points out among them."""
    still, wanted = start(tmp_path / "still", router, memory / "still")
    still.finish()
    assert len(exports(still)) > 1  # worth it: results move from several shards
    run, _ = start(tmp_path / "run", router, memory / "run")
    mine = points.POINTS[ROUTERS.index(router) :: len(ROUTERS)]
    batches = batches_of(planned(still)[0])
    crashes = [(point, batch) for point in mine for batch in batches]
    run_through(run, faults, crashes, Random(router))
    assert planned(run) == planned(still)
    assert costs(run) == costs(still)
    assert difference(reported(run.out), wanted) == ""
