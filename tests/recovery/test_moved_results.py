"""What a subscription brings when it moves is in the files of its new shard; without a JVM."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.engine.contract import as_text, difference, expected

from nearcast.engine.options.settings import Settings
from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.testing.live_run import LiveRun
from nearcast.testing.logs import random_log
from nearcast.wire.told import Told

MOVING = [name for name, kind in KINDS.items() if "random" in kind.routers]


@pytest.mark.parametrize("kind", MOVING)
def test_arenas_are_lost_after_every_batch(kind: str, memory: Path) -> None:
    """Every batch begins with what the files say, and moves go on all the time."""
    settings = Settings(
        order="arrival",
        only=(kind,),
        strategies={kind: "random"},
        manifests="files",
        arena=str(memory / "arena"),
    )
    run = LiveRun(settings, memory / "run")
    events = random_log(0, Space.GEOGRAPHIC, 100, kinds=settings.kinds)
    for at in range(0, len(events), 4):
        run.write(events[at : at + 4])
        while run.step():
            run.lose_arenas()
    found = Counter(as_text(json.loads(line)) for _, line in Told(run.run.out).read())
    wanted = expected(events, "geographic", "arrival", settings.kinds, 0)
    assert wanted.total() > 20
    assert difference(found, wanted) == ""
